"""DP-Adam, and DP-LSAdam (thesis, section 5.4): Adam on noisy gradients, and on smoothed noisy gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from thresher.algorithms.dp_lssgd import Smoothed
from thresher.algorithms.stochastic import FEWEST_ROUNDS, State, Stochastic, typical_coefficient
from thresher.privacy.arrays import Floats
from thresher.privacy.budget import Budget
from thresher.vaults import CentralVault
from thresher.vaults.problem import LinearProblem

__all__ = ["DPAdam", "DPLSAdam"]


@dataclass(frozen=True)
class DPAdam(Stochastic):
    """theta_{t+1} = theta_t - step * m / (sqrt(v) + tiny), m and v the means of noisy gradients and of their squares.

    Both means forget at the rates 1 - ``first`` and 1 - ``second`` and are corrected for their start at zero. The
    guarantee is DP-SGD's: Adam sees noisy gradients only.

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
    first : float
        What the mean of the gradients keeps per round, from 0 to below 1.
    second : float
        What the mean of their squares keeps per round, from 0 to below 1.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import DenseRegressor
    >>> from thresher.algorithms import DPAdam
    >>> X = np.sin(np.arange(5000.0)).reshape(1000, 5)
    >>> model = DenseRegressor(
    ...     epsilon=2.0, feature_bound=1.0, target_bound=1.0, algorithm=DPAdam(batch=100, passes=2)
    ... )
    >>> model.fit(X, X[:, 2]).certificate_.epsilon
    2.0
    """

    first: float = 0.9
    second: float = 0.99

    name: ClassVar[str] = "dp-adam"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("first", "second"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)!r} must lie from 0 to below 1")

    def start(self, vault: CentralVault) -> State:
        zeros = np.zeros(vault.problem.dimension)
        return {**super().start(vault), "mean": zeros, "square": zeros}

    def _move(self, vault: CentralVault, state: State, gradient: Floats) -> State:
        gradient, t = self._direction(gradient), state["t"] + 1
        mean = self.first * state["mean"] + (1 - self.first) * gradient
        square = self.second * state["square"] + (1 - self.second) * np.square(gradient)
        root = np.sqrt(square / (1 - self.second**t))
        move = np.divide(mean / (1 - self.first**t), root, out=np.zeros_like(root), where=root > 0)
        theta = state["theta"] - vault.plan.settings["step"] * move
        return {**state, "mean": mean, "square": square, "theta": theta}

    def _default_rounds(self, problem: LinearProblem, budget: Budget) -> int:
        return FEWEST_ROUNDS

    def default_step(self, problem: LinearProblem, rounds: int, sd: float) -> float:
        """Where noise rules, a coordinate moves by about a step a round, to and fro: sqrt(rounds) steps in all."""
        return 2 * typical_coefficient(problem) / math.sqrt(rounds)


@dataclass(frozen=True)
class DPLSAdam(Smoothed, DPAdam):
    """DP-Adam on A^-1 (noisy gradient), A = I - smoothing * Laplacian of a ring; the guarantee is the same.

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
    first : float
        What the mean of the gradients keeps per round, from 0 to below 1.
    second : float
        What the mean of their squares keeps per round, from 0 to below 1.
    smoothing : float
        sigma of A = I - sigma * Laplacian; 0 smooths nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import DenseRegressor
    >>> from thresher.algorithms import DPLSAdam
    >>> X = np.sin(np.arange(5000.0)).reshape(1000, 5)
    >>> model = DenseRegressor(
    ...     epsilon=2.0, feature_bound=1.0, target_bound=1.0, algorithm=DPLSAdam(batch=100, passes=2)
    ... )
    >>> model.fit(X, X[:, 2]).certificate_.epsilon
    2.0
    """

    name: ClassVar[str] = "dp-lsadam"
