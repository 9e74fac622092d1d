"""Before the data is touched: public facts (Problem), what will be released (Plan), and the meter that holds to it."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from thresher.accounting import Cost
from thresher.budget import Budget, BudgetExceeded, is_whole
from thresher.clipping import Bounds
from thresher.losses import LOSSES
from thresher.measurements import LINEAR, Measurement
from thresher.penalties import NO_PENALTY, Penalty
from thresher.releases import Release, SampledRelease, ZCDPFilter, is_priced_here
from thresher.trust import Trust

__all__ = ["MOST_ROWS_EACH", "Answer", "Calibration", "Meter", "Plan", "Problem", "Unit"]

Calibration = Literal["proved", "printed"]

Unit = Literal["row", "person"]
"""What neighbours differ in: one row, or all rows of one person."""

MOST_ROWS_EACH = 64
"""Rows of one person that count. The average of 64 is off that of all by an eighth of their spread, which is little
beside how people differ; and up to a million people, the round-off of so many terms stays far below what one moves."""

OF_ROWS_ONLY = ("perturbed minimiser", "printed gradient", "printed labels", "categories")
"""Questions whose price, or formula, is about a single row: a person with several rows has none."""

INTERCEPT_SHARE = 1 / 8
"""The intercept's constant column, in units of the row bound: it costs sqrt(1 + 1/64) - 1 = 0.8 % more noise."""

INTERCEPT_ENTRY = 0.5
"""The intercept's constant column, in units of the other columns' bounds, where only a few columns are asked about."""


