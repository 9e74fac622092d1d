"""Whether what thresher plan predicts comes true. Tables in Markdown, for docs/planning.md.

law: for a grid of shapes, budgets and tasks, errors predicted by thresher.planning.forecast with its defaults against
errors measured afterwards on fresh draws of the same law, fitted one by one with noise from the operating system. A
cell fails if the predicted mean is off by more than 30 % of the measured one and the measured one lies outside the
range of one run as well. Also how many of the fresh runs fall into that range, which claims 90 % of them.

others: the same on laws that are not the planner's (benchmarks/laws.py), given the share of variance that they explain.

real: predicted against measured scores on real sets (THRESHER_DATA names their folder), where no law holds. The signal
given is the one whose best score is that of non-private IGHT on the test rows: more than anybody knows beforehand.

Run: ./dev planner [law | others | real]
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import brentq
from sklearn.base import clone

import laws
from thresher import SparseClassifier, SparseRegressor
from thresher.planning import Forecast, PlanningLaw, forecast
from thresher_papers.datasets import load

ALGORITHMS = ("pursuit", "peeling", "dp-ight")
SHAPES = ((1000, 100, 5), (2000, 100, 10), (1500, 1000, 10), (4000, 1000, 10), (10_000, 200, 20))
Cell = tuple[str, tuple[int, int, int], float]  # task, shape, signal
CELLS: tuple[Cell, ...] = tuple(
    (task, shape, signal)
    for task in ("numbers", "classes")
    for shape, signal in (*((shape, 0.8) for shape in SHAPES), ((4000, 200, 5), 0.3))
)
EPSILONS = (0.5, 1.0, 4.0)
RUNS = 60
CLOSE = 0.3
FIRST_SEED = 10**6  # far from those of the predictions


def models(s: int) -> dict[str, Any]:
    return {
        "numbers": SparseRegressor(s, feature_bound=1.0, target_bound=3.0),
        "classes": SparseClassifier(s, feature_bound=1.0, classes=[0, 1]),
    }


def measured(fit: Callable[[int], dict[str, float]], runs: int = RUNS) -> dict[str, np.ndarray[Any, Any]]:
    """The results of fresh runs, by algorithm."""
    found = Parallel(n_jobs=-1 if runs > 1 else 1)(delayed(fit)(FIRST_SEED + run) for run in range(runs))
    return {name: np.array([each[name] for each in found]) for name in found[0]}


def errors_on_law(model: Any, law: PlanningLaw, seed: int) -> dict[str, float]:
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(seed)
    X, y, theta = law.rows(rng, law.problem.n, law.coefficients(rng))
    fits = {name: clone(model).set_params(algorithm=name).fit(X, y) for name in ALGORITHMS}
    return {n: float(np.linalg.norm(np.ravel(fit.coef_) - theta) / np.linalg.norm(theta)) for n, fit in fits.items()}


class Tally:
    """Of cells: how many failed, and for which reason they did not; of runs: how many fell into the range."""

    def __init__(self) -> None:
        self.cells = self.close = self.failed = self.inside = self.runs = 0

    def add(self, prediction: Any, errors: Any) -> str:
        spread, mean = prediction.error, float(errors.mean())
        close = abs(spread.mean - mean) <= CLOSE * mean
        covers = spread.low <= mean <= spread.high
        self.cells += 1
        self.close += close
        self.failed += not (close or covers)
        self.inside += int(np.sum((spread.low <= errors) & (errors <= spread.high)))
        self.runs += len(errors)
        return (
            f"{spread.mean:.3f} ({spread.low:.2f}-{spread.high:.2f}); {mean:.3f}{'' if close or covers else ' FAILED'}"
        )

    def __str__(self) -> str:
        return (
            f"{self.cells} cells: {self.close} predicted within {CLOSE:.0%}, {self.failed} failed. "
            f"Of {self.runs} fresh runs {self.inside / self.runs:.1%} fell into the range of one run."
        )


def of_each(predicted: Forecast, n: int, epsilon: float, errors: Any, tally: Tally) -> list[str]:
    return [tally.add(predicted.one(name, n, epsilon), errors[name]) for name in ALGORITHMS]


def on_the_law(cells: Iterable[Cell] = CELLS, epsilons: Sequence[float] = EPSILONS, runs: int = RUNS) -> None:
    print(f"\nPredicted error (range of one run); error measured in {runs} fresh runs:\n")
    row("task", "n, d, s", "signal", "epsilon", *ALGORITHMS)
    print("|---" * 7 + "|")
    tally = Tally()
    for task, (n, d, s), signal in cells:
        model = models(s)[task]
        predicted = forecast(model, n, d, signal=signal, epsilons=epsilons, algorithms=ALGORITHMS)
        law = PlanningLaw(model.plan(n, d).problem, signal)
        for epsilon in epsilons:
            model = clone(model).set_params(epsilon=epsilon)
            errors = measured(lambda seed, model=model, law=law: errors_on_law(model, law, seed), runs)  # type: ignore[misc]
            found = of_each(predicted, n, epsilon, errors, tally)
            row(task, f"{n}, {d}, {s}", signal, f"{epsilon:g}", *found)
    print(f"\n{tally}")


def errors_elsewhere(model: Any, law: Any, shape: tuple[int, int, int], seed: int) -> dict[str, float]:
    warnings.simplefilter("ignore")
    X, y, theta = law(np.random.default_rng(seed), *shape)
    fits = {name: clone(model).set_params(algorithm=name).fit(X, y) for name in ALGORITHMS}
    return {name: laws.relative_error(fit.coef_, X, theta) for name, fit in fits.items()}


def on_other_laws(shape: tuple[int, int, int] = (4000, 1000, 10), epsilon: float = 1.0) -> None:
    n, d, s = shape
    print(f"\nOther laws, {n} x {d}, {s} features, epsilon {epsilon:g}: predicted error (range); measured:\n")
    row("law", "signal given", *ALGORITHMS)
    print("|---" * 5 + "|")
    tally = Tally()
    for name, law in laws.LAWS.items():
        X, y, theta = law(np.random.default_rng(0), n, d, s)
        signal = round(min(0.99, float(np.var(X @ theta) / np.var(y))), 2)
        bound = 3 * float(np.std(y))
        middle = float(np.mean(y))
        model = SparseRegressor(s, epsilon=epsilon, feature_bound=1.0, target_bound=(middle - bound, middle + bound))
        predicted = forecast(model, n, d, signal=signal, algorithms=ALGORITHMS)
        errors = measured(lambda seed, model=model, law=law: errors_elsewhere(model, law, shape, seed))  # type: ignore[misc]
        row(name, signal, *of_each(predicted, n, epsilon, errors, tally))
    print(f"\n{tally}")


def real(runs: int = 10) -> None:
    print(f"\nReal sets: predicted score (range of one run); mean score of {runs} fits on the test rows:\n")
    row("set", "n, d, s", "without privacy", "zero model", "signal given", "epsilon", *ALGORITHMS)
    print("|---" * 9 + "|")
    for name, s in (("a9a", 20), ("mice_genomics", 10), ("leukemia", 5)):
        data = load(name)
        n, d = data.X.shape
        door: Any = SparseRegressor if data.regression else SparseClassifier
        model = door(s, **data.bounds)
        exact = score(clone(model).set_params(algorithm="ight", epsilon=np.inf), data, 0)
        trivial = (
            0.0 if data.regression else float(np.unique(data.y_test, return_counts=True)[1].max() / len(data.y_test))
        )
        signal = exact if data.regression else signal_of(model.plan(n, d).problem, exact)
        for epsilon in (0.5, 1.0, 4.0):
            asked = clone(model).set_params(epsilon=epsilon)
            predicted = forecast(asked, n, d, signal=signal, algorithms=ALGORITHMS)
            shown = []
            for each in ALGORITHMS:
                spread = predicted.one(each, n, epsilon).score
                fits = [score(clone(asked).set_params(algorithm=each), data, seed) for seed in range(runs)]
                shown.append(f"{spread.mean:.2f} ({spread.low:.2f} to {spread.high:.2f}); {np.mean(fits):.2f}")
            row(name, f"{n}, {d}, {s}", f"{exact:.2f}", f"{trivial:.2f}", f"{signal:.2f}", f"{epsilon:g}", *shown)


def score(model: Any, data: Any, seed: int) -> float:
    warnings.simplefilter("ignore")
    return float(model.set_params(random_state=seed).fit(data.X, data.y).score(data.X_test, data.y_test))


def signal_of(problem: Any, accuracy: float) -> float:
    """The signal whose best rule has this accuracy."""
    signal = brentq(lambda share: PlanningLaw(problem, share).best_accuracy() - accuracy, 1e-4, 0.9999)
    return float(signal)


def row(*found: object) -> None:
    print("|", " | ".join(map(str, found)), "|", flush=True)


PARTS: dict[str, Callable[[], None]] = {"law": on_the_law, "others": on_other_laws, "real": real}


def smallest() -> None:
    on_the_law([("numbers", (100, 20, 2), 0.8)], epsilons=[4.0], runs=1)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for part in sys.argv[1:] or PARTS:
        if part != "real" or "THRESHER_DATA" in os.environ:
            PARTS[part]()
