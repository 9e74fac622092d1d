"""Plans, models, certificates and audits as tables on a terminal."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from thresher.audit.catalogue import Finding, verdict
from thresher.budget import Budget
from thresher.certificate import Certificate
from thresher.experiments.experiment import Experiment, Verdict
from thresher.ledger import Entry
from thresher.outlook import noise_over_largest_signal, noise_over_signal
from thresher.plan import Plan, Problem
from thresher.releases import Release
from thresher.report.reproduction import Outcome
from thresher.report.words import UNITS, between, short, told
from thresher.schema import Schema
from thresher.schema.cells import FAULTS
from thresher.schema.counts import Counts
from thresher.tables import listed

__all__ = [
    "out", "show_accounts", "show_certificate", "show_coefficients", "show_counts", "show_experiments", "show_findings",
    "show_history", "show_json", "show_outcome", "show_plans", "show_schema", "silent",
]  # fmt: skip

out = Console(highlight=False, soft_wrap=True)

MOST_COLUMNS = 50  # of a schema that are shown


@contextmanager
def silent(wanted: bool) -> Iterator[None]:
    """Show nothing, for a command that prints JSON instead."""
    out.quiet = wanted
    try:
        yield
    finally:
        out.quiet = False


def show_json(record: Any) -> None:
    """On standard output, as JSON that every reader takes: it knows no infinity, which is "inf" as in certificates."""
    typer.echo(json.dumps(_finite(record), indent=2, allow_nan=False))


def _finite(record: Any) -> Any:
    if isinstance(record, Mapping):
        return {name: _finite(value) for name, value in record.items()}
    if isinstance(record, (list, tuple)):
        return [_finite(value) for value in record]
    return str(record) if isinstance(record, float) and not math.isfinite(record) else record


def show_plans(plans: list[Plan]) -> None:
    budget, problem = plans[0].budget, plans[0].problem
    grid = Grid("algorithm", "releases", "noise / sensitivity", "settings")
    for item in plans:
        settings = ", ".join(f"{k} {short(v)}" for k, v in item.settings.items())
        kinds: dict[str, list[Release]] = {}
        for release in item.releases:
            kinds.setdefault(f"{release.question}, {release.noise}", []).append(release)
        for at, (kind, releases) in enumerate(kinds.items()):
            times = sum(release.times for release in releases)
            noise = between([release.multiplier for release in releases])
            first = at == 0
            grid.add_row(item.algorithm if first else "", f"{times} x {kind}", noise, settings if first else "")
    grid.title = f"epsilon {budget.epsilon:g}, delta {budget.delta:.2g}, {budget.adjacency}, {problem.n} x {problem.d}"
    out.print(grid)
    show_outlook(problem, budget)


def show_outlook(problem: Problem, budget: Budget) -> None:
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


def show_coefficients(model: Any, truth: Any = None) -> None:
    summary = model.summary()
    grid = Grid(*summary.columns, *(["truth"] if truth is not None else []))
    for position, cells in summary.lines():
        true = [f"{truth[position]:+.4g}"] if truth is not None and position is not None else []
        grid.add_row(*map(escape, cells), *true)
    out.print(grid)
    for sentence in summary.reading:
        out.print(sentence, markup=False)


def show_certificate(certificate: Certificate) -> None:
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
        if "rho" in entry["release"]:  # a cap, which answers nothing itself
            grid.add_row("spent while running", f"at most rho = {entry['release']['rho']:.4g} in zCDP")
            continue
        if entry["question"] == "trials":
            grid.add_row("searched", f"the best of a secret number of trials, {entry['release']['trials']:g} expected")
            continue
        kinds.setdefault(f"{entry['question']}, {entry['noise']} noise", []).extend(entry["answers"])
    for kind, answers in kinds.items():
        scale, sensitivity = (between([float(answer[name]) for answer in answers]) for name in ("scale", "sensitivity"))
        count = sum(answer["count"] for answer in answers)
        grid.add_row("released", f"{count} x {kind} {scale} for sensitivity {sensitivity}")
    for name in ("feature", "row", "target", "gradient"):
        if certificate.bounds.get(name) is not None:
            grid.add_row(f"{name} bound", told(certificate.bounds[name]))
    for assumption in certificate.assumptions:
        grid.add_row("assuming", assumption)
    for note in certificate.notes:
        grid.add_row("note", note)
    grid.add_row("randomness", certificate.randomness)
    if certificate.ledger is not None:
        grid.add_row("paid by", escape(f"{certificate.ledger['dataset']}, entry {certificate.ledger['entry']}"))
    out.print(grid)


def show_accounts(records: list[dict[str, Any]]) -> None:
    grid = _folded("data set", "analyst", "granted", "spent", "one more fit", "fits", "unit")
    for record in records:
        unfinished = f", {record['reserved']} not finished" if record["reserved"] else ""
        grid.add_row(
            escape(record["dataset"]), escape(record["analyst"] or "all"),
            f"{record['granted']:g} at delta {record['delta']:g}", f"{record['spent']:.4g}",
            f"up to {record['affordable']:.4g}", f"{record['fits']}{unfinished}",
            f"{record['unit']}, {record['adjacency']}",
        )  # fmt: skip
    out.print(grid)
    if not records:
        out.print("No data set has a grant yet: thresher ledger grant")


def show_history(dataset: str, entries: list[Entry]) -> None:
    grid = _folded("when", "what", "analyst", "epsilon", "delta", "status", "entry")
    for entry in entries:
        what = "grant" if entry.kind == "grant" else f"fit, {entry.algorithm}"
        costs = f"{entry.epsilon:.4g}", f"{entry.delta:g}"
        grid.add_row(entry.at, what, escape(entry.analyst or ""), *costs, entry.status, entry.id)
    grid.title = escape(dataset)
    out.print(grid)


def _folded(*names: str) -> Grid:
    """A table of which nothing is cut off, however narrow the terminal."""
    grid = Grid(*names)
    for column in grid.columns:
        column.overflow = "fold"
    return grid


def show_findings(findings: list[Finding], confidence: float) -> None:
    grid = _folded("audit of", "on", "claimed epsilon, delta", "epsilon is above", "guesses right", "verdict")
    for finding in findings:
        result = finding.result
        bound = f"{result.epsilon_lower:.3f}{' (by mu)' if result.mu_lower is not None else ''}"
        right = f"{result.right} of {result.right + result.wrong}"
        claim = f"{result.claimed_epsilon:.4g}, {result.delta:g}"
        grid.add_row(result.target, result.pair, claim, bound, right, verdict(finding))
    out.print(grid)
    out.print(
        f"With confidence {confidence:g}, no true claim is called disproved. A bound below its claim is no proof."
    )
    if any(finding.result.mu_lower is not None for finding in findings):
        out.print("By mu: counts bound mu of Gaussian DP; epsilon follows if the release is Gaussian.")
    for finding in findings:
        if finding.case.kind == "printed":
            out.print(f"{finding.case.name}, erratum {finding.case.note}.")
        if finding.surprising:
            out.print(f"UNEXPECTED: {finding.result}")


def show_experiments(experiments: Iterable[Experiment]) -> None:
    grid = Grid("id", "what", "where", "needs")
    for each in experiments:
        needs = [*each.needs, *([f"thresher[{each.extra}]"] if each.extra else [])]
        grid.add_row(each.name, each.title, each.source, escape(", ".join(needs)))  # the extra stands in brackets
    out.print(grid)


def show_outcome(outcome: Outcome) -> None:
    """The verdicts of an experiment, as it comes."""
    if outcome.missing:
        out.print(f"{outcome.experiment.name}: not run: {outcome.missing}", markup=False)
    for part in outcome.parts:
        if isinstance(part, Verdict):
            holds = "holds" if part.holds else "does not hold"
            out.print(f"{outcome.experiment.name}: {holds}: {part.text}", markup=False)


def show_schema(schema: Schema, record: dict[str, Any]) -> None:
    grid = Grid("column", "role", "holds", "a gap counts as", "in the model")
    encoding = schema.encoding()
    blocks = dict(zip((column.name for column in encoding.features), encoding.blocks, strict=True))
    for column in schema.columns[:MOST_COLUMNS]:
        made = blocks.get(column.name, [])
        shown = str(len(made)) + (" columns" if len(made) > 1 else " column") if made else ""
        grid.add_row(*map(escape, (column.name, column.role, column.holds, column.gap, shown)))
    if len(schema.columns) > MOST_COLUMNS:
        grid.add_row(f"... and {len(schema.columns) - MOST_COLUMNS} more", "", "", "", "")
    out.print(grid)
    people = f", protecting each {schema.person.name!r} with all rows" if schema.person is not None else ""
    out.print(
        f"A {schema.task} of {schema.target.name!r} on {record['features']} features in {record['columns']} columns"
        f"{people}; no row is longer than {record['row_norm']:.3g}.",
        markup=False,
    )
    d = record["columns"]
    task = " --task classification" if schema.task == "classification" else ""
    out.print(f"What to expect: thresher plan --n ROWS --d {d} --sparsity {min(10, d)} --epsilon 1{task}", markup=False)
    if record["read_from_data"]:
        out.print(
            f"Read from the data, to be replaced by public knowledge: {listed(record['read_from_data'])}. Until then "
            "certificates are conditional on these values being public.",
            markup=False,
        )


def show_counts(counts: Counts) -> None:
    certificate = counts.certificate
    grid = _folded("column", *FAULTS)
    for name, found in counts.cells.items():
        grid.add_row(escape(name), *(f"{found[fault]:.0f}" if fault in found else "" for fault in FAULTS))
    grid.title = f"about how many of {certificate.n_samples} {certificate.counted}"
    out.print(grid)
    if counts.odd_rows is not None:
        out.print(f"Rows with another number of cells than the first line: about {counts.odd_rows:.0f}.")
    out.print(
        f"The standard error of each number is {counts.standard_error:.3g}; what is below 0 is noise. It cost epsilon "
        f"{certificate.epsilon:g} at delta {certificate.delta:.3g} of the budget of the {certificate.counted}."
    )
