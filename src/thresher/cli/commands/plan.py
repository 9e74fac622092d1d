"""thresher plan: what would be released, with what noise, and what would come of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from sklearn.base import clone

from thresher.cli.display import out, plan_record, show_json, show_plans
from thresher.cli.errors import check_outputs
from thresher.cli.forecasts import show_study
from thresher.cli.options import (
    AdjacencyOption,
    AsJson,
    Delta,
    Epsilon,
    FeatureBound,
    Force,
    Intercept,
    RowBound,
    Sparsity,
    TargetBound,
    Task,
    TaskOption,
    estimator_for,
)
from thresher.planning.chart import check_plot, drawn, write
from thresher.planning.forecast import DRAWS, PRIVATE, SIGNAL
from thresher.planning.simulate import LARGEST
from thresher.planning.study import Study, study
from thresher.privacy.plan import Plan
from thresher.vaults.problem import linear_problem

__all__ = ["plan"]

EPSILONS = "0.25,0.5,1,2,4,8"


def plan(
    n: Annotated[int, typer.Option(help="Rows of the table; people, for a fit with --person.")],
    d: Annotated[int, typer.Option(help="Columns of the table.")],
    sparsity: Sparsity = 10,
    epsilon: Epsilon = 1.0,
    delta: Delta = None,
    feature_bound: FeatureBound = None,
    row_bound: RowBound = None,
    target_bound: TargetBound = None,
    task: TaskOption = Task.REGRESSION,
    classes: Annotated[int, typer.Option(help="How many classes there are. Classification only.")] = 2,
    adjacency: AdjacencyOption = "replace-one",
    intercept: Intercept = True,
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
            autocompletion=lambda incomplete: _completed(incomplete),
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
    check_outputs(force, plot=plot)
    if feature_bound is None and row_bound is None:
        feature_bound = 1.0
    if task is Task.REGRESSION and target_bound is None:
        target_bound = "3"
    model = estimator_for(
        task, target_bound,
        sparsity=sparsity, epsilon=epsilon, delta=delta, feature_bound=feature_bound, row_bound=row_bound,
        adjacency=adjacency, fit_intercept=intercept,
        **({"classes": range(classes)} if task is Task.CLASSIFICATION else {}),
    )  # fmt: skip
    choice = model.plan(n, d)
    names = _names(algorithm, choice)
    plans = [clone(model).set_params(algorithm=name).plan(n, d) for name in names]
    asked = {"--epsilons": epsilons, "--rows": rows, "--reach": reach, "--plot": plot}
    why_not = _why_not(choice, simulate)
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
    found = study(
        model, n, d, epsilons=_numbers("--epsilons", epsilons, float), rows=_numbers("--rows", rows, int), reach=reach,
        algorithms=names, signal=signal, draws=draws, verbose=1,
    )  # fmt: skip
    if plot is not None:
        write(drawn(found.forecast, "epsilon" if rows is None else "rows", n, epsilon), plot)
    _show(plans, choice, found, as_json)
    if plot is not None and not as_json:
        out.print(f"Drawn: {plot}")


def _show(plans: list[Plan], choice: Plan, found: Study | str, as_json: bool) -> None:
    """The plans, and what was found in simulation or why there was none."""
    if as_json:
        records = [plan_record(each) | (found.of(each.algorithm) if isinstance(found, Study) else {}) for each in plans]
        show_json(records)
        return
    show_plans(plans)
    out.print(f"{choice.notes[-1]}.")
    if isinstance(found, Study):
        show_study(found, linear_problem(choice), choice.budget.epsilon)
    else:
        out.print(f"{found[0].upper()}{found[1:]}.")


def _completed(incomplete: str) -> list[str]:
    """What the last of several names may be, after those that stand already."""
    before, comma, _ = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in ("auto", *PRIVATE)]


def _names(text: str | None, choice: Plan) -> list[str]:
    """The algorithms asked for, "auto" by what it chose."""
    if text is None:
        return list(PRIVATE)
    names = list(dict.fromkeys(choice.algorithm if name == "auto" else name for name in text.split(",")))
    for name in names:
        if name not in PRIVATE:
            raise ValueError(f"--algorithm={name!r} must be one of {', '.join(map(repr, ('auto', *PRIVATE)))}")
    return names


def _why_not(choice: Plan, simulate: bool) -> str | None:
    """Why nothing is predicted, if nothing is."""
    problem = choice.problem
    if not simulate:
        return "not simulated, as asked"
    if problem.outputs > 1:
        return f"not simulated: predictions are made for numbers and for two classes, not for {problem.outputs}"
    if problem.n * problem.d > LARGEST:
        cells = f"{problem.n} x {problem.d} cells are more than the {LARGEST:,}"
        return f"not simulated: {cells} that take about a minute; noise against signal is all there is"
    return None


def _numbers(option: str, text: str | None, kind: type[Any]) -> list[Any]:
    if text is None:
        return []
    try:
        numbers = [kind(part) for part in text.split(",")]
    except ValueError:
        numbers = [0]
    if not all(number > 0 for number in numbers):
        raise ValueError(f"{option}={text!r} must be positive {'whole ' * (kind is int)}numbers with commas between")
    return sorted(set(numbers))
