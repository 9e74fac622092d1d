"""One fit, whoever holds the rows: plan, pay, ask a vault, certify, verify, keep, settle."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from thresher.algorithms import REGISTRY
from thresher.algorithms.signal_to_noise import noise_over_largest_signal
from thresher.data.typing import Table
from thresher.ledger import Ledger, Reservation, cost_told_if_memory_fails, reservation_for
from thresher.ledger.repeats import note_of_repeats
from thresher.privacy import logs
from thresher.privacy.budget import Budget
from thresher.privacy.certificate import Certificate, certify
from thresher.privacy.facts import PublicCounts
from thresher.privacy.plan import Answer, Plan
from thresher.privacy.progress import progress_bar
from thresher.privacy.warnings import LargeDelta, NoiseDrowns, PrintedNoise, PrivacyOff, ThresherWarning
from thresher.vaults.problem import linear_problem
from thresher.vaults.vault import Vault

__all__ = ["Design", "Finding", "Fit", "Keeper", "Outcome", "Planner", "Published", "completed"]

KNOW_WHAT_PAYS = ("newton",)
"""Algorithms that keep as many columns as pay for their noise."""

Finding = Any
"""What an algorithm returns: a vector, ranges of columns, a module's weights. Who asked it knows which."""

Published = Mapping[str, Any]
"""By-products by name, which leave with the model."""


Facts = Any
Asked = Any
"""The problem and the vault that an algorithm takes: each knows its own kind of both."""


class Planner(Protocol):
    """What asks: any algorithm."""

    def plan(self, problem: Facts, budget: Budget) -> Plan: ...

    def run(self, vault: Asked) -> Finding: ...


@dataclass(frozen=True)
class Design:
    """What will be asked, of what, and for how much: all of a fit that is known before a row is looked at."""

    problem: PublicCounts
    algorithm: Planner
    budget: Budget

    def plan(self) -> Plan:
        """What the algorithm will release, which must be about this problem and within this budget."""
        plan = self.algorithm.plan(self.problem, self.budget)
        if plan.problem != self.problem or plan.budget != self.budget:
            raise ValueError(f"algorithm {plan.algorithm!r} planned for another problem or budget than it was given")
        if getattr(self.problem, "as_many_as_pay", False) and plan.algorithm not in KNOW_WHAT_PAYS:
            raise ValueError(
                f"sparsity=None: {plan.algorithm!r} cannot tell how many features pay for their noise; give a number, "
                f"such as sparsity=10, or take algorithm={KNOW_WHAT_PAYS[0]!r}, of a curator's models"
            )
        return plan


@dataclass(frozen=True)
class Outcome:
    """What a fit found, and what was said while its vault was open."""

    found: Finding
    answers: tuple[Answer, ...]
    randomness: str
    published: Published = field(default_factory=dict)
    """By-products that leave with the model."""
    chosen: Plan | None = None
    """Of a search, the plan of the trial that is told of."""


class Keeper(Protocol):
    """Who keeps what a fit found."""

    def keep(self, outcome: Outcome) -> str | None:
        """Make it the model's; the hash of the model."""

    def forget(self) -> None:
        """Leave no model: nobody gets one that nothing counts."""


