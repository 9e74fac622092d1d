"""Sample and aggregate: blocks of rows vote for columns (Kifer, Smith, Thakurta 2012; Thakurta, Smith 2013)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from thresher.privacy.arrays import Floats, Indices
from thresher.privacy.budget import is_whole
from thresher.privacy.releases import Release
from thresher.vaults.central.rows import Rows

__all__ = ["Voting", "ballot"]

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
        return self._chosen(counts, picks, release, 1.0, self._sensitivity(release, 1.0), error=0.0)

    def _blocks(self, blocks: int) -> NDArray[np.int64]:
        """Each row's block, or that of its person, drawn anew."""
        drawn = self._noise.uniform_integers(blocks, self._present)
        return drawn if self._shares is None else drawn[self._shares.owners]


def ballot(rows: Any, units: Floats, targets: Floats, most: int, intercept: bool) -> Indices:
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


def _lasso(rows: Any, targets: Floats, penalty: float, intercept: bool) -> Floats:
    from sklearn.linear_model import Lasso  # takes long to import

    with warnings.catch_warnings():  # a warning that one block has not converged would tell about its rows
        warnings.simplefilter("ignore")
        fitted = Lasso(alpha=penalty, fit_intercept=intercept, max_iter=200, tol=1e-3).fit(rows, targets)
    coefficients: Floats = fitted.coef_
    return coefficients


def _over(rows: Any, units: Floats) -> Any:
    """rows / units, column by column; CSC stays CSC."""
    if not sparse.issparse(rows):
        return np.asfortranarray(rows / units)
    rows = sparse.csc_array(rows, copy=True)
    rows.data /= np.repeat(units, np.diff(rows.indptr))
    return rows
