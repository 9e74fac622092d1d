"""The rows behind a central vault: how they are clipped as they enter, paid for, noised, and dropped."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from thresher.clipping import clip_rows, clip_targets, gradient_sensitivity, residual_limits
from thresher.engines import Engine, engine_for
from thresher.losses import loss_of
from thresher.partitions import applied
from thresher.plan import OF_ROWS_ONLY, Plan
from thresher.randomness import NoiseSource
from thresher.releases import RandomTrials, Release, ZCDPFilter
from thresher.vaults.shares import Shares
from thresher.vaults.vault import Vault, nobody

__all__ = ["MOST_PRESENT", "ROUND_OFF", "Rows", "check_samplers", "clip_residuals", "margins_of", "round_off"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

ROUND_OFF = 2.0**-53
MOST_PRESENT = 2  # rows, or people, times n; the estimators refuse more
EXACTLY_SAMPLED = ("gaussian", "gumbel", "dithered binomial", "none")
OF_SEVERAL_OUTPUTS = ("gradient", "sampled gradient", "sampled momentum", "step length")


class Restricted(NamedTuple):
    """Some columns of the rows, over their units."""

    engine: Engine
    units: Floats
    norms: Floats  # of the rows, on these columns


class Rows(Vault):
    """Clipped rows and targets, the meter, the noise; questions are added by the classes that inherit from it.

    ``owners`` says whose each row is, where the unit of privacy is a person.
    """

    _shares: Shares | None = None  # every row counts 1

    def __init__(
        self, X: Any, y: Floats, plan: Plan, noise: NoiseSource, watch: Callable[[], None] = nobody,
        owners: Indices | None = None,
    ) -> None:  # fmt: skip
        super().__init__(plan, noise, watch)
        if (owners is None) != (self.problem.unit == "row"):
            raise ValueError(
                f"owners must be given where the unit is a person, and only there; it is {plan.problem.unit!r}"
            )
        check_samplers(plan, noise.hardened)
        self._views: list[Self] = []
        self._loss = loss_of(self.problem.loss, self.problem.measurement)
        rows, targets = self._clipped(X, np.asarray(y, dtype=np.float64))
        if noise.hardened:  # dense BLAS products round a row differently depending on where it stands; these do not
            rows = applied(sparse.csc_array, rows)
        self._engine: Engine | None = engine_for(rows, self.problem.intercept_column)
        self._targets = targets - self.problem.target_centre
        if owners is not None:
            self._shares = Shares(owners, noise)
        self._memory: dict[str, tuple[Any, Any]] = {}

    def one_against_rest(self, output: int, plan: Plan) -> Self:
        """The same rows with "is it class ``output``" for a target, answering ``plan`` on this vault's meter."""
        self._open()
        one = replace(self.problem, loss="logistic", outputs=1)  # of other facts, sensitivities would be understated
        if (plan.problem, plan.budget.adjacency) != (one, self._plan.budget.adjacency):
            raise ValueError("plan is for other public facts than this vault's; plan for one output of its problem")
        view = object.__new__(type(self))
        view.__dict__.update(self.__dict__)
        view._plan, view._loss, view._views, view._memory = plan, loss_of(plan.problem.loss), [], {}
        view._targets = self._targets[:, output].copy()
        self._views.append(view)
        return view

    # -- closing ------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Drop the rows. The answers stay."""
        for view in self._views:
            view.close()
        self._engine = None
        self._targets = np.empty(0)
        self._shares = None
        self._memory.clear()

    # -- for the questions --------------------------------------------------------------------------------------

    def _charge(self, question: str, release: Release, clip: float, theta: Floats | None) -> Engine:
        """Refuse what cannot be answered, then pay; only after this may a row be touched."""
        engine = self._open()
        self._check_question(release, clip, theta)
        check_sampler(release, self._plan, self._noise.hardened)
        if self.problem.unit == "person" and question in OF_ROWS_ONLY:
            raise ValueError(f"a {question} is for people with one row each; ask another question")
        if self.problem.outputs > 1 and question not in OF_SEVERAL_OUTPUTS:
            raise ValueError(f"a {question} is answered for one output at a time; ask one_against_rest(k) instead")
        self._meter.charge(release, question)
        return engine

    def _clipped(self, X: Any, y: Floats) -> tuple[Any, Floats]:
        """Rows and targets as the public bounds let them in."""
        return applied(clip_rows, X, self.problem.bounds), clip_targets(y, self.problem.bounds)

    @property
    def _present(self) -> int:
        """How many rows, or people, there are; n is what is public about that."""
        return len(self._targets) if self._shares is None else self._shares.people

    def _counted(self, values: Floats) -> Floats:
        """The same array, each row's value times what the row counts; all of it is 1 where rows are the unit."""
        return values if self._shares is None else self._shares.times(values)

    def _limits(self, clip: float) -> Floats:
        """Those of whole rows."""
        return self._known("limits", clip, lambda: self._limits_of(self._norms(), clip))  # type: ignore[no-any-return]

    def _norms(self) -> Floats:
        """||x_i||_2 of whole rows."""
        return self._known("norms", None, self._open().row_norms)  # type: ignore[no-any-return]

    def _limits_of(self, norms: Floats, clip: float) -> Floats:
        """The residuals, or factors, that keep rows of these norms within l2 norm ``clip``."""
        return residual_limits(norms, clip)

    def _open(self) -> Engine:
        if self._engine is None:
            raise RuntimeError("the vault is closed: its rows are gone and it answers nothing more")
        return self._engine

    def _check_support(self, support: Indices) -> None:
        if not np.all((support >= 0) & (support < self.problem.dimension)):
            raise ValueError(f"support={support!r} must hold coordinates from 0 to {self.problem.dimension - 1}")

    def _restricted(self, engine: Engine, support: Indices) -> Restricted:
        """The columns in ``support`` over their units."""

        def compute() -> Restricted:
            units = self.problem.units[support]
            columns = engine.columns(support, 1 / units)
            return Restricted(columns, units, columns.row_norms())

        return self._known("columns", support, compute)  # type: ignore[no-any-return]

    def _margins(self, engine: Engine, theta: Floats) -> Floats:
        """X theta of all rows."""
        return self._known("margins", theta, lambda: margins_of(engine, self.problem.by_column(theta)))  # type: ignore[no-any-return]

    def _known(self, what: str, key: Any, compute: Callable[[], Any]) -> Any:
        """What was computed for this key the last time: several questions in a row are about one theta, or support."""
        known = self._memory.get(what)
        if known is None or not _same(known[0], key):
            known = self._memory[what] = key.copy() if isinstance(key, np.ndarray) else key, compute()
        return known[1]

    def _residuals(self, margins: Floats, rows: Indices | slice = slice(None)) -> Floats:
        """The loss's slope in the margins, which are those of ``rows``."""
        with np.errstate(over="ignore", invalid="ignore"):
            residuals = self._loss.residual(margins, self._targets[rows])
        # a margin that overflowed to inf - inf says nothing; it must not become a NaN in everybody's answer
        residuals[np.isnan(residuals)] = 0.0
        return residuals

    def _clipped_residuals(self, limits: Floats | float) -> Callable[[Floats], Floats]:
        """Residuals, as a function of the margins, of which none or no row's norm exceeds its limit, as they count."""
        return lambda margins: self._counted(clip_residuals(self._residuals(margins), limits))

    def _mean_gradient(self, engine: Engine, margins: Floats, limits: Floats | float) -> Floats:
        residuals = self._clipped_residuals(limits)(margins)
        residuals /= self.problem.n
        return engine.transposed_product(residuals)

    def _mean_sensitivity(self, clip: float) -> float:
        return gradient_sensitivity(clip, self.problem.n, self._plan.budget.adjacency)

    def _round_off(self, clip: float) -> float:
        return round_off(self.problem.n, clip, self.problem.rows_each)

    def _noised(self, value: Floats, release: Release, clip: float, sensitivity: float, error: float) -> Floats:
        """The way out of every number: noise as planned, scaled by the sensitivity, and an entry in the record."""
        answer, scale = self._added(value, release.noise, sensitivity, release.multiplier, error)
        self._record(release, clip, sensitivity, scale)
        return answer

    def _added(
        self, value: Floats, noise: str, sensitivity: float, multiplier: float, error: float = 0.0
    ) -> tuple[Floats, float]:
        """``value`` plus noise of the named law, and the noise's scale."""
        if noise == "l2-laplace":
            scale = multiplier * sensitivity
            return value + self._noise.l2_laplace(scale, value.size), scale
        return self._noise.gaussian(value, sensitivity, multiplier, error)

    def _chosen(
        self, scores: Floats, picks: int, release: Release, clip: float, sensitivity: float, error: float
    ) -> Indices:
        """The way out of every choice: the largest noisy scores, in order of position, and an entry in the record."""
        chosen, scale = self._top(scores, picks, release.noise, sensitivity, release.multiplier, error)
        self._record(release, clip, sensitivity, scale)
        return chosen

    def _top(
        self, scores: Floats, picks: int, noise: str, sensitivity: float, multiplier: float, error: float
    ) -> tuple[Indices, float]:
        """The positions of the largest scores plus noise of the named law, and the noise's scale."""
        if noise == "laplace":
            scale = multiplier * sensitivity if multiplier > 0 else 0.0
            return np.array([np.argmax(scores + self._noise.laplace(scale, scores.size))]), scale
        return self._noise.gumbel_top(scores, picks, sensitivity, multiplier, error)