class Fit:
    """A fit of ``plan``: it is announced when this is made, then paid for, asked, and completed."""

    def __init__(self, plan: Plan, verbose: int = 0) -> None:
        self.plan = plan
        self.paid: Reservation | None = None
        self._verbose = verbose
        logs.planned(plan)
        _warn_about(plan)

    def pay(
        self, ledger: Ledger | str | Path | None, dataset: str | None, rows: Table = None,
        begun: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        """Reserve the plan's cost where there is a ledger; one that was ``begun`` goes on with its reservation."""
        self.paid = reservation_for(ledger, dataset, self.plan, rows, begun)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """If memory runs out within it, the error says what stays spent."""
        with cost_told_if_memory_fails(self.paid, self.plan):
            yield

    def remember(self, rows: Table) -> tuple[str, ...]:
        """Notes for the certificate, if this process has fitted these rows before; it warns of it once."""
        with self.counted():
            return note_of_repeats(rows, self.plan, counted=self.paid is not None)

    def ask(
        self, open_vault: Callable[[Callable[[], None]], AbstractContextManager[Vault]], run: Callable[[Asked], Finding]
    ) -> Outcome:
        """What ``run`` makes of the answers of a vault, which is opened with what watches it, and then closed."""
        questions = sum(release.times for release in self.plan.releases)
        with (
            self.counted(),
            progress_bar(self.plan.algorithm, questions, enabled=self._verbose > 0) as watch,
            open_vault(watch) as vault,
        ):
            found = run(vault)
            return Outcome(found, vault.answers, vault.randomness, vault.published, vault.chosen)

    def complete(
        self, keeper: Keeper, outcome: Outcome, assumptions: tuple[str, ...] = (), notes: tuple[str, ...] = (),
        versions: Mapping[str, str] = MappingProxyType({}),
    ) -> Certificate:  # fmt: skip
        """Certify with ``notes`` beside those of the plan, verify, keep what was found, settle with the ledger."""
        told = replace(self.plan, notes=(*self.plan.notes, *notes))
        return completed(keeper, told, outcome, assumptions, self.paid, versions)


def completed(
    keeper: Keeper, plan: Plan, outcome: Outcome, assumptions: tuple[str, ...] = (), paid: Reservation | None = None,
    versions: Mapping[str, str] = MappingProxyType({}),
) -> Certificate:  # fmt: skip
    """The end of every fit, also of one that was asked over days: certify, verify, keep, settle."""
    certificate = certify(plan, outcome.answers, outcome.randomness, assumptions, outcome.chosen)
    if not certificate.verify():
        raise RuntimeError(f"the certificate would not verify, so the model is dropped: {certificate.verify()}")
    try:
        known = {**certificate.versions, **versions}
        certificate = replace(certificate, versions=known, model=keeper.keep(outcome))  # before the ledger notes it
        return certificate if paid is None else paid.settle(certificate)
    except BaseException:
        keeper.forget()
        raise


def _warn_about(plan: Plan) -> None:
    """Say loudly where a plan protects less than its numbers suggest, and where it cannot find anything."""
    budget, n, counted = plan.budget, plan.problem.n, plan.problem.counted
    if not budget.private:
        _warn(
            PrivacyOff,
            f"epsilon={budget.epsilon:g}: privacy is OFF, the model may reveal single {counted}; never publish it, and "
            "give a finite epsilon for one that you will",
        )
        return
    if plan.calibration == "printed":
        _warn(
            PrintedNoise,
            f"calibration='printed': the noise printed in the paper costs epsilon={plan.epsilon:.4g} where "
            f"{budget.epsilon:g} is claimed; it is for reproduction only, use calibration='proved'",
        )
    if budget.delta >= 1 / n:
        _warn(
            LargeDelta,
            f"delta={budget.delta:g} is not below 1/n={1 / n:g}: it allows publishing some {counted} in the clear "
            "(erratum E-4); use delta=None for 1/n^2",
        )
    if plan.trust == "central" and plan.algorithm in REGISTRY and budget.delta > 0:  # pure DP has no such rule
        problem = linear_problem(plan)
        least = noise_over_largest_signal(problem, budget)
        if least > 1:
            _warn(
                NoiseDrowns,
                f"epsilon={budget.epsilon:g}, sparsity={problem.sparsity} with {n} {counted}: even a feature that "
                f"decides the target alone drowns, the noise is {least:.2g} times its signal; bring more {counted}, a "
                "larger epsilon, a smaller sparsity or tighter bounds (thresher plan tells what is enough)",
            )


def _warn(kind: type[ThresherWarning], message: str) -> None:
    warnings.warn(message, kind, stacklevel=7)  # where fit was called
