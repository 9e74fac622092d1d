"""The command line: thresher fit | predict | plan | verify | audit | ledger | reproduce | federate | demo."""

from __future__ import annotations

import csv
import itertools
import json
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, TextIO

import numpy as np
import typer
import typer.core

from thresher.certificate import Certificate
from thresher.demonstration import demonstrated
from thresher.display import (
    out,
    show_certificate,
    show_coefficients,
    show_experiments,
    show_findings,
    show_json,
    show_outcome,
    silent,
)
from thresher.federated.commands import federate
from thresher.folders import tables_of
from thresher.guarded import check_folder, guarded, log_to_stderr
from thresher.ledger.commands import ledger
from thresher.loading import load_model
from thresher.models import ClassifierModel
from thresher.options import (
    AdjacencyOption,
    AlgorithmOption,
    Analyst,
    AsJson,
    Data,
    Dataset,
    Delta,
    Epsilon,
    FeatureBound,
    Intercept,
    LedgerUrl,
    Report,
    RowBound,
    Sparsity,
    TargetBound,
    Task,
    TaskOption,
    estimator_for,
    ledger_of,
)
from thresher.planning.commands import plan
from thresher.report.page import check_writable
from thresher.schema import Schema
from thresher.schema.commands import schema
from thresher.tables import Table, labels, read_table

typer.core.HAS_RICH = False  # help is plain text; for rich, typer would put a backslash before every [default: ...]

