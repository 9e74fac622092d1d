"""DP-SGD (Abadi et al., CCS 2016) and DP-GD (Wang, Ye and Xu, NeurIPS 2017); SGD is the same without noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from thresher.algorithms.stochastic import State, Stochastic
from thresher.privacy.arrays import Floats
from thresher.privacy.budget import Budget
from thresher.vaults import CentralVault
from thresher.vaults.problem import LinearProblem

__all__ = ["DPGD", "DPSGD", "SGD"]


@dataclass(frozen=True)
class DPSGD(Stochastic):
    """theta_{t+1} = theta_t - step * v_{t+1}, v_{t+1} = momentum * v_t + (1 - momentum) * noisy gradient.

    Rows are clipped one by one, noise is added to the sum over the batch.

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
    momentum : float
        Part of the step before that goes on, from 0 to below 1.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import DenseRegressor
    >>> from thresher.algorithms import DPSGD
    >>> X = np.sin(np.arange(5000.0)).reshape(1000, 5)
    >>> model = DenseRegressor(
    ...     epsilon=2.0, feature_bound=1.0, target_bound=1.0, algorithm=DPSGD(batch=100, passes=2)
    ... )
    >>> model.fit(X, X[:, 2]).certificate_.epsilon
    2.0
    """

    momentum: float = 0.8

    name: ClassVar[str] = "dp-sgd"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum={self.momentum!r} must lie from 0 to below 1")

    def start(self, vault: CentralVault) -> State:
        return {**super().start(vault), "velocity": np.zeros(vault.problem.dimension)}

    def _move(self, vault: CentralVault, state: State, gradient: Floats) -> State:
        velocity = self.momentum * state["velocity"] + (1 - self.momentum) * self._direction(gradient)
        return {**state, "velocity": velocity, "theta": state["theta"] - vault.plan.settings["step"] * velocity}

    def _longest_step(self) -> float:
        """Half of what keeps a quadratic from diverging with this momentum."""
        return (1 + self.momentum) / (1 - self.momentum)


@dataclass(frozen=True)
class DPGD(DPSGD):
    """DP-SGD whose batch is all rows: no batch is drawn, and the exact Gaussian curve prices the rounds.

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
    momentum : float
        Part of the step before that goes on, from 0 to below 1.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import DenseRegressor
    >>> from thresher.algorithms import DPGD
    >>> X = np.sin(np.arange(5000.0)).reshape(1000, 5)
    >>> model = DenseRegressor(
    ...     epsilon=2.0, feature_bound=1.0, target_bound=1.0, algorithm=DPGD(passes=5)
    ... )
    >>> model.fit(X, X[:, 2]).certificate_.epsilon
    2.0
    """

    name: ClassVar[str] = "dp-gd"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch is not None:
            raise ValueError(f"batch={self.batch!r}: dp-gd asks about all rows; use DPSGD for batches")

    def _sizes(self, problem: LinearProblem, budget: Budget) -> tuple[int, int]:
        return problem.n, round(self.passes or self._default_rounds(problem, budget))


@dataclass(frozen=True)
class SGD(DPSGD):
    """DP-SGD without clipping and noise. No privacy whatsoever; it only runs with ``epsilon=float("inf")``.

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
    momentum : float
        Part of the step before that goes on, from 0 to below 1.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import DenseRegressor
    >>> from thresher.algorithms import SGD
    >>> X = np.sin(np.arange(5000.0)).reshape(1000, 5)
    >>> model = DenseRegressor(
    ...     epsilon=float("inf"), feature_bound=1.0, target_bound=1.0, algorithm=SGD(batch=100, passes=2)
    ... )
    >>> model.fit(X, X[:, 2]).certificate_.grade
    'none'
    """

    name: ClassVar[str] = "sgd"
    private: ClassVar[bool] = False
