"""What several commands show on a terminal: plans, models, certificates; or JSON instead."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from thresher.algorithms.signal_to_noise import noise_over_largest_signal, noise_over_signal
from thresher.privacy.arrays import Floats
from thresher.privacy.budget import Budget
from thresher.privacy.certificate import Certificate
from thresher.privacy.plan import Plan
from thresher.privacy.releases import Release, release_from_dict
from thresher.report.summary import FittedModel
from thresher.report.words import UNITS, displayable, range_text, setting_text, value_text
from thresher.vaults.problem import LinearProblem, linear_problem

__all__ = [
    "folding_grid",
    "out",
    "plan_record",
    "quiet_output",
    "show_certificate",
    "show_coefficients",
    "show_json",
    "show_plans",
]  # fmt: skip


class PlainConsole(Console):
    """Shows every text as it is, in a table or by itself: without markup such as [/b], and displayable."""

    def __init__(self) -> None:
        super().__init__(highlight=False, soft_wrap=True, markup=False, emoji=False)

    def render_str(self, text: str, **how: Any) -> Text:
        return super().render_str(displayable(text), **how)


out = PlainConsole()


@contextmanager
def quiet_output(wanted: bool) -> Iterator[None]:
    """Show nothing, for a command that prints JSON instead."""
    out.quiet = wanted
    try:
        yield
    finally:
        out.quiet = False


def show_json(record: object) -> None:
    """On standard output, as JSON that every reader takes: it knows no infinity, which is "inf" as in certificates."""
    typer.echo(json.dumps(_json_value(record), indent=2, allow_nan=False))


def _json_value(record: object) -> object:
    if isinstance(record, Mapping):
        return {name: _json_value(value) for name, value in record.items()}
    if isinstance(record, (list, tuple)):
        return [_json_value(value) for value in record]
    return str(record) if isinstance(record, float) and not math.isfinite(record) else record


def folding_grid(*names: str) -> Grid:
    """A table of which nothing is cut off, however narrow the terminal."""
    grid = Grid(*names)
    for column in grid.columns:
        column.overflow = "fold"
    return grid


def show_plans(plans: list[Plan]) -> None:
    """What each algorithm would release, and noise against signal."""
    budget, problem = plans[0].budget, plans[0].problem
    grid = Grid("algorithm", "releases", "noise / sensitivity", "settings")
    for item in plans:
        settings = ", ".join(f"{k} {value_text(v)}" for k, v in item.settings.items() if k != "order")
        kinds: dict[str, list[Release]] = {}
        for release in item.releases:
            kinds.setdefault(f"{release.question}, {release.noise}", []).append(release)
        for at, (kind, releases) in enumerate(kinds.items()):
            times = sum(release.times for release in releases)
            noise = range_text([release.multiplier for release in releases])
            first = at == 0
            grid.add_row(item.algorithm if first else "", f"{times} x {kind}", noise, settings if first else "")
    grid.title = f"epsilon {budget.epsilon:g}, delta {budget.delta:.2g}, {budget.adjacency}, {problem.n} x {problem.d}"
    out.print(grid)
    _show_ledger_prices(plans)
    show_signal_to_noise(linear_problem(plans[0]), budget)


def _show_ledger_prices(plans: list[Plan]) -> None:
    """What these plans would take from a ledger's grant, where that is more than they cost by themselves."""
    more = {plan.algorithm: plan.ledger_epsilon for plan in plans if plan.ledger_epsilon > plan.budget.epsilon}
    if more and plans[0].budget.private:
        told = ", ".join(f"{name} {epsilon:.3g}" for name, epsilon in more.items())
        out.print(f"In what adds up over fits, as ledgers count, these cost more epsilon: {told}.")
        out.print(f"A fit with a ledger gets more noise instead, so that it takes {plans[0].budget.epsilon:g} there.")


