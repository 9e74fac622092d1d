"""Questions whose answer is a choice among public candidates: by the exponential mechanism, or by votes of blocks.

Sample and aggregate: blocks of rows vote for columns (Kifer, Smith, Thakurta 2012; Thakurta, Smith 2013).
"""

from __future__ import annotations

import warnings
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from thresher.privacy.arrays import Floats, Indices, Matrix
from thresher.privacy.bounds import LARGEST
from thresher.privacy.budget import is_whole
from thresher.privacy.releases import Release
from thresher.privacy.sensitivity import ROUND_OFF
from thresher.vaults.central.rows import Rows, margins_of
from thresher.vaults.engines import Engine
from thresher.vaults.kernels.rows import sum_of_outputs

__all__ = ["Choices", "Voting", "ballot"]


LEAST_PRICE = 2.0**-20  # of a level, in rows: without noise the lowest of equals is taken


class Choices(Rows):
    """The candidates with the largest noisy scores."""

    def selection(
        self, theta: Floats, release: Release, clip: float, offset: Floats | None = None,
        excluded: Indices | None = None,
    ) -> Indices:  # fmt: skip
        """The columns, intercept apart, with the largest |offset_j - g_j/K_j|, residuals clipped to [-clip, clip].

        Of several outputs, ||g_j||_2 over them for |g_j|, a row's residuals clipped together.
        """
        clip, d = float(clip), self.problem.d
        excluded = np.unique(np.empty(0, dtype=np.intp) if excluded is None else excluded)
        self._check_support(excluded)
        excluded = excluded[excluded < d]  # the intercept is no candidate anyway
        picks = getattr(release, "picks", 1)  # a release without picks pays for no selection, and is refused below
        if picks > d - len(excluded):
            raise ValueError(f"picks={picks} of only {d - len(excluded)} columns; ask for fewer")
        engine = self._charge("selection", release, clip, theta)
        gradient = self._mean_gradient(engine, self._margins(engine, theta), clip)[:d]
        if gradient.ndim > 1:
            gradient = np.sqrt(sum_of_outputs(np.square(gradient)))
        scores = -gradient / self.problem.entry_bounds[:d]
        if offset is not None:
            scores += offset
        scores = np.abs(scores)
        scores[excluded] = -np.inf
        # a coordinate's round-off, as in _round_off, and that of the division and the offset
        error = self._round_off(clip) + 4 * ROUND_OFF * (0.0 if offset is None else float(np.max(np.abs(offset))))
        return self._release_choice(scores, picks, release, clip, self._sensitivity(release, clip), error)

    def step_length(self, theta: Floats, direction: Floats, lengths: Floats, release: Release, clip: float) -> int:
        """Which of ``lengths`` has the least loss and penalty at theta - length * direction, losses in [0, clip]."""
        clip, problem = float(clip), self.problem
        self._check_question(release, clip, direction)
        engine = self._charge("step length", release, clip, theta)
        start, slope = self._margins(engine, theta), margins_of(engine, problem.by_column(direction))
        scores, largest = np.empty(len(lengths)), 0.0
        for at, length in enumerate(lengths):
            with np.errstate(over="ignore", invalid="ignore"):
                margins = start - length * slope
            penalty = problem.penalty.value((theta - length * direction)[: problem.width])
            scores[at] = -self._counted(self._clipped_losses(margins, clip)).sum() / problem.n - penalty
            largest = max(largest, penalty)
        # a public bound, not how many rows there are: the scale that follows from it is told in the certificate
        error = self._round_off(clip) + 4 * ROUND_OFF * (self._most_present / problem.n * clip + largest)
        (chosen,) = self._release_choice(scores, 1, release, clip, self._sensitivity(release, clip), error)
        return int(chosen)

    def _clipped_losses(self, margins: Floats, clip: float) -> Floats:
        """Each row's loss, in [0, clip]; one that overflowed is at the clip."""
        with np.errstate(over="ignore", invalid="ignore"):
            losses = self.problem.loss.value(margins, self._targets)
        return np.clip(np.nan_to_num(losses, nan=clip, posinf=clip), 0.0, clip)

    def quantile(
        self, of: Literal["residuals", "gradient norms", "row norms", "targets"], q: float, levels: Floats,
        theta: Floats, release: Release, support: Indices | None = None,
    ) -> float:  # fmt: skip
        """The public level that about ``q`` n rows do not exceed, by |r_i|, |r_i| ||x_i||_2, ||x_i||_2 or y_i.

        A person's rows count as one together: each moves a rank by its share.

        Norms are those of the columns in ``support`` in the problem's units, or of the whole row.
        """
        if support is not None:
            self._check_support(support)
        engine = self._charge("quantile", release, 1.0, theta)
        values = self._targets if of == "targets" else self._sizes(of, engine, theta, support)
        return self._level(values, q, levels, release)

    def near_maximum(
        self, of: Literal["residuals", "gradient norms", "row norms"], levels: Floats, allowed: float, price: float,
        theta: Floats, release: Release, support: Indices | None = None, basis: Floats | None = None,
    ) -> float:  # fmt: skip
        """Of public ``levels`` in increasing order, about the lowest that at most ``allowed`` rows are above.

        A level costs the number of rows above it that are not allowed, and ``price`` rows for every level below it.
        Rows are measured as by ``quantile``; with a ``basis``, it is rows times that.
        """
        _check_levels(levels, allowed, price)
        if support is not None:
            self._check_support(support)
        self._check_basis(basis, support)
        engine = self._charge("near maximum", release, 1.0, theta)
        values = self._sizes(of, engine, theta, support, basis)
        price = max(price, LEAST_PRICE)
        beyond = self._not_allowed(self._present - self._ranks(values, levels), allowed)
        scores = -(beyond + price * np.arange(len(levels)))
        # Two moves are compared, of which each may be off on both sides: twice what one score is rounded by, which is
        # at most 2 u of the terms, and of people what is rounded where their shares are added up
        error = 8 * ROUND_OFF * (self._most_present + allowed + price * len(levels))
        if self._shares is not None:
            error += 2 * self._round_off(1.0) * self.problem.n
        (at,) = self._release_choice(scores, 1, release, 1.0, self._sensitivity(release, 1.0), error)
        return float(levels[at])

    def _not_allowed(self, above: Floats | Indices, allowed: float) -> Floats:
        """How many of these numbers of rows are too many."""
        return np.maximum(above - allowed, 0.0)

    def _sizes(
        self, of: str, engine: Engine, theta: Floats, support: Indices | None, basis: Floats | None = None
    ) -> Floats:
        """|r_i|, ||x_i||_2, or |r_i| ||x_i||_2 of each row; of several outputs, ||r_i||_2 for |r_i|."""
        if of == "residuals":
            return self._residual_sizes(engine, theta)
        norms = self._norms() if support is None else self._restricted(engine, support, basis).norms
        if of == "row norms":
            return norms
        with np.errstate(over="ignore", invalid="ignore"):  # infinity times 0 counts as above every level
            return norms * self._residual_sizes(engine, theta)

    def _residual_sizes(self, engine: Engine, theta: Floats) -> Floats:
        residuals = self._residuals(self._margins(engine, theta))
        with np.errstate(over="ignore"):  # a warning would tell how large they are
            return np.abs(residuals) if residuals.ndim == 1 else np.sqrt(sum_of_outputs(np.square(residuals)))

    def column_quantile(self, column: int, q: float, levels: Floats, release: Release) -> float:
        """The public level that about ``q`` n entries of a column, over its bound K_j, do not exceed."""
        self._check_support(np.array([column]))
        engine = self._charge("quantile", release, 1.0, self.problem.origin())
        entries = engine.columns(np.array([column])).product(np.ones(1)) / self.problem.entry_bounds[column]
        return self._level(entries, q, levels, release)

    def _level(self, values: Floats, q: float, levels: Floats, release: Release) -> float:
        levels = np.sort(levels)
        upto = self._ranks(values, levels)
        before = np.concatenate([[0], upto[:-1]])
        # how far the rank q n lies outside (before, upto]: zero for the level whose cell holds the quantile, even where
        # many rows have the same value and no level splits them
        scores = -np.maximum(np.maximum(q * self.problem.n - upto, before - q * self.problem.n), 0.0)
        error = 4 * ROUND_OFF * self._most_present
        if self._shares is not None:  # sums of fractions are rounded, numbers of rows are not
            error += self._round_off(1.0) * self.problem.n
        (at,) = self._release_choice(scores, 1, release, 1.0, self._sensitivity(release, 1.0), error)
        return float(levels[at])

    def _ranks(self, values: Floats, levels: Floats) -> Floats | Indices:
        """How many rows, or parts of people, do not exceed each level; what is not a number exceeds all."""
        if self._shares is None:
            return np.searchsorted(np.sort(values), levels, side="right")
        first = np.searchsorted(levels, values)  # the first level that a value does not exceed
        return self._shares.counted(first, len(levels))


