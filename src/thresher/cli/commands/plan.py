"""thresher plan: what would be released, with what noise, and what would come of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from thresher.cli.errors import check_outputs
from thresher.cli.front_door import takes_fields
from thresher.cli.options import (
    SPARSE,
    AsJson,
    Force,
    TargetBound,
    TaskKind,
    TaskOption,
    estimator_for,
)
from thresher.models.options import SparseOptions

if TYPE_CHECKING:
    from rich.table import Table as Grid

    from thresher.planning.forecast import Forecast
    from thresher.planning.law import PlanningLaw
    from thresher.planning.reach import Reach
    from thresher.planning.verdict import PlanningStudy
    from thresher.privacy.plan import Plan
    from thresher.vaults.problem import LinearProblem

__all__ = ["plan"]

SIGNAL, DRAWS = 0.8, 19
NOT_PRIVATE = "ight"
"""As in thresher.planning.forecast, which help must not import; a test compares them."""

PRIVATE = tuple(name for name in SPARSE if name not in ("auto", NOT_PRIVATE))

Number = TypeVar("Number", int, float)

EPSILONS = "0.25,0.5,1,2,4,8"


@takes_fields(SparseOptions, leave_out=("dataset", "hardened"))
def plan(
    n: Annotated[int, typer.Option(help="Rows of the table; people, for a fit with --person.")],
    d: Annotated[int, typer.Option(help="Columns of the table.")],
    *,
    params: dict[str, Any],
    target_bound: TargetBound = None,
    task: TaskOption = TaskKind.REGRESSION,
    classes: Annotated[int, typer.Option(help="How many classes there are. Classification only.")] = 2,
    signal: Annotated[
        float,
        typer.Option(
            help="Share of variance that the true features explain: of the target, or of the score behind two classes."
        ),
    ] = SIGNAL,
    algorithm: Annotated[
        str | None,
        typer.Option(
            help=f"Only these, NAME or NAME,NAME of {', '.join(PRIVATE)}, auto.",
            autocompletion=lambda incomplete: _complete_names(incomplete),
        ),
    ] = None,
    epsilons: Annotated[str | None, typer.Option(help=f"Predict for these budgets as well: {EPSILONS}.")] = None,
    rows: Annotated[str | None, typer.Option(help="Predict for these numbers of rows as well: 1000,10000.")] = None,
    reach: Annotated[
        float | None, typer.Option(help="How much epsilon, and how many rows, a mean error of this needs.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help=f"Draw errors by --epsilons (default {EPSILONS}) or by --rows: .svg, .png, .pdf."),
    ] = None,
    draws: Annotated[int, typer.Option(help="Synthetic tables that predictions rest on.")] = DRAWS,
    simulate: Annotated[bool, typer.Option(help="Predict by simulation, or show releases and noise only.")] = True,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Show what every algorithm would release, with what noise, and what would come of it on such a table.

    Needs no data and spends nothing: predictions come from synthetic tables of this shape. Without bounds, features are
    taken to be within 1 and the target within 3.

    Examples:

    \b
    thresher plan --n 4000 --d 1000 --sparsity 10 --epsilon 1
    thresher plan --n 4000 --d 1000 --reach 0.2 --algorithm pursuit,peeling
    thresher plan --n 4000 --d 1000 --epsilons 0.25,0.5,1,2,4,8 --plot plan.svg
    """
    from sklearn.base import clone

    from thresher.cli.display import out
    from thresher.planning.chart import check_plot, draw_forecast, save_figure
    from thresher.planning.verdict import run_study

    check_outputs(force, plot=plot)
    if params["feature_bound"] is None and params["row_bound"] is None:
        params["feature_bound"] = 1.0
    if task is TaskKind.REGRESSION and target_bound is None:
        target_bound = "3"
    if task is TaskKind.CLASSIFICATION:
        params["classes"] = range(classes)
    model = estimator_for(task, target_bound, **params)
    choice = model.plan(n, d)
    names = _names(algorithm, choice)
    plans = [clone(model).set_params(algorithm=name).plan(n, d) for name in names]
    asked = {"--epsilons": epsilons, "--rows": rows, "--reach": reach, "--plot": plot}
    why_not = _reason_not_to_simulate(choice, simulate)
    if why_not is not None:
        for option, value in asked.items():
            if value is not None:
                raise ValueError(f"{option}={value!s}: {why_not}; leave it out")
        _show(plans, choice, why_not, as_json)
        return
    if plot is not None:
        check_plot(plot)
        if epsilons is not None and rows is not None:
            raise ValueError("--plot draws one sweep; give --epsilons or --rows, not both")
        epsilons = epsilons or (EPSILONS if rows is None else None)
    if reach is not None and not 0 < reach < 1:
        raise ValueError(f"--reach={reach:g} must lie strictly between 0 and 1, which is the error of the zero model")
    found = run_study(
        model, n, d, epsilons=_numbers("--epsilons", epsilons, float), rows=_numbers("--rows", rows, int), reach=reach,
        algorithms=names, signal=signal, draws=draws, verbose=1,
    )  # fmt: skip
    if plot is not None:
        save_figure(draw_forecast(found.forecast, "epsilon" if rows is None else "rows", n, params["epsilon"]), plot)
    _show(plans, choice, found, as_json)
    if plot is not None and not as_json:
        out.print(f"Drawn: {plot}")


