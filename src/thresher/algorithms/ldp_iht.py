"""LDP-IHT (Wang and Xu, ICML 2019, Algorithm 1): hard-thresholded gradient descent on people's own reports."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from thresher.algorithms.defaults import check_local, check_positive, check_rounds, residual_clip
from thresher.algorithms.descent import descend, descend_by
from thresher.algorithms.lazy_descent import descend_lazily
from thresher.privacy.arrays import Floats
from thresher.privacy.budget import Budget
from thresher.privacy.plan import Plan
from thresher.privacy.questions import LocalGradient
from thresher.privacy.releases import ExactRelease, HypercubeReport, Release, SphereReport
from thresher.vaults import LocalVault
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomisers import VECTOR_RANDOMISERS, Sphere, best_vector_randomiser

__all__ = ["LDPIHT"]


FEWEST, MOST = 2, 8


@dataclass(frozen=True)
class LDPIHT:
    """T groups of people; in round t those of group t report their gradient at theta, randomised, once and for all.

    theta_t = P_B(H_s(theta_{t-1} - step * mean report of clip(r_i) x_i)), t = 1..T.

    Guarantee: pure epsilon, sequentially interactive local privacy. Nobody speaks twice and every report is epsilon-LDP
    on a ball or cube whose radius is made real by clipping the residual to [-clip, clip] (erratum E-14).

    ``step=None`` follows the reported gradients (``thresher.algorithms.descent.descend`` or, for classes,
    ``thresher.algorithms.lazy_descent.descend_lazily``); a number is the paper's loop. ``ball`` is the radius of
    the l2 ball of the projection, None for no projection (erratum E-13: the unit ball of the paper excludes the truth
    of its own experiment). ``randomiser`` is one of ``thresher.vaults.randomisers.VECTOR_RANDOMISERS``, or "auto": the
    least error, by public constants.

    Parameters
    ----------
    iterations : int, optional
        Rounds T, and groups of people. None: a public rule.
    step : float, optional
        Length of a step. None: it follows the released gradients; a number is the algorithm as printed.
    clip : float, optional
        What residuals are clipped to. None: a public rule of the bounds.
    ball : float, optional
        Radius of the projection on an l2 ball. None: no projection.
    randomiser : str
        One of ``thresher.vaults.randomisers.VECTOR_RANDOMISERS``, or "auto": the least error, by public
        constants.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import LocalSparseRegressor
    >>> from thresher.algorithms import LDPIHT
    >>> X = np.sin(np.arange(5000.0)).reshape(1000, 5)
    >>> model = LocalSparseRegressor(
    ...     1, epsilon=2.0, feature_bound=1.0, target_bound=1.0, algorithm=LDPIHT(iterations=2)
    ... )
    >>> model.fit(X, X[:, 2]).certificate_.epsilon
    2.0
    """

    iterations: int | None = None
    step: float | None = None
    clip: float | None = None
    ball: float | None = None
    randomiser: str = "auto"

    name: ClassVar[str] = "ldp-iht"

    def __post_init__(self) -> None:
        check_rounds(self.iterations)
        check_positive(step=self.step, clip=self.clip, ball=self.ball)
        if self.randomiser not in ("auto", *VECTOR_RANDOMISERS):
            names = ", ".join(map(repr, ("auto", *VECTOR_RANDOMISERS)))
            raise ValueError(f"randomiser={self.randomiser!r} must be one of {names}")

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        check_local(budget)
        if problem.outputs > 1:
            raise ValueError(
                "Only binary classification is supported. algorithm='ldp-iht' would have to report a gradient for each "
                f"of {problem.outputs} classes; use algorithm='label-ldp-iht' if the features are public"
            )
        name = chosen_randomiser(self.randomiser, problem, budget.epsilon)
        error = report_error(name, problem, budget.epsilon)
        rounds = self.iterations or default_rounds(problem, error)
        clip = float(self.clip or residual_clip(problem))
        step = self.step or ("lazy" if problem.loss.residuals_stay else "secant")
        settings = {
            "rounds": rounds, "clip": clip, "step": step, "ball": self.ball, "randomiser": name,
            "gradient_sd": clip * math.sqrt(error * rounds / problem.n), "measurement": problem.loss.measurement,
        }  # fmt: skip
        return Plan(self.name, problem, budget, (report_of(name, problem, budget, rounds),), settings, trust="local")

    def run(self, vault: LocalVault) -> Floats:
        (report,) = vault.plan.releases
        problem, clip = vault.problem, vault.plan.settings["clip"]

        def gradient(theta: Floats) -> Floats:
            return vault.gradient(theta, report, clip)

        if self.step is not None:
            return descend_by(self.step, gradient, problem, report.times, self.ball)
        loop = descend_lazily if problem.loss.residuals_stay else descend
        sd = vault.plan.settings["gradient_sd"]
        return loop(gradient, problem, report.times, clip * problem.row_norm, sd, self.ball)


def chosen_randomiser(name: str, problem: LinearProblem, epsilon: float) -> str:
    """The randomiser of this name; "auto" is settled by public constants."""
    if name != "auto" or math.isinf(epsilon):
        return name
    entries = float(np.linalg.norm(problem.entry_bounds))
    return best_vector_randomiser(problem.dimension, epsilon, problem.row_norm, entries)


def report_error(name: str, problem: LinearProblem, epsilon: float) -> float:
    """The variance of one reported coefficient's gradient, at a residual clip of 1, averaged over coefficients."""
    if math.isinf(epsilon):
        return 0.0
    randomiser = VECTOR_RANDOMISERS[name](problem.dimension, epsilon)
    if isinstance(randomiser, Sphere):
        return randomiser.second_moment / problem.dimension * problem.row_norm**2
    columns = problem.entry_bounds[: problem.d]
    return randomiser.second_moment / problem.dimension * float(columns @ columns) / problem.d


def report_of(name: str, problem: LinearProblem, budget: Budget, rounds: int) -> Release:
    """The release: a report of each person in one of ``rounds`` groups."""
    if not budget.private:
        return ExactRelease(times=rounds, question=LocalGradient())
    randomiser = VECTOR_RANDOMISERS[name](problem.dimension, budget.epsilon)
    if isinstance(randomiser, Sphere):
        return SphereReport(rounds, budget.epsilon, problem.dimension, randomiser.height)
    return HypercubeReport(rounds, budget.epsilon, problem.dimension, randomiser.sampled, randomiser.agreeing)


def default_rounds(problem: LinearProblem, error: float) -> int:
    """More rounds where one of them already shows the signal of s equal coefficients; never more than people.

    For classes, gradients of all rounds add up before they are thresholded, so that none of them need show anything.
    """
    if error == 0 or problem.loss.residuals_stay:
        return min(MOST, problem.n)
    signal = problem.curvature * float(problem.entry_bounds[: problem.d].mean())
    ratio = signal * math.sqrt(problem.n / (error * problem.sparsity))
    return min(round(min(max(ratio, FEWEST), MOST)), problem.n)
