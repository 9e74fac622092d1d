"""Predictions on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Column
from rich.table import Table as Grid

from thresher.cli.display import out
from thresher.planning.forecast import NOT_PRIVATE, Forecast
from thresher.planning.law import PlanningLaw
from thresher.planning.reach import Reach
from thresher.planning.study import Study
from thresher.vaults.problem import LinearProblem

__all__ = ["needed", "show_study"]

WHO = Column("algorithm", no_wrap=True)


def show_study(found: Study, problem: LinearProblem, epsilon: float) -> None:
    """Predictions for the shape and budget that were asked about, sweeps, needs, and last the verdict."""
    forecast, n = found.forecast, problem.n
    _show_forecast(forecast, PlanningLaw(problem, forecast.signal), epsilon)
    private = [each for each in forecast.predictions if each.algorithm != NOT_PRIVATE]
    epsilons, rows = sorted({each.epsilon for each in private}), sorted({each.n for each in private})
    if len(epsilons) > 1:
        _show_sweep(f"mean error (features found) on {n} rows, by epsilon", forecast, [(n, e) for e in epsilons])
    if len(rows) > 1:
        title = f"mean error (features found) at epsilon {epsilon:g}, by rows"
        _show_sweep(title, forecast, [(each, epsilon) for each in rows], by_rows=True)
    if found.by_epsilon:
        _show_reach(found, n, epsilon)
    out.print(found.verdict.words)
    for need in found.remedies:
        what = "rows at this epsilon" if need.over == "rows" else "epsilon on so many rows"
        kind = "error in direction" if problem.loss.classifies else "error"
        out.print(f"For an {kind} of {need.error:g}, {need.algorithm} needs, in {what}: {needed(need)}.")


def _show_forecast(forecast: Forecast, law: PlanningLaw, epsilon: float) -> None:
    """Each algorithm on the shape that was asked about, the yardstick last."""
    n, classifies = law.problem.n, law.problem.loss.classifies
    extra = ["direction"] if classifies else []
    grid = Grid(WHO, "mean error", "one run", *extra, "found", "accuracy" if classifies else "R^2")
    for each in (*forecast.at(n, epsilon), forecast.one(NOT_PRIVATE, n, epsilon)):
        direction = [f"{each.direction.mean:.2f}"] if classifies else []
        grid.add_row(
            _name(each.algorithm), f"{each.error.mean:.2f} +-{each.error.standard_error:.2f}",
            f"{each.error.low:.2f}-{each.error.high:.2f}", *direction,
            f"{each.found.mean:.0%}", f"{each.score.mean:.2f}",
        )  # fmt: skip
    grid.title = f"predicted from {forecast.draws} synthetic tables of this shape"
    out.print(grid)
    said = f"the best rule is right in {law.best_accuracy():.0%} of rows" if classifies else "R^2 of the truth"
    out.print(f"Signal {forecast.signal:g} ({said}), in {forecast.sparsity} features of comparable strength.")
    out.print("Error: distance from the true coefficients over their length; the zero model has 1.")
    if classifies:
        out.print("Direction: the error of the best multiple of the model, which names the same classes.")
    out.print(
        f"One run: a single future run falls into it with a chance of {forecast.chance_of_one_run:.0%} or more; "
        "+- is the standard error of the mean. Found: the share of the true features that the model uses."
    )


def _show_sweep(
    title: str, forecast: Forecast, shapes: Sequence[tuple[int, float]], *, by_rows: bool = False
) -> None:  # fmt: skip
    grid = Grid(WHO, *(f"{n:d}" if by_rows else f"{epsilon:g}" for n, epsilon in shapes), title=title)
    for name in (*forecast.private, NOT_PRIVATE):
        found = [forecast.one(name, n, epsilon) for n, epsilon in shapes]
        grid.add_row(_name(name), *(f"{each.error.mean:.2f} ({each.found.mean:.0%})" for each in found))
    out.print(grid)


def _show_reach(found: Study, n: int, epsilon: float) -> None:
    grid = Grid(WHO, f"epsilon on {n} rows", f"rows at epsilon {epsilon:g}")
    for left, right in zip(found.by_epsilon, found.by_rows, strict=True):
        grid.add_row(left.algorithm, needed(left), needed(right))
    grid.title = f"needed for a mean error of {found.by_rows[0].error:g}"
    out.print(grid)
    out.print("From what clearly is too little to what clearly is enough, by two standard errors each.")


def needed(reach: Reach) -> str:
    """The answer in words."""
    if reach.high is None:
        return f"more than {_amount(reach, reach.tried[1])}" if reach.about is None else _about(reach, "or more")
    if reach.low is None:
        return f"{_amount(reach, reach.high)} or less"
    return _about(reach, f"({_amount(reach, reach.low)} to {_amount(reach, reach.high)})")


def _about(reach: Reach, rest: str) -> str:
    return f"{'' if reach.about is None else _amount(reach, reach.about)} {rest}".strip()


def _amount(reach: Reach, value: float) -> str:
    return f"{value:.2g}" if reach.over == "epsilon" else f"{round(value):d}"


def _name(algorithm: str) -> str:
    return f"{algorithm} (not private)" if algorithm == NOT_PRIVATE else algorithm