def _show(plans: list[Plan], choice: Plan, found: PlanningStudy | str, as_json: bool) -> None:
    """The plans, and what was found in simulation or why there was none."""
    from thresher.cli.display import out, plan_record, show_json, show_plans
    from thresher.planning.verdict import PlanningStudy
    from thresher.vaults.problem import linear_problem

    if as_json:
        records = [
            plan_record(each) | (found.of(each.algorithm) if isinstance(found, PlanningStudy) else {}) for each in plans
        ]
        show_json(records)
        return
    show_plans(plans)
    out.print(f"{choice.notes[-1]}.")
    if isinstance(found, PlanningStudy):
        show_study(found, linear_problem(choice), choice.budget.epsilon)
    else:
        out.print(f"{found[0].upper()}{found[1:]}.")


def _complete_names(incomplete: str) -> list[str]:
    """What the last of several names may be, after those that stand already."""
    before, comma, _ = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in ("auto", *PRIVATE)]


def _names(text: str | None, choice: Plan) -> list[str]:
    """The algorithms asked for, "auto" by what it chose."""
    from thresher.vaults.problem import linear_problem

    if text is None:
        return [choice.algorithm] if linear_problem(choice).as_many_as_pay else list(PRIVATE)
    names = list(dict.fromkeys(choice.algorithm if name == "auto" else name for name in text.split(",")))
    for name in names:
        if name not in PRIVATE:
            raise ValueError(f"--algorithm={name!r} must be one of {', '.join(map(repr, ('auto', *PRIVATE)))}")
    return names


def _reason_not_to_simulate(choice: Plan, simulate: bool) -> str | None:
    """Why nothing is predicted, if nothing is."""
    from thresher.planning.simulate import LARGEST
    from thresher.vaults.problem import linear_problem

    problem = linear_problem(choice)
    if not simulate:
        return "not simulated, as asked"
    if problem.as_many_as_pay:
        return "not simulated: predictions are for a number of true features; give --sparsity one"
    if problem.outputs > 1:
        return f"not simulated: predictions are made for numbers and for two classes, not for {problem.outputs}"
    if problem.n * problem.d > LARGEST:
        cells = f"{problem.n} x {problem.d} cells are more than the {LARGEST:,}"
        return f"not simulated: {cells} that take about a minute; noise against signal is all there is"
    return None


def _numbers(option: str, text: str | None, kind: type[Number]) -> list[Number]:
    if text is None:
        return []
    try:
        numbers = [kind(part) for part in text.split(",")]
    except ValueError:
        numbers = [kind(0)]
    if not all(number > 0 for number in numbers):
        raise ValueError(f"{option}={text!r} must be positive {'whole ' * (kind is int)}numbers with commas between")
    return sorted(set(numbers))


# -- predictions on a terminal ----------------------------------------------------------------------------------------


def show_study(found: PlanningStudy, problem: LinearProblem, epsilon: float) -> None:
    """Predictions for the shape and budget that were asked about, sweeps, needs, and last the verdict."""
    from thresher.cli.display import out
    from thresher.planning.law import PlanningLaw

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
        out.print(f"For an {kind} of {need.error:g}, {need.algorithm} needs, in {what}: {reach_text(need)}.")


def _show_forecast(forecast: Forecast, law: PlanningLaw, epsilon: float) -> None:
    """Each algorithm on the shape that was asked about, the yardstick last."""
    from thresher.cli.display import out

    n, classifies = law.problem.n, law.problem.loss.classifies
    extra = ["direction"] if classifies else []
    grid = _grid("mean error", "one run", *extra, "found", "accuracy" if classifies else "R^2")
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
    from thresher.cli.display import out

    grid = _grid(*(f"{n:d}" if by_rows else f"{epsilon:g}" for n, epsilon in shapes), title=title)
    for name in (*forecast.private, NOT_PRIVATE):
        found = [forecast.one(name, n, epsilon) for n, epsilon in shapes]
        grid.add_row(_name(name), *(f"{each.error.mean:.2f} ({each.found.mean:.0%})" for each in found))
    out.print(grid)


def _show_reach(found: PlanningStudy, n: int, epsilon: float) -> None:
    from thresher.cli.display import out

    grid = _grid(f"epsilon on {n} rows", f"rows at epsilon {epsilon:g}")
    for left, right in zip(found.by_epsilon, found.by_rows, strict=True):
        grid.add_row(left.algorithm, reach_text(left), reach_text(right))
    grid.title = f"needed for a mean error of {found.by_rows[0].error:g}"
    out.print(grid)
    out.print("From what clearly is too little to what clearly is enough, by two standard errors each.")


def _grid(*columns: str, title: str | None = None) -> Grid:
    """A table with a line for each algorithm."""
    from rich.table import Column
    from rich.table import Table as Grid

    return Grid(Column("algorithm", no_wrap=True), *columns, title=title)


def reach_text(reach: Reach) -> str:
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