app = typer.Typer(
    help="Differentially private sparse learning: a small model you may publish, with a certificate of what it cost.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(federate, name="federate")
app.add_typer(ledger, name="ledger")
app.add_typer(schema, name="schema")


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Register a command whose bad input ends in one line."""
    return app.command()(guarded(function))


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(metadata.version("thresher"))
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            show_default=False,
            help="Log the steps of a fit to standard error; -vv: each release and answer as well.",
        ),
    ] = 0,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options of thresher itself."""
    if verbose:
        context.call_on_close(log_to_stderr(verbose))


@command
def fit(
    data: Data,
    target: Annotated[
        str | None, typer.Option(help="The target's column (.csv, .parquet) or array (.npz, default y).")
    ] = None,
    table_schema: Annotated[
        Path | None,
        typer.Option(
            "--schema",
            help="Public facts about DATA: its target, people, bounds, categories; see thresher schema. DATA may then "
            "hold text, dates and gaps.",
        ),
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(
            help="The column or array with the id of each row's person, if some have several rows; it is no feature. "
            "All rows of a person are then protected together."
        ),
    ] = None,
    sparsity: Sparsity = 10,
    epsilon: Epsilon = 1.0,
    delta: Delta = None,
    feature_bound: FeatureBound = None,
    row_bound: RowBound = None,
    target_bound: TargetBound = None,
    task: TaskOption = Task.REGRESSION,
    classes: Annotated[
        str | None, typer.Option(help="The public class labels, A,B or A,B,C. Default: read from DATA.")
    ] = None,
    algorithm: AlgorithmOption = "auto",
    adjacency: AdjacencyOption = "replace-one",
    intercept: Intercept = True,
    hardened: Annotated[bool, typer.Option(help="Noise on an exact grid: floating point cannot leak.")] = False,
    out_path: Annotated[Path, typer.Option("--out", help="Where to write the model and its certificate.")] = Path(
        "model.json"
    ),
    report: Report = None,
    ledger: LedgerUrl = None,
    dataset: Dataset = None,
    analyst: Analyst = None,
    as_json: AsJson = False,
) -> None:
    """Fit a private sparse model to DATA and write it with its certificate.

    Examples:

    \b
    thresher fit patients.csv --schema patients.toml --sparsity 10 --epsilon 1
    thresher fit numbers.csv --target stay --feature-bound 1 --target-bound 0,30
    """
    check_folder(out_path)
    if report is not None:
        check_writable(report)
    params: dict[str, Any] = {
        "sparsity": sparsity, "epsilon": epsilon, "delta": delta, "row_bound": row_bound, "algorithm": algorithm,
        "adjacency": adjacency, "fit_intercept": intercept, "hardened": hardened, "verbose": 1,
        "ledger": ledger_of(ledger, analyst), "dataset": dataset,
    }  # fmt: skip
    if table_schema is not None:
        _reject_declared(target, person, feature_bound, target_bound, classes)
        facts = Schema.read(table_schema)
        model = estimator_for(Task(facts.task), None, schema=facts, **params).fit(data)
    else:
        model = estimator_for(task, target_bound, feature_bound=feature_bound, **params)
        _fit_numbers(model, data, target, person, classes)
    model.save(out_path)
    if report is not None:
        model.report(report)
    if as_json:
        typer.echo(out_path.read_text())
        return
    show_coefficients(model)
    show_certificate(model.certificate_)
    out.print(f"Written to {out_path}; check it with: thresher verify {out_path}")
    if report is not None:
        out.print(f"A page about the model, to read and to print: {report}")


@command
def predict(
    model: Annotated[Path, typer.Argument(help="A model written by thresher fit.")],
    data: Data,
    out_path: Annotated[Path | None, typer.Option("--out", help="Where to write; default: standard output.")] = None,
    as_json: AsJson = False,
) -> None:
    """Predict every row of DATA. Extra columns (the target, say) are ignored if the columns have names.

    With --json standard output gets a list with an object per row; with --out the file is CSV, and standard output gets
    its name and how many rows it has.
    """
    if out_path is not None:
        check_folder(out_path)
    fitted = load_model(model)
    tables = _columns_of(fitted, data)
    first = _predictions(fitted, next(tables))  # what cannot be predicted leaves no file
    predictions = itertools.chain([first], (_predictions(fitted, table) for table in tables))
    if out_path is None:
        (_write_json if as_json else _write_csv)(sys.stdout, predictions)
        return
    with out_path.open("w", newline="") as file:
        rows = _write_csv(file, predictions)
    if as_json:
        show_json({"out": str(out_path), "rows": rows})


command(plan)


@command
def verify(
    model: Annotated[Path, typer.Argument(help="A model written by thresher fit, or a certificate alone.")],
    as_json: AsJson = False,
) -> None:
    """Recompute the privacy cost of a model from its listed releases alone; exit status 1 if the claim fails."""
    certificate = Certificate.read(model)
    check = certificate.verify()
    opinion = certificate.second_opinion()
    if as_json:
        record = {"ok": check.ok, "epsilon": check.epsilon, "method": check.method, "problems": check.problems}
        show_json({**record, "dp_accounting_epsilon": opinion})
    else:
        show_certificate(certificate)
        out.print(f"Recomputed: epsilon {check.epsilon:.6g} at delta {certificate.delta:g} by {check.method}.")
        if opinion is not None:
            out.print(f"Second opinion, dp-accounting's Renyi accountant (an upper bound): epsilon {opinion:.6g}.")
        for problem in check.problems:
            typer.echo(f"thresher: {problem}", err=True)
        if certificate.epsilon is None and check:
            out.print("The certificate claims no guarantee.")
        else:
            out.print("The certificate holds." if check else "The certificate does NOT hold.")
    if not check:
        raise typer.Exit(1)


@command
def audit(
    name: Annotated[
        str,
        typer.Argument(
            help="An algorithm, NAME-printed for a formula as printed, a question, or all.",
            autocompletion=lambda: _audits(),
        ),
    ],
    runs: Annotated[int | None, typer.Option(help="How often each game is played. Default: enough for each.")] = None,
    confidence: Annotated[float, typer.Option(help="That no true claim at all is called disproved.")] = 0.99,
    seed: Annotated[int | None, typer.Option(help="Makes the audit repeatable.")] = None,
    jobs: Annotated[int, typer.Option(help="Processes; -1 for all cores.")] = -1,
    report: Report = None,
    as_json: AsJson = False,
) -> None:
    """Try to disprove a privacy claim: run the mechanism on neighbouring data sets and guess which one it was.

    Prints, for each claim, the epsilon that the guesses disprove. Exit status 1 if a claim of this library falls, or if
    a deliberately broken copy is not caught.

    Examples:

    \b
    thresher audit pursuit
    thresher audit dpsl-kt-printed
    thresher audit all --report audit.html
    """
    from thresher.audit.catalogue import audit_cases, find_cases, membership_examples
    from thresher.report.audit import audit_page

    cases = find_cases(name)
    if report is not None:
        check_writable(report)
    settings: dict[str, Any] = {"random_state": seed, "n_jobs": jobs, "verbose": 1}
    findings = list(audit_cases(cases, runs=runs, confidence=confidence, **settings))
    if report is not None:
        memberships = membership_examples(**settings) if name == "all" else None
        report.write_text(audit_page(findings, confidence, memberships))
    if as_json:
        show_json([{"kind": f.case.kind, **f.result.to_dict()} for f in findings])
    else:
        show_findings(findings, confidence)
        if report is not None:
            out.print(f"Written to {report}.")
    if any(finding.surprising for finding in findings):
        raise typer.Exit(1)


@command
def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[list | ID ...]",
            help="Experiments, such as x5 x6; all by default.",
            autocompletion=lambda: _experiments(),
        ),
    ] = None,
    quick: Annotated[bool, typer.Option(help="Fewer seeds, budgets and rows: minutes for all of them.")] = False,
    out_path: Annotated[Path, typer.Option("--out", help="A folder; what is finished in it is not run again.")] = Path(
        "reproduction"
    ),
    jobs: Annotated[int, typer.Option(help="Processes; -1 for all cores.")] = -1,
    as_json: AsJson = False,
) -> None:
    """The tables and figures of the papers: what they print, what the printed formulas give, what sound noise gives.

    Writes index.html, results.md and the measurements into a folder. Real data is read from the folder that the
    environment variable THRESHER_DATA names; what is missing is said and left out.

    Examples:

    \b
    thresher reproduce list
    thresher reproduce x5 --quick
    thresher reproduce --out results
    """
    from thresher.experiments import find_experiments

    if names == ["list"]:
        known = find_experiments([])
        if as_json:
            kept = ("name", "title", "source", "needs", "extra")
            show_json([{name: getattr(each, name) for name in kept} for each in known])
        else:
            show_experiments(known)
        return
    from thresher.experiments.reproduce import reproduce

    experiments = find_experiments(names or [])
    if out_path.exists() and not out_path.is_dir():
        raise ValueError(f"--out={str(out_path)!r} is a file; give a folder")
    out_path.mkdir(parents=True, exist_ok=True)
    check_writable(out_path / "index.html")
    with silent(as_json):
        outcomes = reproduce(experiments, out_path, quick=quick, jobs=jobs, verbose=1, tell=show_outcome)
        out.print(f"Written to {out_path / 'index.html'}.")
    if as_json:
        show_json([outcome.to_dict() for outcome in outcomes])