def check_samplers(plan: Plan, hardened: bool) -> None:
    """Refuse a plan whose noise cannot be drawn as asked."""
    for release in plan.releases:
        if not isinstance(release, (RandomTrials, ZCDPFilter)):  # what those let pass is checked by itself
            check_sampler(release, plan, hardened)


def check_sampler(release: Release, plan: Plan, hardened: bool) -> None:
    if hardened and release.noise not in EXACTLY_SAMPLED:
        raise ValueError(
            f"hardened=True has no exact sampler for {release.noise} noise, which {plan.algorithm} needs; "
            "use another algorithm or noise, or hardened=False"
        )


def _same(known: Any, key: Any) -> bool:
    return np.array_equal(known, key) if isinstance(key, np.ndarray) else bool(known == key)


def round_off(n: int, clip: float, rows_each: int = 1) -> float:
    """An l2 bound on the floating-point error of a mean gradient.

    A sum of m terms carries a relative error of at most about m u coordinate by coordinate (Higham 2002, section 4.2),
    so (m + 8) u * (1/n) sum_i ||g_i|| in norm. The estimators refuse more than 2 n rows, or people, of whom each has at
    most ``rows_each`` terms that are not 0, which together count as one: m is at most 2 n rows_each, and the sum of the
    norms 2 n clip.
    """
    return 0.0 if math.isinf(clip) else MOST_PRESENT * (MOST_PRESENT * n * rows_each + 8) * ROUND_OFF * clip


def clip_residuals(residuals: Floats, limits: Floats | float) -> Floats:
    """The same array, now with no residual, or no row's norm, above its limit."""
    if residuals.ndim == 1:
        return np.clip(residuals, -limits, limits, out=residuals)
    # several outputs: a row's gradient is its residuals times x_i, so they are clipped together
    sizes = np.sqrt(np.einsum("ij,ij->i", residuals, residuals))
    residuals *= np.divide(limits, sizes, out=np.ones_like(sizes), where=sizes > limits)[:, None]
    return residuals


def margins_of(engine: Engine, theta: Floats) -> Floats:
    """X theta; a product that overflows is infinite, which the clip of the residual takes care of."""
    with np.errstate(over="ignore", invalid="ignore"):
        return engine.product(theta)
