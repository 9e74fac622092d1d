"""DP-IGHT (Wang and Gu, IJCAI 2019, Algorithm 1), which is also DP-IHT (Wang and Xu, ICML 2019, Algorithm 3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from thresher.algorithms.defaults import (
    between_classes,
    check_positive,
    check_ridge,
    check_rounds,
    gradient_clip,
    signal_to_noise,
)
from thresher.algorithms.descent import descend, descend_by
from thresher.algorithms.lazy_descent import descend_lazily
from thresher.privacy.arrays import Floats
from thresher.privacy.budget import Budget
from thresher.privacy.conversions import gaussian_mu
from thresher.privacy.plan import Calibration, Plan
from thresher.privacy.releases import GaussianGradient
from thresher.privacy.sensitivity import gradient_sensitivity
from thresher.vaults import CentralVault
from thresher.vaults.problem import LinearProblem

__all__ = ["DPIGHT"]

MOST_ROUNDS = 40
CLEAR, MOST_CLEAR_ROUNDS = 150.0, 300  # signal over noise from which a round of classes is believed; as many then


@dataclass(frozen=True)
class DPIGHT:
    """Hard-thresholded gradient descent with Gaussian noise on every gradient.

    theta_t = H_s(theta_{t-1} - step * (gradient(theta_{t-1}) + noise)), t = 1..T.

    Guarantee: T Gaussian releases of sensitivity contributions * clip / n, composed by the exact Gaussian curve.
    With ``step=None`` the step follows the released gradients and coefficients below the known noise level are dropped
    (``thresher.algorithms.descent.descend`` or, for classes and where one round shows little,
    ``thresher.algorithms.lazy_descent.descend_lazily``); with a number it is the paper's algorithm to the letter.
    Several classes share one gradient, clipped as a whole.

    ``calibration="printed"`` uses the noise the papers print. With L = log(1/delta): sigma^2 = T G^2 / (n (sqrt(L +
    epsilon) - sqrt(L)))^2 (DP-IGHT, Remark 5.3; erratum E-1) or, with ``printed_constant=c``, sigma^2 = c T G^2 L /
    (n epsilon)^2 (DP-IHT, Algorithm 3, which leaves c open; c=1 is DP-IGHT's Corollary 5.8, erratum E-2).

    Parameters
    ----------
    iterations : int, optional
        Rounds T. None: a public rule of n, d, s and the budget.
    step : float, optional
        Length of a step. None: it follows the released gradients; a number is the algorithm as printed.
    clip : float, optional
        l2 norm to which the gradient of a row is clipped. None: a public rule of the bounds.
    ridge : float
        Adds (ridge/2)||theta||^2 to the loss.
    calibration : {"proved", "printed"}
        Noise that is proved to keep the budget, or that of the paper, whose real price the certificate states.
    printed_constant : float, optional
        c of the second printed formula; None is the first.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import SparseRegressor
    >>> from thresher.algorithms import DPIGHT
    >>> X = np.sin(np.arange(5000.0)).reshape(1000, 5)
    >>> model = SparseRegressor(
    ...     1, epsilon=2.0, feature_bound=1.0, target_bound=1.0, algorithm=DPIGHT(iterations=5)
    ... )
    >>> model.fit(X, X[:, 2]).certificate_.epsilon
    2.0
    """

    iterations: int | None = None
    step: float | None = None
    clip: float | None = None
    ridge: float = 0.0
    calibration: Calibration = "proved"
    printed_constant: float | None = None

    name: ClassVar[str] = "dp-ight"
    many_outputs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_rounds(self.iterations)
        check_positive(step=self.step, clip=self.clip, printed_constant=self.printed_constant)
        check_ridge(self.ridge)
        if self.calibration not in ("proved", "printed"):
            raise ValueError(f"calibration={self.calibration!r} must be 'proved' or 'printed'")

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        mu = gaussian_mu(budget.epsilon, budget.delta)
        rounds = self.iterations or default_rounds(problem, mu)
        clip = float(self.clip or gradient_clip(problem))
        noisy_gradient = GaussianGradient.calibrated(budget, times=rounds)
        notes: tuple[str, ...] = ()
        if self.calibration == "printed":
            sigma = printed_sigma(rounds, clip, problem.n, budget, self.printed_constant)
            noisy_gradient = GaussianGradient(rounds, sigma / gradient_sensitivity(clip, problem.n, budget.adjacency))
            notes = ("noise as printed in the papers; see errata E-1 and E-2",)
        step = self.step or ("lazy" if is_lazy(problem, mu) else "secant")
        settings = {"rounds": rounds, "clip": clip, "step": step, "ridge": self.ridge}
        return Plan(self.name, problem, budget, (noisy_gradient,), settings, self.calibration, notes)

    def run(self, vault: CentralVault) -> Floats:
        (noisy_gradient,) = vault.plan.releases
        problem, clip = vault.problem, vault.plan.settings["clip"]

        def gradient(theta: Floats) -> Floats:
            return between_classes(vault.gradient(theta, noisy_gradient, clip), problem) + self.ridge * theta

        if self.step is not None:
            return descend_by(self.step, gradient, problem, noisy_gradient.times)
        sd = noisy_gradient.multiplier * gradient_sensitivity(clip, problem.n, vault.plan.budget.adjacency)
        if vault.plan.settings["step"] == "lazy":
            left = 1 - 1 / problem.outputs if problem.outputs > 1 else 1.0  # of the noise, between classes
            return descend_lazily(gradient, problem, noisy_gradient.times, clip, math.sqrt(left) * sd)
        return descend(gradient, problem, noisy_gradient.times, clip, sd)


def is_lazy(problem: LinearProblem, mu: float) -> bool:
    """Whether rounds are summed up before they are thresholded: where one round shows little, which for classes and
    for rows bounded in l2 norm only (words are rare and uneven, so few rounds find few of them) are almost all.

    Where rounds are clear, sums do harm: those of columns that are left out grow until they change places with
    relatives, so that a larger budget would lead to a worse model.
    """
    several = problem.loss.residuals_stay or problem.bounds.feature is None
    return math.isfinite(mu) and signal_to_noise(problem, mu) < (CLEAR if several else 8)


def default_rounds(problem: LinearProblem, mu: float) -> int:
    """More rounds where the noise of one is small against the signal: a public rule of n, d, s and the budget.

    Forty for classes, whose loss bends: their rounds add up, so many noisy ones tell as much as few quiet ones. Where
    they are clear, and each is thresholded, as many as can be told from noise.
    """
    if problem.loss.residuals_stay:
        clear = min(signal_to_noise(problem, mu), MOST_CLEAR_ROUNDS)
        return MOST_ROUNDS if is_lazy(problem, mu) else round(clear)
    fewest, rate = (16, 2.0) if is_lazy(problem, mu) else (5, 1 / 3)
    return round(min(max(rate * signal_to_noise(problem, mu), fewest), MOST_ROUNDS))


def printed_sigma(rounds: int, clip: float, n: int, budget: Budget, constant: float | None) -> float:
    """The noise sd as the papers print it, with G = clip."""
    log_delta = math.log(1 / budget.delta)
    if constant is not None:  # DP-IHT, Algorithm 3
        return math.sqrt(constant * rounds * log_delta) * clip / (n * budget.epsilon)
    root_rho = math.sqrt(log_delta + budget.epsilon) - math.sqrt(log_delta)  # DP-IGHT, Theorem 5.2 and Remark 5.3
    return math.sqrt(rounds) * clip / (n * root_rho)