@dataclass(frozen=True)
class Problem:
    """Public facts only. Nothing here is read from the data except n and d."""

    n: int
    d: int
    sparsity: int
    loss: str
    bounds: Bounds
    intercept: bool = True
    outputs: int = 1
    """Linear predictors fitted side by side: 1, or one per class if there are more than two."""
    measurement: Measurement = LINEAR
    """What the target measures: the margin itself, or an increasing function of it."""
    penalty: Penalty = NO_PENALTY
    """What is added to the loss: public, so it needs no noise. Sparse algorithms have a ridge of their own instead."""
    unit: Unit = "row"
    """What n counts and neighbours differ in. How many rows people have is private."""

    def __post_init__(self) -> None:
        if self.loss not in LOSSES:
            raise ValueError(f"loss={self.loss!r} must be one of {', '.join(map(repr, LOSSES))}")
        if self.loss == "squared" and self.bounds.target is None:
            raise ValueError(
                "target_bound=None: give the public range of the target, a number B for [-B, B] or a pair (low, high); "
                "targets outside are clipped"
            )
        for name in ("n", "d", "sparsity", "outputs"):
            value = getattr(self, name)
            if not is_whole(value) or value < 1:
                raise ValueError(f"{name}={value!r} must be a whole number of at least 1")
            object.__setattr__(self, name, int(value))  # NumPy's small integers wrap around
        object.__setattr__(self, "intercept", bool(self.intercept))
        if self.unit not in get_args(Unit):
            raise ValueError(f"unit={self.unit!r} must be one of {', '.join(map(repr, get_args(Unit)))}")
        if (self.loss == "multinomial") != (self.outputs > 1):
            raise ValueError(f"outputs={self.outputs} with loss={self.loss!r}: several outputs are for 'multinomial'")
        if self.measurement != LINEAR and self.loss != "squared":
            raise ValueError(f"measurement={self.measurement.name!r} is for targets that are numbers, not for classes")
        if self.sparsity > self.d:
            raise ValueError(
                f"sparsity={self.sparsity} is larger than the number of columns, {self.d}; ask for at most {self.d}"
            )
        self.bounds.row_norm(self.d)  # raises if a per-column bound has the wrong length

    @property
    def counted(self) -> str:
        """What n counts, in words."""
        return "people" if self.unit == "person" else "rows"

    @property
    def rows_each(self) -> int:
        """How many rows of a unit enter a sum at most."""
        return MOST_ROWS_EACH if self.unit == "person" else 1

    @property
    def classifies(self) -> bool:
        """Whether targets are classes, so that residuals are differences of probabilities."""
        return self.loss != "squared"

    @property
    def width(self) -> int:
        """Coordinates of the iterate that are coefficients: d for each output, one output after the other."""
        return self.outputs * self.d

    @property
    def dimension(self) -> int:
        """Coordinates of the iterate: the coefficients and, last, the intercepts if there are any."""
        return self.width + self.outputs * self.intercept

    @property
    def intercept_column(self) -> float:
        """The constant that stands in the intercept's column of every row."""
        return INTERCEPT_SHARE * self.bounds.row_norm(self.d) if self.intercept else 0.0

    @property
    def units(self) -> NDArray[np.float64]:
        """What columns are divided by where only a few are asked about: each its bound, so that entries lie in [-1, 1].

        The intercept's column then is 1/2, about the size of the others; left as it is it would cost most of the noise.
        """
        units = self.entry_bounds
        units[self.d :] = self.intercept_column / INTERCEPT_ENTRY
        return units

    def norm_in_units(self, columns: int) -> float:
        """The l2 norm that no clipped row exceeds on so many columns in ``units``, and the intercept's."""
        norm = math.sqrt(columns)
        if self.bounds.row is not None:
            norm = min(norm, self.bounds.row / float(self.bounds.entries(self.d).min()))
        return math.hypot(norm, INTERCEPT_ENTRY if self.intercept else 0.0)

    @property
    def entry_bounds(self) -> NDArray[np.float64]:
        """What no clipped entry of a column exceeds in magnitude, the intercept's constant column last."""
        bounds = np.full(self.d + self.intercept, self.intercept_column)
        bounds[: self.d] = self.bounds.entries(self.d)
        return bounds

    @property
    def row_norm(self) -> float:
        """The l2 norm no clipped row exceeds, intercept column included."""
        return math.hypot(self.bounds.row_norm(self.d), self.intercept_column)

    @property
    def target_centre(self) -> float:
        """The public midpoint of the target range, taken off the targets when an intercept can give it back."""
        if self.bounds.target is None or not self.intercept or self.measurement != LINEAR:
            return 0.0  # what a non-linear measurement takes off cannot be given back
        return sum(self.bounds.target) / 2

    @property
    def target_radius(self) -> float:
        """No centred, clipped target is larger than this."""
        if self.bounds.target is None:
            return 1.0
        return max(abs(bound - self.target_centre) for bound in self.bounds.target)

    @property
    def curvature(self) -> float:
        """The loss's largest second derivative in the margin; for a non-linear measurement, a typical one."""
        return LOSSES[self.loss].curvature * self.measurement.slope

    def gradient_change(self, distance: float) -> float:
        """The most by which a row's gradient can change, in l2 norm, when theta moves by this distance."""
        return self.curvature * self.row_norm**2 * distance

    @property
    def enforced(self) -> dict[str, Any]:
        """The bounds, as certificates list them."""
        return {**asdict(self.bounds), "row_norm": self.row_norm, "intercept_column": self.intercept_column}

    @property
    def public_choices(self) -> dict[str, Any]:
        """What else certificates list: choices that cost no privacy but shape the model."""
        return {"penalty": asdict(self.penalty)} if self.penalty.strength else {}

    def penalty_gradient(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """That of the penalty, which leaves intercepts alone."""
        gradient = np.zeros_like(theta)
        gradient[: self.width] = self.penalty.gradient(theta[: self.width])
        return gradient

    def by_column(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """The iterate as the rows of X meet it: a vector, or a matrix with one column for each of several outputs."""
        if self.outputs == 1:
            return theta
        coefficients = theta[: self.width].reshape(self.outputs, self.d).T
        return np.vstack([coefficients, theta[self.width :].reshape(-1, self.outputs)])

    def stacked(self, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
        """The inverse of ``by_column``."""
        if self.outputs == 1:
            return matrix
        return np.concatenate([matrix[: self.d].T.ravel(), matrix[self.d :].ravel()])

    def model_of(self, theta: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """One row of coefficients and one intercept per output, in the units of the rows and the target."""
        intercepts = np.full(self.outputs, self.target_centre)
        if self.intercept:
            intercepts += self.intercept_column * theta[self.width :]
        return theta[: self.width].reshape(self.outputs, self.d), intercepts

    def origin(self) -> NDArray[np.float64]:
        return np.zeros(self.dimension)


@dataclass(frozen=True)
class Plan:
    """Everything an algorithm will release for a Problem within a Budget, with every hyper-parameter resolved."""

    algorithm: str
    problem: Problem
    budget: Budget
    releases: tuple[Release, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
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
                raise TypeError(f"{release!r} is not a release priced by thresher.releases, so it cannot be planned")
            if isinstance(release, SampledRelease) and (
                release.adjacency != self.budget.adjacency or release.population != self.problem.n
            ):
                raise ValueError(
                    f"{release!r} is priced for other neighbours or another number of {self.problem.counted} than the "
                    f"plan's {self.budget.adjacency} and {self.problem.n}"
                )
        if self.problem.unit == "person":
            self._refuse_what_is_of_rows()
        if self.calibration == "proved" and self.epsilon > self.budget.epsilon:
            raise BudgetExceeded(
                f"the planned releases cost epsilon={self.epsilon:.6g} at delta={self.budget.delta:g}, "
                f"more than the budget's {self.budget.epsilon:g}"
            )

    def _refuse_what_is_of_rows(self) -> None:
        what = "calibration='printed'" if self.calibration == "printed" else ""
        for release in self.releases:
            what = f"its {release.question}" if release.question in OF_ROWS_ONLY else what
        if what:
            raise ValueError(
                f"groups: {self.algorithm!r} is out, as {what} is proved, or printed, for people with one row each; "
                "use 'auto' or another algorithm with its default calibration, or one row per person and no groups"
            )

    @property
    def cost(self) -> Cost:
        return sum((release.cost() for release in self.releases), Cost())

    @property
    def epsilon(self) -> float:
        """What the releases cost together at the budget's delta."""
        return self.cost.epsilon(self.budget.delta)[0]

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

    Where the plan holds a ``thresher.releases.ZCDPFilter``, other releases may be asked for as well, until their
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
        self._answers: list[Answer] = []
        self._charged = 0
        self._lock = threading.Lock()

    def charge(self, release: Release, question: str) -> None:
        """Pay for one answer to ``question`` with ``release``, or raise ``BudgetExceeded``."""
        with self._lock:
            rho = self._price(release)
            if release.question != question:
                raise BudgetExceeded(
                    f"{release!r} pays for a {release.question}, not for a {question}; nothing was answered"
                )
            if rho is None:
                if self._left[release] < 1:
                    raise BudgetExceeded(f"{release!r} is used up; nothing was answered")
                self._left[release] -= 1
            else:
                if not rho <= self._rho_left:
                    raise BudgetExceeded(f"the budget is used up but for less than {release!r}; nothing was answered")
                self._rho_left -= rho * (1 + 1e-12)  # the round-off of many differences must not add up to a gift
            self._charged += 1

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
