"""What a ledger's entries say, added up: accounts, grants, and whether one more fit can be afforded.

A book is made of entries alone, in their order. It holds costs, not epsilons: those of all fits are composed by the
accountant, and the sum is converted once, at the delta that was granted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from typing import Any, Literal, TypedDict

from thresher.ledger.chain import START, Key
from thresher.ledger.errors import LedgerError
from thresher.ledger.fingerprint import Sketch, are_alike
from thresher.privacy.accounting import Cost, Filter
from thresher.privacy.budget import Adjacency, Budget, BudgetExceeded
from thresher.privacy.releases import release_from_dict

__all__ = ["FORMAT", "Account", "Allowance", "Book", "Entry"]

FORMAT = "thresher-ledger-1"

ReleaseFields = dict[str, Any]
"""A release as JSON: its kind, and the fields that this kind has."""


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


class GrantBody(TypedDict):
    """The entry of a grant."""

    id: str
    at: str
    dataset: str
    analyst: str | None
    epsilon: float
    delta: float
    adjacency: Adjacency
    unit: str


class RowsBody(TypedDict):
    """The entry that says which rows an account is about."""

    dataset: str
    sketch: list[str]


class ReserveBody(TypedDict):
    """The entry of a fit that is about to be asked."""

    id: str
    at: str
    dataset: str
    analyst: str | None
    algorithm: str
    releases: list[ReleaseFields]


class ChargeBody(TypedDict):
    """The entry of rounds that a fit which may be stopped is about to ask."""

    id: str
    rounds: int


class CommitBody(TypedDict):
    """The entry of a fit that is done."""

    id: str
    certificate: str


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


class Book:
    """The accounts, as the entries read so far make them."""

    def __init__(self, key: Key) -> None:
        self._key = key
        self.sequence, self.head = 0, START
        self.places: dict[str, int] = {}  # the sequence of every hash
        self._accounts: dict[str, Account] = {}
        self._sketches: dict[str, list[Sketch]] = {}
        self._fits: dict[str, str] = {}  # the data set of every fit
        self._planned: dict[str, str] = {}  # the hash of its releases
        self._rounds: dict[str, int] = {}  # how many of its rounds were charged, if it is one that goes on after a stop

    @property
    def datasets(self) -> list[str]:
        return list(self._accounts)

    def account(self, dataset: str) -> Account:
        if dataset not in self._accounts:
            known = f"; it has {', '.join(map(repr, self._accounts))}" if self._accounts else ""
            raise LedgerError(f"dataset={dataset!r} has no grant in this ledger{known}. Grant it a budget first")
        return self._accounts[dataset]

    def check_grant(self, dataset: str, analyst: str | None, adjacency: Adjacency, unit: str) -> None:
        """Raise if such a grant cannot be added."""
        account = self._accounts.get(dataset)
        if account is None and analyst is not None:
            raise LedgerError(f"dataset={dataset!r} has no grant yet; grant it one as a whole before an analyst's part")
        if account is not None and (account.adjacency, account.unit) != (adjacency, unit):
            raise LedgerError(
                f"dataset={dataset!r} was granted for adjacency={str(account.adjacency)!r} and unit={account.unit!r}, "
                "which cannot change: what was spent was spent in them"
            )

    def check_rows(self, dataset: str, sketch: Sketch) -> None:
        """Raise if these rows have been spent on under another name."""
        for name, sketches in self._sketches.items():
            if name != dataset and any(are_alike(sketch, known) for known in sketches):
                raise LedgerError(
                    f"dataset={dataset!r}: half of these rows or more have been spent on as {name!r}, and what they "
                    f"lose adds up; use dataset={name!r}"
                )

    def knows_rows(self, dataset: str, sketch: Sketch) -> bool:
        return sketch in self._sketches.get(dataset, [])

    def line(self, entry: str) -> Line:
        """What is known of a fit."""
        if entry not in self._fits:
            raise LedgerError(f"entry {entry} is not in the ledger")
        return self._accounts[self._fits[entry]].lines[entry]

    def is_committed(self, entry: str) -> bool:
        return self.line(entry).status == "committed"

    def problems_of(self, account: Mapping[str, str]) -> list[str]:
        """Why the book cannot have paid for what names this data set, entry and hash."""
        entry = account["entry"]
        if self._fits.get(entry) != account["dataset"] or self.line(entry).hash != account["hash"]:
            return [f"entry {entry} of {account['dataset']!r} is not in the ledger"]
        return []

    def charged(self, entry: str) -> int:
        """How many rounds of a fit may have been asked."""
        return self._rounds.get(entry, 0)

    def check_charge(self, entry: str, before: int) -> None:
        """Raise if other rounds than those ``before`` were charged: somebody else goes on with the same entry."""
        if self.is_committed(entry) or self.charged(entry) != before:
            raise LedgerError(f"entry {entry} was gone on with elsewhere, from a copy of its checkpoint; begin anew")

    def check_resumed(self, account: Mapping[str, str], dataset: str, releases: list[ReleaseFields]) -> None:
        """Raise unless the entry has paid for these releases, and is one that may go on."""
        entry, problems = account["entry"], self.problems_of(account)
        if problems or account["dataset"] != dataset:
            raise LedgerError(f"{(problems or ['it is of another data set'])[0]}; begin the fit anew")
        if self.is_committed(entry):
            raise LedgerError(f"entry {entry} is committed: its fit is done. For another, name another checkpoint")
        if not self.charged(entry) or self._planned[entry] != _digest(releases):
            raise LedgerError(f"entry {entry} is of another fit, or of one without a checkpoint; begin the fit anew")

    # -- entries ------------------------------------------------------------------------------------------------

    def next_entry(self, body: Mapping[str, object]) -> tuple[int, str, str]:
        """Such an entry as the next one: sequence, text, hash."""
        text = json.dumps(body, sort_keys=True, allow_nan=False)
        return self.sequence + 1, text, self._key.hash(self.head, text)

    def read(self, sequence: int, text: str, digest: str) -> None:
        """Add the next entry; one that was changed, left out or put in is refused."""
        if sequence != self.sequence + 1:
            raise LedgerError(f"entry {self.sequence + 1} of the ledger is missing")
        if sequence == 1 and self._key.check not in text:
            raise LedgerError("the key is not this ledger's; name the right file by key= or THRESHER_LEDGER_KEY")
        if digest != self._key.hash(self.head, text):
            raise LedgerError(f"entry {sequence} of the ledger was changed, or one before it was left out or put in")
        try:
            body = json.loads(text)
            getattr(self, f"_read_{body['kind']}")(body, digest)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise LedgerError(
                f"entry {sequence} of the ledger cannot be read ({error}); it may need a newer thresher"
            ) from None
        self.sequence, self.head = sequence, digest
        self.places[digest] = sequence

    def _read_open(self, body: Mapping[str, object], digest: str) -> None:
        if body["format"] != FORMAT:
            raise ValueError(f"format {body['format']!r}")

    def _read_grant(self, body: GrantBody, digest: str) -> None:
        dataset, analyst = body["dataset"], body["analyst"]
        budget = Budget(body["epsilon"], body["delta"], body["adjacency"])
        account = self._accounts.setdefault(dataset, Account(dataset, budget.adjacency, body["unit"]))
        account.grants[analyst] = Allowance(budget.epsilon, budget.delta)
        account.lines[body["id"]] = Line(body["id"], body["at"], analyst, account.grants[analyst], digest)

    def _read_rows(self, body: RowsBody, digest: str) -> None:
        self._sketches.setdefault(body["dataset"], []).append(tuple(body["sketch"]))

    def _read_reserve(self, body: ReserveBody, digest: str) -> None:
        account, cost = self.account(body["dataset"]), cost_of(json.dumps(body["releases"]))
        account.spend(cost, body["analyst"])
        line = Line(body["id"], body["at"], body["analyst"], cost, digest, body["algorithm"])
        account.lines[line.id] = line
        self._fits[body["id"]] = account.dataset
        self._planned[body["id"]] = _digest(body["releases"])

    def _read_charge(self, body: ChargeBody, digest: str) -> None:
        self.line(body["id"])
        self._rounds[body["id"]] = max(self.charged(body["id"]), int(body["rounds"]))

    def _read_commit(self, body: CommitBody, digest: str) -> None:
        self.line(body["id"]).certificate = body["certificate"]


def _digest(releases: list[ReleaseFields]) -> str:
    return sha256(json.dumps(releases, sort_keys=True).encode()).hexdigest()


@lru_cache(maxsize=1024)
def cost_of(releases: str) -> Cost:
    """What a list of releases, as JSON, costs together."""
    return sum((release_from_dict(fields).cost() for fields in json.loads(releases)), Cost())