def _check_levels(levels: Floats, allowed: float, price: float) -> None:
    if not (len(levels) and np.all(np.isfinite(levels)) and np.all(np.diff(levels) > 0)):
        raise ValueError(f"levels={levels!r} must be finite numbers in increasing order")
    for name, value in (("allowed", allowed), ("price", price)):
        if not 0 <= value <= LARGEST:  # below 0, less round-off would be paid for than there is
            raise ValueError(f"{name}={value!r} must be a number of rows, from 0 to {LARGEST:g}")


PENALTY = 0.2
"""Of a block's Lasso, over the penalty at which its model is empty. A block may choose it from its own rows."""


class Voting(Rows):
    """The columns that most blocks find useful."""

    def votes(self, release: Release, blocks: int) -> Indices:
        """The columns with the most noisy votes of ``blocks`` random blocks of rows.

        Each row, or person with all their rows, is put into a block by a uniform draw of its own, and a block votes at
        most once for a column, whatever its rows are. Draw the same blocks for two neighbours: the row, or person, in
        which they differ sits in one block, every other block has the same rows in both, because nobody else's block
        depends on that. (Two people who stand in for each other are drawn into the same block.) So one block's ballot
        differs and every count moves by at most 1, for either adjacency; a mixture over the draws of the blocks is no
        easier to tell apart than its components.
        """
        if not is_whole(blocks) or blocks < 1:
            raise ValueError(f"blocks={blocks!r} must be a whole number of at least 1")
        d, s = self.problem.d, self.problem.sparsity
        picks = getattr(release, "picks", 1)  # a release without picks pays for no votes, and is refused below
        if picks > d:
            raise ValueError(f"picks={picks} of only {d} columns; ask for fewer")
        engine = self._charge("votes", release, 1.0, self.problem.origin())
        labels = self._blocks(blocks)
        counts = np.zeros(d)
        units = self.problem.entry_bounds[:d]
        for block, rows in enumerate(engine.parts(labels, blocks)):
            targets = self._targets[labels == block] / self.problem.target_radius
            counts[ballot(rows[:, :d], units, targets, s, self.problem.intercept)] += 1
        return self._release_choice(counts, picks, release, 1.0, self._sensitivity(release, 1.0), error=0.0)

    def _blocks(self, blocks: int) -> NDArray[np.int64]:
        """Each row's block, or that of its person, drawn anew."""
        drawn = self._noise.uniform_integers(blocks, self._present)
        return drawn if self._shares is None else drawn[self._shares.owners]


