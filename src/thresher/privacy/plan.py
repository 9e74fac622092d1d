"""Before the data is touched: what will be released (Plan), and the meter that holds to it."""

from __future__ import annotations

import math
import threading
from collections import Counter
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, get_args

from thresher.privacy.accounting import Cost
from thresher.privacy.budget import Budget, BudgetExceeded
from thresher.privacy.facts import PublicCounts, PublicFacts, Settings
from thresher.privacy.pricing import Order, epsilon_in_order, is_order_of, least_noise
from thresher.privacy.releases import Release, SampledRelease, ZCDPFilter, is_priced_here
from thresher.privacy.trust import Trust

__all__ = ["Answer", "Calibration", "Meter", "Plan", "table_facts"]

Calibration = Literal["proved", "printed"]


@dataclass(frozen=True)
class Plan:
    """Everything an algorithm will release about a table within a Budget, with every hyper-parameter resolved.

    Parameters
    ----------
    algorithm : str
        Its name, as certificates list it.
    problem : PublicFacts
        What everybody may know; for linear models a ``LinearProblem``.
    budget : Budget
        What the releases may cost together.
    releases : tuple of Release
        Every kind of answer, and how often it may be asked for.
    settings : mapping
        Hyper-parameters, resolved, by name.
    calibration : "proved" or "printed"
        Whether the noise is proved to keep the budget, or is that of a paper and costs what it costs.
    notes : tuple of str
        What the certificate is to tell beside it.
    trust : str
        Who sees what (``thresher.privacy.trust``).

    Examples
    --------
    >>> from thresher import Budget
    >>> from thresher.privacy.bounds import Bounds
    >>> from thresher.privacy.facts import PublicFacts
    >>> from thresher.privacy.plan import Plan
    >>> from thresher.privacy.releases import GaussianGradient
    >>> budget = Budget(1.0, 1e-6)
    >>> gradients = GaussianGradient.calibrated(budget, times=10)
    >>> plan = Plan("ten-gradients", PublicFacts(1000, 5, Bounds(feature=1.0)), budget, (gradients,))
    >>> round(plan.epsilon, 9)
    1.0
    """

    algorithm: str
    problem: PublicCounts
    budget: Budget
    releases: tuple[Release, ...]
    settings: Settings = field(default_factory=dict)
    calibration: Calibration = "proved"
    notes: tuple[str, ...] = ()
    trust: Trust = "central"

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", MappingProxyType(dict(self.settings)))
        object.__setattr__(self, "releases", tuple(self.releases))
        if self.calibration not in get_args(Calibration):
            raise ValueError(f"calibration={self.calibration!r} must be one of {', '.join(get_args(Calibration))}")
        for release in self.releases:
            if not is_priced_here(release):
                raise TypeError(
                    f"{release!r} is not a release priced by thresher.privacy.releases, so it cannot be planned"
                )
            if isinstance(release, SampledRelease) and (
                release.adjacency != self.budget.adjacency or release.population != self.problem.n
            ):
                raise ValueError(
                    f"{release!r} is priced for other neighbours or another number of {self.problem.counted} than the "
                    f"plan's {self.budget.adjacency} and {self.problem.n}"
                )
        of_rows = [release.question for release in self.releases if release.question.of_rows_only]
        what = "calibration='printed'" if self.calibration == "printed" else ""
        what = f"its {of_rows[-1]}" if of_rows else what
        if what and self.problem.unit == "person":
            raise ValueError(
                f"groups: {self.algorithm!r} is out, as {what} is proved, or printed, for people with one row each; "
                "use 'auto' or another algorithm with its default calibration, or one row per person and no groups"
            )
        if self.order is not None and not is_order_of(self.releases, self.order):
            raise ValueError(
                f"settings['order']={self.order!r} must name the position of each release as often as it may be asked "
                "for; take thresher.privacy.pricing.positions"
            )
        # by the currencies that add up, which take no time, or in the order asked
        allowed = self.budget.epsilon
        if self.calibration == "proved" and not (self.ledger_epsilon <= allowed or self.epsilon <= allowed):
            raise BudgetExceeded(
                f"the planned releases cost epsilon={self.epsilon:.6g} at delta={self.budget.delta:g}, "
                f"more than the budget's {allowed:g}"
            )

    @property
    def cost(self) -> Cost:
        return sum((release.cost() for release in self.releases), Cost())

    @property
    def order(self) -> Order | None:
        """In which order questions are asked, where the price relies on it: positions among the distinct releases."""
        order: Order | None = self.settings.get("order")
        return order

    @property
    def price(self) -> tuple[float, str]:
        """What the releases cost together at the budget's delta, and by which proof."""
        return epsilon_in_order(self.releases, self.order, self.budget)

    @property
    def epsilon(self) -> float:
        """What the releases cost together at the budget's delta."""
        return self.price[0]

    @property
    def ledger_epsilon(self) -> float:
        """What the releases cost at the budget's delta in the currencies that add up over fits, as ledgers count it.

        More than ``epsilon`` where noise is as small as the exact price of one fit allows; a fit with a ledger is
        planned so that it is not.
        """
        return self.cost.epsilon(self.budget.delta)[0]

    def with_least_noise(self) -> Plan:
        """The same with as much less noise as the exact price of its order allows."""
        if self.calibration != "proved":
            return self
        return replace(self, releases=least_noise(self.releases, self.order, self.budget))

    def __reduce__(self) -> tuple[Any, ...]:
        # a read-only mapping does not pickle
        return type(self), (
            self.algorithm, self.problem, self.budget, self.releases, dict(self.settings), self.calibration, self.notes,
            self.trust,
        )  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """One answer as it was given: the release it was charged to, the clip in force, what it bought, the noise added."""

    release: Release
    clip: float
    sensitivity: float
    scale: float


