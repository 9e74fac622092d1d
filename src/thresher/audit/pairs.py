"""Neighbouring data sets, each as far apart as a mechanism's sensitivity allows.

Rows that matter lie far outside the public bounds: a vault that clips brings them to the worst case, one that forgets
to clip is caught. All other rows are there to put the answers where they tell most.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from thresher.audit.adversarial_rows import support_flip_rows
from thresher.privacy.arrays import Floats, Matrix
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Adjacency
from thresher.vaults.losses import SQUARED, Loss
from thresher.vaults.problem import LinearProblem

__all__ = [
    "Pair",
    "above_all",
    "all_ones",
    "ballots",
    "crowd",
    "edge",
    "full_row",
    "halves",
    "label_ends",
    "leaning",
    "mirrored_row",
    "on_a_level",
    "one_rises",
    "opposite_rows",
    "orthogonal_rows",
    "ranks",
    "rare_text",
    "support_flip",
    "turned_row",
]

Rows = tuple[Matrix, Floats]

WILD = 1e3
"""How far outside its bound a row lies that a clip has to deal with."""


@dataclass(frozen=True)
class Pair:
    """Two neighbouring data sets (X, y), the public facts an algorithm is given about them, and a score.

    ``score`` turns what an estimator's model or a function shows into a number that is larger the more it looks like
    ``second``; without one, it is learnt from runs that are not counted. Algorithms need none: they are scored by the
    privacy loss of all their answers. With more than two classes, y has one 0/1 column for each.

    Parameters
    ----------
    name : str
        How results call it.
    first, second : (X, y)
        Neighbours: they differ in one row, or one of them has a row more.
    problem : LinearProblem, optional
        The public facts, which algorithms need.
    adjacency : "replace-one" or "add-remove"
        In which sense they are neighbours.
    score : callable, optional
        Larger, the more an outcome looks like ``second``.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.audit import Pair
    >>> X = np.zeros((10, 1))
    >>> y, other = np.zeros(10), np.eye(10)[0]
    >>> Pair("one target", (X, y), (X, other)).same_features
    True
    """

    name: str
    first: Rows
    second: Rows
    problem: LinearProblem | None = None
    adjacency: Adjacency = Adjacency.REPLACE_ONE
    score: Callable[[Any], float] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "adjacency", Adjacency(self.adjacency))
        if self.adjacency is Adjacency.REPLACE_ONE:
            self._check_replaced()
        else:
            self._check_removed()

    @property
    def same_features(self) -> bool:
        """Whether only targets differ."""
        X, Z = (sparse.csr_array(rows[0]) for rows in (self.first, self.second))
        return bool(X.shape == Z.shape and (X != Z).nnz == 0)

    @property
    def stated_problem(self) -> LinearProblem:
        """The public facts, which algorithms cannot do without."""
        if self.problem is None:
            raise ValueError(f"pair {self.name!r} has no problem: give the public facts an algorithm is planned for")
        return self.problem

    def _check_replaced(self) -> None:
        counts = [len(y) for _, y in (self.first, self.second)]
        if counts[0] != counts[1] or self.first[0].shape != self.second[0].shape:
            raise ValueError(f"pair {self.name!r}: replace-one neighbours have the same shape, not {counts} rows")
        differ = _rows_that_differ(self.first, self.second)
        if len(differ) != 1:
            raise ValueError(f"pair {self.name!r}: replace-one neighbours differ in one row, these in {len(differ)}")

    def _check_removed(self) -> None:
        more, less = sorted((self.first, self.second), key=lambda rows: -len(rows[1]))
        n = len(less[1])
        if len(more[1]) != n + 1:
            raise ValueError(f"pair {self.name!r}: add-remove neighbours have {n} and {n + 1} rows, not {len(more[1])}")
        X, y = sparse.csr_array(more[0]), np.asarray(more[1])
        for left_out in range(n + 1):
            kept = np.delete(np.arange(n + 1), left_out)
            if not len(_rows_that_differ((X[kept], y[kept]), less)):
                return
        raise ValueError(f"pair {self.name!r}: taking one row out of the larger data set does not give the smaller one")


def _rows_that_differ(one: Rows, other: Rows) -> NDArray[np.intp]:
    X, Z = (sparse.csr_array(rows[0]) for rows in (one, other))
    unlike = np.diff(sparse.csr_array(X != Z).indptr) > 0
    targets = np.asarray(one[1]) != np.asarray(other[1])
    return np.flatnonzero(unlike | targets.reshape(len(unlike), -1).any(axis=1))


# -- pairs ------------------------------------------------------------------------------------------------------


def mirrored_row(
    loss: Loss = SQUARED, n: int = 100, d: int = 4, sparsity: int = 2, adjacency: str = "replace-one"
) -> Pair:
    """One row of features at their bounds with the highest target, or the lowest (add-remove: or no such row); with
    several outputs, of the second of three classes, or of the first.

    All other rows are zero. So the row's clipped gradient is all there is, of full length and, with the other target,
    of the opposite sign: gradients, minimisers and labels move by exactly their sensitivity as long as the residual
    stays clipped, and so do the scores of all vertices of an l1 ball.
    """
    X, y = np.zeros((n, d)), np.zeros(n)
    X[0] = WILD
    if loss.several_outputs:
        low_y, high_y = np.eye(3)[[0] + [2] * (n - 1)], np.eye(3)[[1] + [2] * (n - 1)]
    else:
        low_y, high_y = y.copy(), y.copy()
        low_y[0], high_y[0] = (0.0, 1.0) if loss.classifies else (-WILD, WILD)
    first = (X, low_y) if Adjacency(adjacency) is Adjacency.REPLACE_ONE else (X[1:], high_y[1:])
    problem = _problem(n, d, sparsity, loss)
    name = f"mirrored row, {loss.name}" if len(first[1]) == n else f"row or none, {loss.name}"
    return Pair(name, first, (X, high_y), problem, Adjacency(adjacency))


def one_rises(loss: Loss = SQUARED, n: int = 100, d: int = 8, sparsity: int = 1) -> Pair:
    """One column's score goes up and all others go down, by as much as one row can move them.

    Eight rows of ones put all scores at the same height. In the last row the first column has the other sign; with the
    target's sign flipped, one score rises and seven fall. An exponential mechanism chooses the first column rarely, and
    the ratio of its chances comes close to e^epsilon; with two columns it would only reach e^(epsilon/2).
    """
    X, y = np.zeros((n, d)), np.zeros(n)
    low, high = (0.0, 1.0) if loss.classifies else (-WILD, WILD)
    X[:8], y[:8] = WILD, high
    X[8], y[8] = -WILD, low
    X[8, 0] = WILD
    risen = y.copy()
    risen[8] = high
    return Pair(f"one rises, {loss.name}", (X, y), (X, risen), _problem(n, d, sparsity, loss))


def crowd(n: int = 20) -> Pair:
    """One row as in ``mirrored_row``, among others that all have the lowest target.

    A batch of a fixed size that leaves the row out holds one more of the others in its place: with the highest target,
    the sum moves by a full sensitivity or not at all; with the lowest, it is always the same.
    """
    X, low = np.full((n, 1), WILD), np.full(n, -WILD)
    high = low.copy()
    high[0] = WILD
    return Pair("crowd", (X, low), (X, high), _problem(n, 1, 1, SQUARED))


def halves(n: int = 41) -> Pair:
    """One row joins those that use the first column alone or those that use the second, which are as many.

    So which of the two columns is used more depends on that row. The two halves have opposite targets: the gradient on
    the one column is the negative of that on the other.
    """
    half = n // 2
    X, y = np.zeros((n, 2)), np.zeros(n)
    X[1 : half + 1, 0], y[1 : half + 1] = WILD, WILD
    X[half + 1 :, 1], y[half + 1 :] = WILD, -WILD
    Z = X.copy()
    X[0, 0] = Z[0, 1] = WILD
    return Pair("halves", (X, y), (Z, y), _problem(n, 2, 1, SQUARED))


def turned_row(n: int = 20) -> Pair:
    """One row, or its negative but for a small second entry.

    When an iterate moves far along the second column, margins rise for both: gradients and their changes both have full
    length and, but for the small entry, opposite signs. With rows that are each other's negatives changes are equal.
    """
    X, y = np.zeros((n, 2)), np.zeros(n)
    X[0], y[0] = (WILD, 0.01), -WILD
    turned = X.copy()
    turned[0, 0] = -WILD
    return Pair("turned row", (X, y), (turned, y), _problem(n, 2, 1, SQUARED))


def leaning(loss: Loss = SQUARED, n: int = 20) -> Pair:
    """Sparse rows of one column, two of which make it rise, and a far wilder third that is for it or against it.

    Of the two ends of the l1 ball one is chosen rarely, and the ratio of its chances comes close to e^epsilon.
    """
    low, high = (0.0, 1.0) if loss.classifies else (-WILD, WILD)
    X, y = np.zeros((n, 1)), np.full(n, high)
    X[1:3], X[0] = WILD, WILD**2
    turned = y.copy()
    turned[0] = low
    rows = sparse.csr_array(X)
    return Pair(f"leaning, {loss.name}", (rows, y), (rows, turned), _problem(n, 1, 1, loss))


def support_flip(n: int = 801, d: int = 10) -> Pair:
    """Erratum E-5: one row makes the best model with one feature jump from one column to another."""
    return Pair("support flip", *support_flip_rows(n, d), _problem(n, d, 1, SQUARED))


def orthogonal_rows(n: int = 10, d: int = 3) -> Pair:
    """One row along the first column or along the second: a Gram matrix moves by sqrt(2) clips, its sensitivity."""
    X, Z = np.zeros((n, d)), np.zeros((n, d))
    X[0, 0] = Z[0, 1] = WILD
    return Pair("orthogonal rows", (X, np.zeros(n)), (Z, np.zeros(n)), _problem(n, d, 1, SQUARED))


def opposite_rows(n: int = 10, d: int = 3) -> Pair:
    """One row of features at their bounds, or its negative: a mean moves by 2 clips, its sensitivity."""
    X = np.zeros((n, d))
    X[0] = WILD
    return Pair("opposite rows", (X, np.zeros(n)), (-X, np.zeros(n)), _problem(n, d, 1, SQUARED))


def full_row(n: int = 10, d: int = 3) -> Pair:
    """One row of zeros or of features at their bounds: second moments move by sqrt(d)/n, their sensitivity."""
    X = np.zeros((n, d))
    Z = X.copy()
    Z[0] = WILD
    return Pair("full row", (X, np.zeros(n)), (Z, np.zeros(n)), _problem(n, d, 1, SQUARED))


def ranks(n: int = 40) -> Pair:
    """One row moves from the lowest value to the highest, and the rank of every level between them falls by one.

    The only column holds the same values as the target. Two rows lie in the middle. So levels below it have one rank
    too few for the median and levels above it one too many: the first become worse by one, the others better by one,
    which is all a score can move.
    """
    half = n // 2 - 1
    y = np.repeat([-1.0, 0.0, 1.0], [half, 2, half])
    moved = y.copy()
    moved[0] = 1.0
    return Pair("ranks", (y[:, None], y), (moved[:, None], moved), _problem(n, 1, 1, SQUARED))


def above_all(n: int = 40, above: int = 9) -> Pair:
    """One target moves from 0 to the end of its range, above all levels; so many are there, and one is at a half.

    So at levels below a half ``above`` + 1 targets are above and one more comes, and at those beyond it one less. Where
    the first number is allowed, low levels become worse by one and high ones stay as they are: scores of levels move by
    1 or not at all, which is all they can move apart. By the distance from that number the high ones become better.
    """
    y = np.zeros(n)
    y[1 : above + 1], y[-1] = WILD, 0.5
    moved = y.copy()
    moved[0] = WILD
    X = np.zeros((n, 1))
    return Pair("above all", (X, y), (X, moved), _problem(n, 1, 1, SQUARED))


ON_A_LEVEL = (0.8772690696433787, 0.9398359119710803)
"""Its norm by way of its largest entry is one unit in the last place longer than by its squares."""

LEVEL = math.sqrt(ON_A_LEVEL[0] ** 2 + ON_A_LEVEL[1] ** 2)


def on_a_level(n: int = 100) -> Pair:
    """All norms lie on a level to the last bit, but for one row: whether an entry of it is tiny changes no other norm.

    Where one formula is chosen for the norms of all rows together, that entry lifts everybody above the level.
    """
    X = sparse.csr_array(np.tile(ON_A_LEVEL, (n, 1)))
    Z = X.copy()
    X.data[:2], Z.data[:2] = (0.3, 0.2), (1e-200, 0.2)
    return Pair("on a level", (X, np.zeros(n)), (Z, np.zeros(n)), _problem(n, 2, 2, SQUARED))


def ballots(d: int = 8) -> Pair:
    """One row of the only block decides whether it votes for the first column alone or for all the others.

    The others explain targets of 0.15; beside a row that the first column explains with a target of 1 they fall below
    the Lasso's penalty of a fifth of the largest correlation.
    """
    X, y = np.eye(d), np.full(d, 0.15)
    Z, z = X.copy(), y.copy()
    X[0], y[0] = 0.0, 0.0
    z[0] = 1.0
    return Pair("ballots", (X, y), (Z, z), _problem(d, d, d - 1, SQUARED))


def edge(count: int = 19) -> Pair:
    """Of texts, written as numbers: one that so many rows hold, or one row more (add-remove).

    With a threshold a little above, whether it is published tells as much as the noisy count itself.
    """
    X = np.ones((count + 1, 1))
    y = np.zeros(count + 1)
    return Pair("edge", (X[1:], y[1:]), (X, y), _problem(count + 1, 1, 1, SQUARED), Adjacency.ADD_REMOVE)


def rare_text(n: int = 20) -> Pair:
    """Of texts, written as numbers: one that all rows hold, and one row that has another, of its own."""
    X = np.ones((n, 1))
    Z = X.copy()
    Z[0] = 2.0
    return Pair("rare text", (X, np.zeros(n)), (Z, np.zeros(n)), _problem(n, 1, 1, SQUARED))


def label_ends(largest: float) -> Pair:
    """Erratum E-12: one person's label at either end of its range, which that person alone randomises."""
    X = np.ones((1, 1))
    problem = LinearProblem(
        1, 1, Bounds(feature=1.0, target=(-largest, largest)), sparsity=1, loss=SQUARED, intercept=False
    )
    return Pair("label ends", (X, np.array([-largest])), (X, np.array([largest])), problem)


def all_ones(n: int = 100, d: int = 104) -> Pair:
    """Erratum E-22: one row of norm 1 along the diagonal, or its negative.

    The diagonal is where independent noise on every coordinate is weakest against an l2 sensitivity.
    """
    X = np.zeros((n, d))
    X[0] = -1 / math.sqrt(d)
    return Pair("all-ones direction", (X, np.zeros(n)), (-X, np.zeros(n)))


def _problem(n: int, d: int, sparsity: int, loss: Loss) -> LinearProblem:
    """Features within 1, targets within [-1, 1], no intercept: it would share the noise and hide the row."""
    bounds = Bounds(feature=1.0, target=None if loss.classifies else (-1.0, 1.0))
    return LinearProblem(
        n, d, bounds, sparsity=sparsity, loss=loss, intercept=False, outputs=3 if loss.several_outputs else 1
    )
