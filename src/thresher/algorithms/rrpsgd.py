"""RRPSGD (Zhang, Zheng, Mou and Wang, IJCAI 2017): random-round private SGD."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from thresher.algorithms.stochastic import Output, State, Stochastic
from thresher.privacy.arrays import Floats
from thresher.vaults import CentralVault

__all__ = ["RRPSGD"]


@dataclass(frozen=True)
class RRPSGD(Stochastic):
    """theta_{t+1} = theta_t - step * (gradient of one random row + noise); the model is theta_R, R uniform on 1..T.

    The paper prices T = n^2 rounds by strong composition; here the accountant prices the rounds that are planned.

    Parameters
    ----------
    passes : float, optional
        How often every row is asked about on the average. None: a public rule of n, d and the budget.
    batch : int, optional
        Expected number of rows in a batch. None: a public rule; n takes all rows, and no batch is drawn.
    step : float, optional
        Length of a step. None: as long as the noise, known in advance, lets it be useful.
    clip : float, optional
        l2 norm to which the gradient of a row is clipped. None: a public rule of the bounds.
    sampling : {"poisson", "fixed"}
        Each row joins a batch by a coin of its own, or a batch is a random set of a fixed size (replace-one
        only).
    output : {"average", "last", "random"}
        The mean of the last quarter of the iterates, the last one, or one drawn at random.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import DenseRegressor
    >>> from thresher.algorithms import RRPSGD
    >>> X = np.sin(np.arange(5000.0)).reshape(1000, 5)
    >>> model = DenseRegressor(
    ...     epsilon=2.0, feature_bound=1.0, target_bound=1.0, algorithm=RRPSGD(passes=1)
    ... )
    >>> model.fit(X, X[:, 2]).certificate_.epsilon
    2.0
    """

    batch: int | None = 1
    output: Output = "random"

    name: ClassVar[str] = "rrpsgd"

    def _move(self, vault: CentralVault, state: State, gradient: Floats) -> State:
        return {**state, "theta": state["theta"] - vault.plan.settings["step"] * gradient}