class Meter:
    """Counts every answer against the plan. A release is charged before the data is touched and never refunded.

    Where the plan holds a ``ZCDPFilter``, other releases may be asked for as well, until their
    zCDP would cross its cap.
    """

    def __init__(self, plan: Plan) -> None:
        self._left = Counter[Release]()
        self._rho_left = 0.0
        for release in plan.releases:
            if isinstance(release, ZCDPFilter):
                self._rho_left += release.rho
            else:
                self._left[release] += release.times
        distinct = tuple(dict.fromkeys(plan.releases))
        self._order = None if plan.order is None else [distinct[at] for at in plan.order]
        self._place = 0
        self._answers: list[Answer] = []
        self._charged = 0
        self._lock = threading.Lock()

    def charge(self, release: Release, question: str) -> None:
        """Pay for one answer to ``question`` with ``release``, or raise ``BudgetExceeded``."""
        with self._lock:
            rho = self._price(release)
            if release.question.name != question:
                raise BudgetExceeded(
                    f"{release!r} pays for a {release.question}, not for a {question}; nothing was answered"
                )
            if rho is None:
                if self._left[release] < 1:
                    raise BudgetExceeded(f"{release!r} is used up; nothing was answered")
                self._pass_to(release)
                self._left[release] -= 1
            else:
                if not rho <= self._rho_left:
                    raise BudgetExceeded(f"the budget is used up but for less than {release!r}; nothing was answered")
                self._rho_left -= rho * (1 + 1e-12)  # the round-off of many differences must not add up to a gift
            self._charged += 1

    def _pass_to(self, release: Release) -> None:
        """Where the price relies on an order: go on to this question's next place; what is passed over is forfeited."""
        if self._order is None:
            return
        place = self._place
        while place < len(self._order) and self._order[place] != release:
            place += 1
        if place == len(self._order):
            raise BudgetExceeded(
                f"{release!r} is asked after what the plan asks later, and its price holds for the plan's order only; "
                "nothing was answered"
            )
        self._place = place + 1

    def _price(self, release: Release) -> float | None:
        """The zCDP of a release that only the filter can pay for; None for one that the plan lists."""
        if is_priced_here(release) and release in self._left:
            return None
        cost = release.cost() if is_priced_here(release) and not isinstance(release, ZCDPFilter) else None
        # a cap is in zCDP alone: it pays for no events of a small chance
        beyond = cost is None or cost.sampled or cost.lost > 0 or math.isinf(cost.rho)
        if self._rho_left == 0 or cost is None or beyond or release.times != 1:
            raise BudgetExceeded(f"{release!r} is not in the plan; nothing was answered")
        return cost.rho

    def record(self, answer: Answer) -> None:
        same = self._answers and self._answers[-1] == answer
        self._answers.append(self._answers[-1] if same else answer)  # many equal ones take little room

    @property
    def answers(self) -> tuple[Answer, ...]:
        return tuple(self._answers)

    @property
    def charged(self) -> int:
        """How many answers were paid for, given or not."""
        return self._charged


def table_facts(plan: Plan) -> PublicFacts:
    """What is public about the table that a plan asks about."""
    if not isinstance(plan.problem, PublicFacts):
        raise TypeError(f"a plan of {plan.algorithm!r} is about {type(plan.problem).__name__}, not a table")
    return plan.problem
