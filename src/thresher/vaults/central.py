"""The central vault: one trusted curator holds all rows.

Every question is charged to the plan's meter first, then computed on clipped rows, then noised. The private state
(rows, targets, norms) is dropped when the vault closes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from thresher.clipping import (
    LARGEST,
    SMALLEST,
    clip_rows,
    clip_targets,
    gradient_sensitivity,
    minimiser_sensitivity,
    residual_limits,
)
from thresher.engines import Engine, engine_for
from thresher.losses import LOSSES
from thresher.plan import Answer, Meter, Plan, Problem
from thresher.randomness import NoiseSource
from thresher.releases import Release
from thresher.vaults.minimise import minimise_strongly_convex

__all__ = ["CentralVault"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

_ROUND_OFF = 2.0**-53


class CentralVault:
    """Rows, clipped as they enter; noisy answers, as planned; nothing else."""

    def __init__(
        self, X: Any, y: Floats, plan: Plan, noise: NoiseSource, watch: Callable[[], None] = lambda: None
    ) -> None:
        self._plan = plan
        self._meter = Meter(plan)
        self._noise = noise
        self._watch = watch
        self._loss = LOSSES[self.problem.loss]
        rows = clip_rows(X, self.problem.bounds)
        if noise.hardened:  # dense BLAS products round a row differently depending on where it stands; these do not
            rows = sparse.csc_array(rows)
        self._engine: Engine | None = engine_for(rows, self.problem.intercept_column)
        self._targets = clip_targets(np.asarray(y, dtype=np.float64), self.problem.bounds) - self.problem.target_centre
        self._norms = self._engine.row_norms()
        self._limits = lru_cache(maxsize=1)(lambda clip: residual_limits(self._norms, clip))  # one clip is usual

    @property
    def plan(self) -> Plan:
        return self._plan

    @property
    def problem(self) -> Problem:
        return self._plan.problem

    @property
    def answers(self) -> tuple[Answer, ...]:
        """What was answered so far; holds no private value."""
        return self._meter.answers

    @property
    def randomness(self) -> str:
        """Where the noise comes from, in words."""
        return self._noise.description

    # -- questions ----------------------------------------------------------------------------------------------

    def gradient(self, theta: Floats, release: Release, clip: float) -> Floats:
        """(1/n) sum_i clip(r_i) x_i + noise, each row's term clipped to l2 norm ``clip``."""
        clip = float(clip)  # a NumPy half-precision clip would make the sensitivity half-precision too: zero, at times
        engine = self._charge("gradient", release, clip, theta)
        value = self._mean_gradient(engine, _margins(engine, theta), self._limits(clip))
        return self._noised_gradient(value, release, clip)

    def restricted_gradient(self, theta: Floats, support: Indices, release: Release, clip: float) -> Floats:
        """Coordinates ``support`` of the gradient + noise, each row's restricted term clipped to l2 norm ``clip``."""
        clip = float(clip)
        if not np.all((support >= 0) & (support < self.problem.dimension)):
            raise ValueError(f"support={support!r} must hold coordinates from 0 to {self.problem.dimension - 1}")
        engine = self._charge("restricted gradient", release, clip, theta)
        columns = engine.columns(support)
        value = self._mean_gradient(columns, _margins(engine, theta), residual_limits(columns.row_norms(), clip))
        return self._noised_gradient(value, release, clip)

    def minimiser(self, release: Release, clip: float, ridge: float) -> Floats:
        """argmin (1/n) sum_i l_i + (ridge/2)||theta||^2, + noise, gradients of each l_i of l2 norm at most ``clip``."""
        clip, ridge = float(clip), float(ridge)
        if not SMALLEST <= ridge <= LARGEST:
            raise ValueError(
                f"ridge={ridge!r} must be a number from {SMALLEST:g} to {LARGEST:g}: it is what bounds the sensitivity"
            )
        engine = self._charge("minimiser", release, clip, self.problem.origin())
        limits = self._limits(clip)

        def objective(theta: Floats) -> tuple[float, Floats]:
            margins = _margins(engine, theta)
            value = float(self._loss.clipped_value(margins, self._targets, limits).sum()) / self.problem.n
            gradient = self._mean_gradient(engine, margins, limits) + ridge * theta
            return value + ridge / 2 * float(theta @ theta), gradient

        smoothness = self.problem.curvature * self.problem.row_norm**2 * len(self._targets) / self.problem.n + ridge
        round_off = self._round_off(clip)
        tolerance = 0.01 * clip / self.problem.n + 4 * round_off  # 1 % more noise, and reachable in floating point
        theta = minimise_strongly_convex(objective, self.problem.origin(), ridge, smoothness, tolerance)
        adjacency = self._plan.budget.adjacency
        # A margin is off by at most d u ||x|| ||theta||, with ||theta|| <= 2 clip / ridge at a minimiser over at most
        # 2 n rows: public numbers only, since the noise must not depend on how many rows there are.
        curvature = self.problem.curvature * self.problem.row_norm**2
        margins_off = 4 * self.problem.dimension * _ROUND_OFF * curvature * clip / ridge
        certified = tolerance + round_off + margins_off
        sensitivity = minimiser_sensitivity(clip, self.problem.n, adjacency, ridge, certified)
        return self._noised(theta, release, clip, sensitivity, error=0.0)

    # -- closing ------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Drop the rows. The answers stay."""
        self._engine = None
        self._targets = self._norms = np.empty(0)
        self._limits.cache_clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a vault never leaves its process: it cannot be pickled or copied")

    # -- inside -------------------------------------------------------------------------------------------------

    def _charge(self, question: str, release: Release, clip: float, theta: Floats) -> Engine:
        """Refuse what cannot be answered, then pay; only after this may a row be touched."""
        if self._engine is None:
            raise RuntimeError("the vault is closed: its rows are gone and it answers nothing more")
        if not SMALLEST <= clip <= (LARGEST if release.multiplier > 0 else math.inf):
            raise ValueError(
                f"clip={clip!r} must be a number from {SMALLEST:g} to {LARGEST:g}: it is what bounds the sensitivity"
            )
        if self._noise.hardened and release.noise not in ("gaussian", "none"):
            raise ValueError(
                f"hardened=True has no exact sampler for {release.noise} noise; use gaussian noise or hardened=False"
            )
        if theta.shape != (self.problem.dimension,):
            raise ValueError(f"theta has shape {theta.shape}, the problem {self.problem.dimension} coordinates")
        if not np.all(np.isfinite(theta)):
            raise ValueError("the point asked about is not finite: the iteration has diverged, take a smaller step")
        self._meter.charge(release, question)
        return self._engine

    def _mean_gradient(self, engine: Engine, margins: Floats, limits: Floats) -> Floats:
        with np.errstate(invalid="ignore"):
            residuals = self._loss.residual(margins, self._targets)
        # a margin that overflowed to inf - inf says nothing; it must not become a NaN in everybody's answer
        residuals[np.isnan(residuals)] = 0.0
        np.clip(residuals, -limits, limits, out=residuals)
        residuals /= self.problem.n
        return engine.transposed_product(residuals)

    def _noised_gradient(self, value: Floats, release: Release, clip: float) -> Floats:
        sensitivity = gradient_sensitivity(clip, self.problem.n, self._plan.budget.adjacency)
        return self._noised(value, release, clip, sensitivity, self._round_off(clip))

    def _round_off(self, clip: float) -> float:
        """An l2 bound on the floating-point error of a mean gradient.

        A sum of m terms carries a relative error of at most about m u coordinate by coordinate (Higham 2002, section
        4.2), so (m + 8) u * (1/n) sum_i ||g_i|| in norm. The estimators refuse more than m = 2 n rows.
        """
        return 0.0 if math.isinf(clip) else 2 * (2 * self.problem.n + 8) * _ROUND_OFF * clip

    def _noised(self, value: Floats, release: Release, clip: float, sensitivity: float, error: float) -> Floats:
        """The only way out: noise as planned, scaled by the sensitivity, and an entry in the record."""
        if release.noise == "l2-laplace":
            scale = release.multiplier * sensitivity
            answer = value + self._noise.l2_laplace(scale, value.size)
        else:
            answer, scale = self._noise.gaussian(value, sensitivity, release.multiplier, error)
        if release.multiplier > 0 and not 0 < scale < math.inf:
            raise FloatingPointError(
                f"noise scale {scale!r}: the bounds are too extreme to be private; nothing is answered"
            )
        self._meter.record(Answer(release, clip, sensitivity, scale))
        self._watch()
        return answer


def _margins(engine: Engine, theta: Floats) -> Floats:
    """X theta; a product that overflows is infinite, which the clip of the residual takes care of."""
    with np.errstate(over="ignore", invalid="ignore"):
        return engine.product(theta)