@command
def demo(
    epsilon: Epsilon = 2.0,
    out_path: Annotated[Path | None, typer.Option("--out", help="Where to keep the fitted model.")] = None,
    report: Report = None,
    as_json: AsJson = False,
) -> None:
    """The main job on synthetic data: plan, fit, coefficients, certificate."""
    if out_path is not None:
        check_folder(out_path)
    if report is not None:
        check_writable(report)
    with silent(as_json):
        record = demonstrated(epsilon, out_path, report)
    if as_json:
        show_json(record)


# -- helpers ----------------------------------------------------------------------------------------------------


def _fit_numbers(model: Any, data: Path, target: str | None, person: str | None, classes: str | None) -> None:
    """Fit to a table of numbers."""
    table = read_table(data, target or ("y" if data.suffix == ".npz" else None), person=person)
    if table.y is None:
        raise ValueError(f"--target={target!r}: name the column of {data.name} that holds the target")
    if classes is not None:
        model.set_params(classes=labels(classes.split(",")))
    model.fit(table.X, table.y, groups=table.people)
    if table.names is not None:
        model.feature_names_in_ = np.array(table.names, dtype=object)


def _reject_declared(*given: Any) -> None:
    """Two sources for one fact are one too many."""
    for name, value in zip(("target", "person", "feature-bound", "target-bound", "classes"), given, strict=True):
        if value is not None:
            raise ValueError(f"--{name}={value}: the schema declares it; leave it out")


def _audits() -> list[str]:
    from thresher.audit.catalogue import catalogue

    return ["all", *dict.fromkeys(case.name for case in catalogue())]


def _experiments() -> list[str]:
    from thresher.experiments import NAMES

    return ["list", *NAMES]


def _columns_of(model: Any, data: Path) -> Iterator[Table]:
    """The table, or each of its pieces: the columns in the order the model was fitted on, others left out."""
    if model.schema is not None:
        return (Table(piece, None, None) for piece in model.schema_.pieces_of(data))
    wanted = getattr(model, "feature_names_in_", None)
    return tables_of(data, None if wanted is None else list(wanted), model.n_features_in_)


def _predictions(model: Any, table: Table) -> dict[str, Any]:
    X = table.X
    if hasattr(model, "feature_names_in_"):
        del model.feature_names_in_  # the columns were put in order by name already
    if isinstance(model, ClassifierModel):
        probabilities = {
            f"probability_{label}": p for label, p in zip(model.classes_, model.predict_proba(X).T, strict=True)
        }
        if len(probabilities) == 2:  # the other one is what is left of 1
            probabilities.pop(f"probability_{model.classes_[0]}")
        return {"prediction": model.predict(X), **probabilities}
    return {"prediction": model.predict(X)}


def _write_csv(file: TextIO, pieces: Iterable[dict[str, Any]]) -> int:
    """How many rows were written."""
    writer, rows = csv.writer(file), 0
    for at, columns in enumerate(pieces):
        if at == 0:
            writer.writerow(columns)
        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
        rows += len(columns["prediction"])
    return rows


def _write_json(file: TextIO, pieces: Iterable[dict[str, Any]]) -> None:
    """A list with an object per row, one per line, written as they come."""
    before = "[\n"
    for columns in pieces:
        for values in zip(*(column.tolist() for column in columns.values()), strict=True):
            file.write(before + json.dumps(dict(zip(columns, values, strict=True))))
            before = ",\n"
    file.write("\n]\n")


def main() -> None:
    if hasattr(signal, "SIGPIPE"):  # a reader that has seen enough, such as head, is not an error
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    app()
