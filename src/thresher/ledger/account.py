"""The account of one data set: grants, what was spent of them, and whether one more fit can be afforded.

It holds costs, not epsilons: those of all fits are composed by the accountant, and the sum is converted once, at the
delta that was granted.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from thresher.ledger.errors import LedgerError
from thresher.privacy.accounting import Cost, Filter
from thresher.privacy.budget import Adjacency, BudgetExceeded

__all__ = ["Account", "Allowance", "Entry", "Line"]


@dataclass(frozen=True)
class Allowance:
    """An (epsilon, delta) that was spent, or is left.

    Parameters
    ----------
    epsilon, delta : float
        How much.

    Examples
    --------
    >>> from thresher.ledger import Allowance
    >>> Allowance(1.0, 1e-6).epsilon
    1.0
    """

    epsilon: float
    delta: float


@dataclass(frozen=True)
class Entry:
    """A line of an account's history.

    Parameters
    ----------
    id, at : str
        Its name, and when it was written.
    kind : "grant" or "fit"
        What it tells of.
    analyst : str or None
        Whose it is, where grants are given analyst by analyst.
    epsilon, delta : float
        A grant, or what a fit costs alone at the delta granted.
    status : "granted", "reserved" or "committed"
        Whether the fit is done.
    algorithm : str
        What asked, of a fit.
    certificate : str
        The SHA-256 hash of the certificate of a committed fit.
    hash : str
        The entry's hash, which continues the ledger's chain.

    Examples
    --------
    >>> from thresher import Ledger
    >>> ledger = Ledger("history.db")
    >>> ledger.grant("trial", epsilon=2.0, delta=1e-6)
    >>> [(entry.kind, entry.epsilon) for entry in ledger.history("trial")]
    [('grant', 2.0)]
    """

    id: str
    at: str
    kind: Literal["grant", "fit"]
    analyst: str | None
    epsilon: float
    delta: float
    status: Literal["granted", "reserved", "committed"]
    algorithm: str | None = None
    certificate: str | None = None  # the SHA-256 hash of the certificate of a committed fit
    hash: str = ""


@dataclass
class Line:
    """What an account keeps of a grant or of a fit, whose cost is told at the delta granted when it is asked for."""

    id: str
    at: str
    analyst: str | None
    amount: Allowance | Cost
    hash: str
    algorithm: str | None = None
    certificate: str | None = None

    @property
    def status(self) -> Literal["granted", "reserved", "committed"]:
        if isinstance(self.amount, Allowance):
            return "granted"
        return "reserved" if self.certificate is None else "committed"

    def told(self, delta: float) -> Entry:
        """The line for people."""
        amount = self.amount if isinstance(self.amount, Allowance) else Allowance(self.amount.epsilon(delta)[0], delta)
        kind: Literal["grant", "fit"] = "grant" if amount is self.amount else "fit"
        return Entry(
            self.id, self.at, kind, self.analyst, amount.epsilon, amount.delta, self.status, self.algorithm,
            self.certificate, self.hash,
        )  # fmt: skip


@dataclass
class Account:
    """One data set: who may spend how much, and what was spent."""

    dataset: str
    adjacency: Adjacency
    unit: str
    grants: dict[str | None, Allowance] = field(default_factory=dict)  # by analyst; None: all of them together
    costs: dict[str | None, Cost] = field(default_factory=dict)
    first_lost: dict[str | None, float] = field(default_factory=dict)  # of the first fit: see Filter
    lines: dict[str, Line] = field(default_factory=dict)  # what history tells, by id

    def spent(self, analyst: str | None) -> Allowance:
        """What everybody, or one analyst, has reserved or spent, at the delta granted."""
        grant = self._grant(analyst)
        return Allowance(self._total(analyst).epsilon(grant.delta)[0], grant.delta)

    def remaining(self, analyst: str | None) -> Allowance:
        """The grant less what was spent. Composition is kinder than subtraction: see ``affordable``."""
        left = [
            Allowance(max(0.0, self._grant(who).epsilon - self.spent(who).epsilon), self._grant(who).delta)
            for who in self._payers(analyst)
        ]
        return min(left, key=lambda allowance: allowance.epsilon)

    def affordable(self, analyst: str | None) -> float:
        """The largest epsilon, at the delta granted, of one more fit."""
        return min(self.affordable_within(who) for who in self._payers(analyst))

    def affordable_within(self, analyst: str | None) -> float:
        """The same as far as this one grant goes."""
        return self._filter(analyst).largest(self._total(analyst))

    def fits(self, analyst: str | None, status: str | None = None) -> int:
        """How many there were, of everybody or of one analyst."""
        fits = [line for line in self.lines.values() if line.status != "granted" and analyst in (None, line.analyst)]
        return sum(status in (None, line.status) for line in fits)

    def check(self, cost: Cost, analyst: str | None, adjacency: Adjacency, unit: str) -> None:
        """Raise unless a fit of this cost can be paid for by the data set's grant and by the analyst's own."""
        name = f"dataset={self.dataset!r}"
        if adjacency != self.adjacency:
            raise LedgerError(
                f"{name} was granted for adjacency={str(self.adjacency)!r}, and the fit is for {str(adjacency)!r}: "
                "their costs do not add up; use the adjacency of the grant"
            )
        if self.unit != unit:  # even the other way: a row that changes hands changes two people
            remedy = "give fit(..., groups=) whose each row is" if self.unit == "person" else "leave out groups="
            raise LedgerError(
                f"{name} was granted per {self.unit}, the fit is per {unit}: their costs do not add up; {remedy}"
            )
        for who in self._payers(analyst):
            grant, spent = self._grant(who), self._total(who)
            rule = self._filter(who)
            if not rule.allows(spent, cost):
                whose = "granted" if who is None else f"granted to analyst {who!r}"
                if rule.allows(spent, replace(cost, lost=0.0)):
                    raise BudgetExceeded(
                        f"{name}: events of small chance in this fit take {cost.lost:.3g} of delta. Of the "
                        f"{grant.delta:g} {whose}, {max(0.0, rule.aside - spent.lost):.3g} is left for such events "
                        "after a first fit. Nothing was read or spent; use a smaller delta, or make this fit the first"
                    )
                raise BudgetExceeded(
                    f"{name}: this fit costs epsilon={cost.epsilon(grant.delta)[0]:.4g} at delta={grant.delta:g}. Of "
                    f"the {grant.epsilon:g} {whose}, {spent.epsilon(grant.delta)[0]:.4g} is spent, and one more fit "
                    f"may have {rule.largest(spent):.4g} at most. Nothing was read or spent; use a smaller epsilon, or "
                    "ask for a larger grant"
                )

    def history(self) -> list[Entry]:
        grant = self._grant(None)
        return [line.told(grant.delta) for line in self.lines.values()]

    def spend(self, cost: Cost, analyst: str | None) -> None:
        for who in {None, analyst}:
            self.first_lost.setdefault(who, cost.lost)
            self.costs[who] = self._total(who) + cost

    def _filter(self, analyst: str | None) -> Filter:
        grant = self._grant(analyst)
        return Filter(grant.epsilon, grant.delta, self.first_lost.get(analyst, 0.0))

    def _total(self, analyst: str | None) -> Cost:
        return self.costs.get(analyst, Cost())

    def _payers(self, analyst: str | None) -> list[str | None]:
        """Whose grants must cover a fit: the data set's and, where analysts have their own, this analyst's."""
        if not any(who is not None for who in self.grants):
            return [None]
        if analyst is None:
            raise LedgerError(
                f"dataset={self.dataset!r} is granted analyst by analyst; say who asks, Ledger(url, analyst=...)"
            )
        self._grant(analyst)
        return [None, analyst]

    def _grant(self, analyst: str | None) -> Allowance:
        if analyst not in self.grants:
            raise LedgerError(f"dataset={self.dataset!r} has no grant for analyst={analyst!r}; ask for one")
        return self.grants[analyst]
