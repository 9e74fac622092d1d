"""The plan that all label algorithms share: one randomised label per person."""

from __future__ import annotations

import math
from typing import Any, Protocol, get_args

from thresher.algorithms.defaults import check_local
from thresher.privacy.budget import Budget
from thresher.privacy.plan import Calibration, Plan
from thresher.privacy.questions import LocalLabels
from thresher.privacy.releases import ClassReport, ExactRelease, GaussianReport, LaplaceReport, PiecewiseReport, Release
from thresher.privacy.sensitivity import report_sensitivity
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomisers import Classes, Gaussian, Laplace, Piecewise

__all__ = ["NOISES", "check_calibration", "label_plan"]

NOISES = ("auto", "piecewise", "laplace", "gaussian")
TYPICAL = 1 / 3  # of a label's range: where the randomisers are compared


class LabelAlgorithm(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def noise(self) -> str: ...
    @property
    def calibration(self) -> Calibration: ...
    @property
    def noise_bound(self) -> float: ...


def check_calibration(noise: str, calibration: str) -> None:
    if noise not in NOISES:
        raise ValueError(f"noise={noise!r} must be one of {', '.join(map(repr, NOISES))}")
    if calibration not in get_args(Calibration):
        raise ValueError(f"calibration={calibration!r} must be 'proved' or 'printed'")
    if calibration == "printed" and noise not in ("auto", "gaussian"):
        raise ValueError(f"noise={noise!r}: the printed calibration is of Gaussian noise; leave noise='auto'")


def label_plan(algorithm: LabelAlgorithm, problem: LinearProblem, budget: Budget, settings: dict[str, Any]) -> Plan:
    """One report per person, and the standard deviation it leaves on a label."""
    check_local(budget)
    notes: tuple[str, ...] = ()
    if algorithm.calibration == "printed" and budget.private:
        report, sd = _printed(problem, budget, algorithm.noise_bound)
        notes = ("noise as printed in the paper; see erratum E-12",)
    else:
        report, sd = _proved(problem, budget, algorithm.noise)
    settings = {**settings, "noise": report.noise, "label_sd": sd, "measurement": problem.loss.measurement}
    return Plan(algorithm.name, problem, budget, (report,), settings, algorithm.calibration, notes, trust="labels")


def _proved(problem: LinearProblem, budget: Budget, noise: str) -> tuple[Release, float]:
    if not budget.private:
        return ExactRelease(times=1, question=LocalLabels()), 0.0
    if problem.loss.classifies:
        if noise != "auto":
            raise ValueError(f"noise={noise!r} is for labels that are numbers; classes take noise='auto'")
        classes = max(problem.outputs, 2)
        response = Classes(classes, budget.epsilon)
        return ClassReport(1, budget.epsilon, classes), math.sqrt(response.variance(2 / classes - 1)) / 2
    options: dict[str, tuple[Release, float]] = {
        "piecewise": (PiecewiseReport(1, budget.epsilon), Piecewise(budget.epsilon).variance(TYPICAL)),
        "laplace": (LaplaceReport(1, budget.epsilon), Laplace(budget.epsilon).variance(TYPICAL)),
    }
    if budget.delta > 0:
        noise_of_delta = Gaussian.calibrated(budget.epsilon, budget.delta)
        options["gaussian"] = (GaussianReport.calibrated(budget, times=1), noise_of_delta.variance(TYPICAL))
    elif noise == "gaussian":
        raise ValueError(
            "noise='gaussian' needs delta above 0, for example delta=1e-6; 'piecewise' and 'laplace' are pure"
        )
    best = min(options, key=lambda name: options[name][1]) if noise == "auto" else noise
    release, variance = options[best]
    return release, problem.bounds.target_span[1] * math.sqrt(variance)


def _printed(problem: LinearProblem, budget: Budget, noise_bound: float) -> tuple[Release, float]:
    """sd^2 = 32 C^2 log(1.25/delta)/epsilon^2, priced by what it hides of the enforced range."""
    if problem.loss.classifies:
        raise ValueError("calibration='printed' is for labels that are numbers; classes have no printed noise")
    if budget.delta == 0:
        raise ValueError("calibration='printed' needs delta above 0; the paper's experiments have delta=1e-3")
    sd = noise_bound * math.sqrt(32 * math.log(1.25 / budget.delta)) / budget.epsilon
    return GaussianReport(1, sd / report_sensitivity(problem.bounds.target_span[1], budget.adjacency)), sd