def ballot(rows: Matrix, units: Floats, targets: Floats, most: int, intercept: bool) -> Indices:
    """The at most ``most`` columns with the largest Lasso coefficients, columns in units of their bounds.

    Class labels are fitted as numbers: which columns matter hardly depends on the loss.
    """
    if intercept and targets.size:
        targets = targets - targets.mean()
    reach = np.max(np.abs(rows.T @ targets / units), initial=0.0)
    if not reach > 1e-12 * targets.size:  # no rows, constant targets, or columns of zeros: nothing to vote for
        return np.empty(0, dtype=np.intp)
    coefficients = np.abs(_lasso(_over(rows, units), targets, PENALTY * reach / targets.size, intercept))
    order = np.argsort(-coefficients, kind="stable")[:most]
    return order[coefficients[order] > 0]


def _lasso(rows: Matrix, targets: Floats, penalty: float, intercept: bool) -> Floats:
    from sklearn.linear_model import Lasso  # takes long to import

    with warnings.catch_warnings():  # a warning that one block has not converged would tell about its rows
        warnings.simplefilter("ignore")
        fitted = Lasso(alpha=penalty, fit_intercept=intercept, max_iter=200, tol=1e-3).fit(rows, targets)
    coefficients: Floats = fitted.coef_
    return coefficients


def _over(rows: Matrix, units: Floats) -> Matrix:
    """rows / units, column by column; CSC stays CSC."""
    if not sparse.issparse(rows):
        return np.asfortranarray(rows / units)
    rows = sparse.csc_array(rows, copy=True)
    rows.data /= np.repeat(units, np.diff(rows.indptr))
    return rows