def plan_record(plan: Plan) -> dict[str, object]:
    """What is shown of a plan, for JSON."""
    return {
        "algorithm": plan.algorithm,
        "epsilon": plan.epsilon,
        "ledger_epsilon": plan.ledger_epsilon if math.isfinite(plan.ledger_epsilon) else None,
        "delta": plan.budget.delta,
        "releases": [release.to_dict() for release in plan.releases],
        "settings": dict(plan.settings),
        "notes": list(plan.notes),
        "noise_over_signal": noise_over_signal(linear_problem(plan), plan.budget),
        "noise_over_largest_signal": noise_over_largest_signal(linear_problem(plan), plan.budget),
    }


def show_signal_to_noise(problem: LinearProblem, budget: Budget) -> None:
    """Noise against signal, and a warning where nothing private can work."""
    ratio, least = noise_over_signal(problem, budget), noise_over_largest_signal(problem, budget)
    out.print(f"Noise over signal for {problem.sparsity} equally strong, unrelated features: {ratio:.2g}.")
    if ratio > 1:
        out.print("Above 1 such features drown: expect few or none, unless some are far stronger than others.")
        out.print("More rows, a larger epsilon, a smaller sparsity or tighter bounds help.")
    if least > 1:
        out.print(f"Even a feature that decides the target alone would drown: noise {least:.2g} times its signal.")
        few = f"With {problem.n} rows and {problem.sparsity} features"
        out.print(f"{few} nothing here can work at this epsilon; do not spend it.")


def show_coefficients(model: FittedModel, truth: Floats | None = None) -> None:
    """The table of ``summary()``, beside the truth if it is known."""
    summary = model.summary()
    grid = Grid(*summary.columns, *(["truth"] if truth is not None else []))
    for position, cells in summary.lines():
        true = [f"{truth[position]:+.4g}"] if truth is not None and position is not None else []
        grid.add_row(*cells, *true)
    out.print(grid)
    for sentence in summary.reading:
        out.print(sentence)


def show_certificate(certificate: Certificate) -> None:
    """What a fit cost, what it released, and what that rests on."""
    grid = Grid("certificate", "")
    epsilon = "none" if certificate.epsilon is None else f"{certificate.epsilon:g}"
    grid.add_row("guarantee", f"({epsilon}, {certificate.delta:.3g})-DP, {certificate.adjacency}, {certificate.grade}")
    grid.add_row("unit", UNITS.get(str(certificate.unit), str(certificate.unit)))
    if certificate.epsilon is None:
        grid.add_row("claimed, not guaranteed", str(certificate.claimed_epsilon))
    grid.add_row("must be trusted", certificate.trust["must be trusted"])
    grid.add_row("algorithm", certificate.algorithm)
    grid.add_row("composed", certificate.composition)
    kinds: dict[str, list[dict[str, Any]]] = {}
    for entry in certificate.releases:
        if (terms := release_from_dict(entry["release"]).terms) is not None:
            grid.add_row(*terms)
            continue
        kinds.setdefault(f"{entry['question']}, {entry['noise']} noise", []).extend(entry["answers"])
    for kind, answers in kinds.items():
        scale, sensitivity = (
            range_text([float(answer[name]) for answer in answers]) for name in ("scale", "sensitivity")
        )
        count = sum(answer["count"] for answer in answers)
        grid.add_row("released", f"{count} x {kind} {scale} for sensitivity {sensitivity}")
    for name in ("feature", "row", "target", "gradient"):
        if certificate.bounds.get(name) is not None:
            grid.add_row(f"{name} bound", setting_text(certificate.bounds[name]))
    for assumption in certificate.assumptions:
        grid.add_row("assuming", assumption)
    for note in certificate.notes:
        grid.add_row("note", note)
    grid.add_row("randomness", certificate.randomness)
    if certificate.ledger is not None:
        grid.add_row("paid by", f"{certificate.ledger['dataset']}, entry {certificate.ledger['entry']}")
    out.print(grid)
