"""The rows behind a central vault: how they are clipped as they enter, paid for, noised, and dropped."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple, Self, TypeVar, cast

import numpy as np

from thresher.data.dask import apply_to_rows
from thresher.privacy.arrays import Floats, Indices, Matrix
from thresher.privacy.bounds import LARGEST
from thresher.privacy.facts import MOST_ROWS_EACH
from thresher.privacy.plan import Plan
from thresher.privacy.questions import CertifiedSearch
from thresher.privacy.releases import Release
from thresher.privacy.sensitivity import most_present, norm_error, round_off
from thresher.vaults.clipping import clip_rows, clip_targets, residual_limits
from thresher.vaults.engines import Engine, engine_for
from thresher.vaults.kernels.rows import sum_of_outputs
from thresher.vaults.randomness import NoiseSource
from thresher.vaults.vault import Vault, no_watch

__all__ = ["Restricted", "Rows", "Shares", "clip_residuals", "margins_of"]


class Shares:
    """Whose rows they are, and what each of them counts: all rows of a person together count as one.

    Of a person with k rows each counts 1/k, so a person's part in every sum is an average of terms that are clipped one
    by one, and an average of vectors of norm at most C has norm at most C. So all that is said about a row elsewhere
    holds for a person, with the number of people for n. docs/people.md goes through the questions one by one.

    Of a person with more rows than may count, as many as may are drawn at random, each row by a number of its own; the
    others count 0. Draw the same for two neighbours: nobody else's draw depends on the rows of the person in whom they
    differ, and whichever of that person's rows are drawn, they count as one together. A mixture over the draws is no
    easier to tell apart than its components.
    """

    def __init__(self, owners: Indices, noise: NoiseSource) -> None:
        self.owners = owners
        self._counts = np.bincount(owners)
        self.people = len(self._counts)
        kept = np.ones(len(owners), dtype=bool)
        many = np.flatnonzero(self._counts[owners] > MOST_ROWS_EACH)
        if many.size:
            order = many[np.lexsort((noise.uniform(len(many)), owners[many]))]
            lengths = self._counts[np.unique(owners[many])]
            places = np.arange(len(many)) - np.repeat(np.cumsum(lengths) - lengths, lengths)  # among a person's rows
            kept[order[places >= MOST_ROWS_EACH]] = False
        self._counts = np.minimum(self._counts, MOST_ROWS_EACH)
        self.of_rows: Floats = np.where(kept, 1 / self._counts[owners], 0.0)

    def times(self, values: Floats) -> Floats:
        """The same array, each row's value, or values, now times what the row counts."""
        values *= self.of_rows if values.ndim == 1 else self.of_rows[:, None]
        return values

    def counted(self, places: Indices, count: int) -> Floats:
        """What the rows at places 0, 0 to 1, ..., 0 to count-1 count together; a row may be further up.

        Rows that count the same are counted, which is exact; only the fractions, few whatever the rows, are added up.
        """
        parts, counts = MOST_ROWS_EACH + 1, self.of_rows > 0
        one_of = np.rint(1 / self.of_rows[counts]).astype(np.intp)  # so many rows that count
        alike = np.bincount(places[counts] * parts + one_of, minlength=(count + 1) * parts)
        upto = np.cumsum(alike.reshape(-1, parts), axis=0)[:count, 1:] / np.arange(1, parts)
        sums: Floats = upto.sum(axis=1)
        return sums

    def rows_of(self, people: Indices) -> Indices:
        """The rows of these people that count."""
        lengths, first = self._counts[people], self._starts[people]
        at = np.arange(lengths.sum()) + np.repeat(first - np.cumsum(lengths) + lengths, lengths)
        rows: Indices = self._by_person[at]
        return rows

    @cached_property
    def _by_person(self) -> Indices:
        counted = np.flatnonzero(self.of_rows)
        return counted[np.argsort(self.owners[counted], kind="stable")]

    @cached_property
    def _starts(self) -> Indices:
        return np.cumsum(self._counts) - self._counts


Result = TypeVar("Result")


class Restricted(NamedTuple):
    """Some columns of the rows, over their units, or a projection of them."""

    engine: Engine
    units: Floats
    norms: Floats  # of these rows


