"""The label vault: rows are public, each label is its owner's, who reports it once, randomised."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.privacy.arrays import Floats, Matrix
from thresher.privacy.budget import Adjacency, BudgetExceeded
from thresher.privacy.plan import Plan
from thresher.privacy.releases import Release
from thresher.vaults.central.rows import Rows
from thresher.vaults.engines import Engine
from thresher.vaults.people import Unrandomised, label_randomiser, refuse_hardened, unit_labels
from thresher.vaults.randomisers import Classes
from thresher.vaults.randomness import NoiseSource
from thresher.vaults.vault import no_watch

__all__ = ["LabelVault"]


class LabelVault(Rows):
    """Public features and the labels people reported; what is computed from these costs nothing more."""

    _reported = False

    def __init__(
        self, X: Matrix, y: Floats, plan: Plan, noise: NoiseSource, watch: Callable[[], None] = no_watch
    ) -> None:
        refuse_hardened(noise)
        super().__init__(X, y, plan, noise, watch)

    def labels(self, release: Release) -> Floats:
        """Every person's label, randomised by its owner, unbiased. The true ones are dropped."""
        self._open()
        randomiser = self._randomiser(release)
        self._check_randomiser(randomiser)
        self._meter.charge(release, "local labels")
        if self.problem.loss.classifies:
            radius, self._targets = 1.0, self._reported_classes(randomiser)
        else:
            middle, radius = self.problem.bounds.target_span
            reports = self._randomise(randomiser, self._units())
            self._targets = middle + radius * reports - self.problem.target_centre
        self._reported = True
        sensitivity = release.sensitivity(radius, self.problem.n, Adjacency.REPLACE_ONE)
        self._record(release, radius, sensitivity, randomiser.size * radius)
        return self._targets.copy()

    def gradient(self, theta: Floats) -> Floats:
        """The gradient of the loss on public rows and reported labels: post-processing."""
        engine = self._open_after_reports()
        return self.problem.stacked(self._mean_gradient(engine, self._margins(engine, theta), math.inf))

    @property
    def features(self) -> Matrix:
        """The public rows as a matrix, without the intercept's column."""
        columns = self._open().columns(np.arange(self.problem.d))
        (rows,) = columns.parts(np.zeros(len(self._targets), dtype=np.intp), 1)
        return rows

    @property
    def feature_scale(self) -> float:
        """The root mean square entry of the public rows."""
        squares: Floats = self._open().mean_squares(self.problem.n)[: self.problem.d]
        return math.sqrt(float(squares.mean()))

    def _randomiser(self, release: Release) -> Any:
        """The channel every label goes through."""
        return label_randomiser(release)

    def _check_randomiser(self, randomiser: Any) -> None:
        """A channel for numbers takes no classes, and the other way round: what it does not randomise would leak."""
        if isinstance(randomiser, Unrandomised):  # planned without privacy
            return
        classes = randomiser.classes if isinstance(randomiser, Classes) else None
        if classes != (max(self.problem.outputs, 2) if self.problem.loss.classifies else None):
            raise ValueError(f"{randomiser!r} is not for the labels of this problem; plan a report that is")

    def _units(self) -> Floats:
        """The labels as numbers of [-1, 1]."""
        return unit_labels(self._targets + self.problem.target_centre, self.problem.bounds)

    def _randomise(self, randomiser: Any, values: NDArray[Any]) -> Any:
        """Everybody's report."""
        return randomiser.randomise(values, self._noise)

    def _open_after_reports(self) -> Engine:
        engine = self._open()
        if not self._reported:
            raise BudgetExceeded("no label has been reported yet: ask labels() first; nothing was answered")
        return engine

    def _reported_classes(self, randomiser: Any) -> Floats:
        """Unbiased indicators of the classes: of the second of two, or a column for each of more."""
        if isinstance(randomiser, Unrandomised):
            return self._targets  # planned without privacy
        two = self.problem.outputs == 1
        classes = self._targets.astype(np.int64) if two else self._targets.argmax(axis=1)
        indicators: Floats = randomiser.indicators(self._randomise(randomiser, classes))
        return indicators[:, 1] if two else indicators