class Rows(Vault):
    """Clipped rows and targets, the meter, the noise; questions are added by the classes that inherit from it.

    ``owners`` says whose each row is, where the unit of privacy is a person.
    """

    _shares: Shares | None = None  # every row counts 1

    def __init__(
        self, X: Matrix, y: Floats, plan: Plan, noise: NoiseSource, watch: Callable[[], None] = no_watch,
        owners: Indices | None = None,
    ) -> None:  # fmt: skip
        super().__init__(plan, noise, watch)
        if (owners is None) != (self.problem.unit == "row"):
            raise ValueError(
                f"owners must be given where the unit is a person, and only there; it is {plan.problem.unit!r}"
            )
        self._views: list[Self] = []
        rows, targets = self._clip(X, np.asarray(y, dtype=np.float64))
        self._engine: Engine | None = engine_for(rows, self.problem.intercept_column)
        self._targets = targets - self.problem.target_centre
        if owners is not None:
            self._shares = Shares(owners, noise)
        self._cache: dict[str, tuple[object, object]] = {}

    def one_against_rest(self, output: int, plan: Plan) -> Self:
        """The same rows with "is it class ``output``" for a target, answering ``plan`` on this vault's meter."""
        self._open()
        one = self.problem.of_one_output()  # of other facts, sensitivities would be understated
        if (plan.problem, plan.budget.adjacency) != (one, self._plan.budget.adjacency):
            raise ValueError("plan is for other public facts than this vault's; plan for one output of its problem")
        view = object.__new__(type(self))
        view.__dict__.update(self.__dict__)
        view._plan, view._views, view._cache = plan, [], {}
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
        self._cache.clear()

    # -- for the questions --------------------------------------------------------------------------------------

    def _charge(self, question: str, release: Release, clip: float, theta: Floats | None) -> Engine:
        """Refuse what cannot be answered, then pay; only after this may a row be touched."""
        engine = self._open()
        self._check_question(release, clip, theta)
        if self.problem.unit == "person" and release.question.of_rows_only:
            raise ValueError(f"a {question} is for people with one row each; ask another question")
        if self.problem.outputs > 1 and not release.question.of_several_outputs:
            raise ValueError(f"a {question} is answered for one output at a time; ask one_against_rest(k) instead")
        self._meter.charge(release, question)
        return engine

    def _clip(self, X: Matrix, y: Floats) -> tuple[Matrix, Floats]:
        """Rows and targets as the public bounds let them in."""
        return apply_to_rows(clip_rows, X, self.problem.bounds), clip_targets(y, self.problem.bounds)

    @property
    def _present(self) -> int:
        """How many rows, or people, there are; n is what is public about that."""
        return len(self._targets) if self._shares is None else self._shares.people

    def _counted(self, values: Floats) -> Floats:
        """The same array, each row's value times what the row counts; all of it is 1 where rows are the unit."""
        return values if self._shares is None else self._shares.times(values)

    def _limits(self, clip: float) -> Floats:
        """Those of whole rows."""
        return self._cached("limits", clip, lambda: self._limits_of(self._norms(), clip))

    def _norms(self) -> Floats:
        """||x_i||_2 of whole rows."""
        return self._cached("norms", None, self._open().row_norms)

    def _limits_of(self, norms: Floats, clip: float) -> Floats:
        """The residuals, or factors, that keep rows of these norms within l2 norm ``clip``."""
        return residual_limits(norms, clip)

    def _open(self) -> Engine:
        if self._engine is None:
            raise RuntimeError("the vault is closed: its rows are gone and it answers nothing more")
        return self._engine

    def _check_support(self, support: Indices) -> None:
        columns = self.problem.d + self.problem.intercept  # however many outputs there are
        if not np.all((support >= 0) & (support < columns)):
            raise ValueError(f"support={support!r} must hold coordinates from 0 to {columns - 1}")

    def _check_basis(self, basis: Floats | None, support: Indices | None) -> None:
        """So that rows times it are finite, and have no more entries than ``_round_off`` allows for."""
        if basis is None:
            return
        if support is None:
            raise ValueError("basis= is of the columns in support=, which is None; give both")
        most = min(len(support), self.problem.dimension)
        if basis.ndim != 2 or len(basis) != len(support) or not 1 <= basis.shape[1] <= most:
            raise ValueError(
                f"basis has shape {basis.shape}; it must have a row for each of {len(support)} columns in support, and "
                f"at most {most} columns"
            )
        if not np.all(np.abs(basis) <= LARGEST):
            raise ValueError(f"basis must hold numbers from -{LARGEST:g} to {LARGEST:g}; rows times it are not finite")

    def _restricted(self, engine: Engine, support: Indices, basis: Floats | None = None) -> Restricted:
        """The columns in ``support`` over their units; with a ``basis``, rows times it, which are then the rows that
        are clipped: what round-off does to a row there is part of what the row is."""

        def compute() -> Restricted:
            units = self.problem.units[support]
            if basis is None:
                columns = engine.columns(support, 1 / units)
            else:
                columns = engine.projected(support, basis / units[:, None])
            return Restricted(columns, units, columns.row_norms())

        if basis is None:
            return self._cached("columns", support, compute)
        return self._cached("projected columns", np.column_stack([support, basis]), compute)

    def _margins(self, engine: Engine, theta: Floats) -> Floats:
        """X theta of all rows."""
        return self._cached("margins", theta, lambda: margins_of(engine, self.problem.by_column(theta)))

    def _cached(self, what: str, key: object, compute: Callable[[], Result]) -> Result:
        """What was computed for this key the last time: several questions in a row are about one theta, or support."""
        known = self._cache.get(what)
        if known is None or not _same(known[0], key):
            known = self._cache[what] = key.copy() if isinstance(key, np.ndarray) else key, compute()
        return cast(Result, known[1])  # what one name is computed by is always of one type

    def _residuals(self, margins: Floats, rows: Indices | slice = slice(None)) -> Floats:
        """The loss's slope in the margins, which are those of ``rows``."""
        with np.errstate(over="ignore", invalid="ignore"):
            residuals = self.problem.loss.residual(margins, self._targets[rows])
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

    def _sensitivity(self, release: Release, clip: float, search: CertifiedSearch | None = None) -> float:
        return release.sensitivity(clip, self.problem.n, self._plan.budget.adjacency, search)

    @property
    def _most_present(self) -> int:
        """A public bound on ``_present``."""
        return most_present(self.problem.n, self._plan.budget.adjacency)

    def _round_off(self, clip: float) -> float:
        n = self.problem.n
        return round_off(n, clip, self._most_present) + norm_error(self.problem.dimension, clip) / n

    def _release_noisy(self, value: Floats, release: Release, clip: float, sensitivity: float, error: float) -> Floats:
        """The way out of every number: noise as planned, scaled by the sensitivity, and an entry in the record."""
        answer, scale = self._add_noise(value, release.noise, sensitivity, release.multiplier, error)
        self._record(release, clip, sensitivity, scale)
        return answer

    def _add_noise(
        self, value: Floats, noise: str, sensitivity: float, multiplier: float, error: float = 0.0
    ) -> tuple[Floats, float]:
        """``value`` plus noise of the named law, and the noise's scale."""
        if noise == "l2-laplace":
            scale = multiplier * sensitivity
            return value + self._noise.l2_laplace(scale, value.size), scale
        return self._noise.gaussian(value, sensitivity, multiplier, error)

    def _release_choice(
        self, scores: Floats, picks: int, release: Release, clip: float, sensitivity: float, error: float
    ) -> Indices:
        """The way out of every choice: the largest noisy scores, in order of position, and an entry in the record."""
        chosen, scale = self._pick_noisy(scores, picks, release.noise, sensitivity, release.multiplier, error)
        self._record(release, clip, sensitivity, scale)
        return chosen

    def _pick_noisy(
        self, scores: Floats, picks: int, noise: str, sensitivity: float, multiplier: float, error: float
    ) -> tuple[Indices, float]:
        """The positions of the largest scores plus noise of the named law, and the noise's scale."""
        if noise == "laplace":
            scale = multiplier * sensitivity if multiplier > 0 else 0.0
            return np.array([np.argmax(scores + self._noise.laplace(scale, scores.size))]), scale
        return self._noise.gumbel_top(scores, picks, sensitivity, multiplier, error)


def _same(known: object, key: object) -> bool:
    if isinstance(key, np.ndarray):
        return isinstance(known, np.ndarray) and np.array_equal(known, key)
    return bool(known == key)


def clip_residuals(residuals: Floats, limits: Floats | float) -> Floats:
    """The same array, now with no residual, or no row's norm, above its limit."""
    if residuals.ndim == 1:
        return np.clip(residuals, -limits, limits, out=residuals)
    # several outputs: a row's gradient is its residuals times x_i, so they are clipped together
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = np.sqrt(sum_of_outputs(np.square(residuals)))
        residuals *= np.divide(limits, sizes, out=np.ones_like(sizes), where=sizes > limits)[:, None]
    residuals[np.isnan(residuals)] = 0.0  # an infinite one has no direction, and must not become everybody's NaN
    return residuals


def margins_of(engine: Engine, theta: Floats) -> Floats:
    """X theta; a product that overflows is infinite, which the clip of the residual takes care of."""
    with np.errstate(over="ignore", invalid="ignore"):
        return engine.product(theta)
