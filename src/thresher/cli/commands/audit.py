"""thresher audit: attempts to disprove privacy claims."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from thresher.cli.errors import check_outputs
from thresher.cli.options import (
    AsJson,
    Force,
    Report,
)
from thresher.data.atomic_files import write_atomically
from thresher.report.page import check_writable

if TYPE_CHECKING:
    from thresher.audit.catalogue import Finding

__all__ = ["audit"]


def audit(
    name: Annotated[
        str,
        typer.Argument(
            help="An algorithm, NAME-printed for a formula as printed, a question, or all.",
            autocompletion=lambda: _names(),
        ),
    ],
    runs: Annotated[int | None, typer.Option(help="How often each game is played. Default: enough for each.")] = None,
    confidence: Annotated[float, typer.Option(help="That no true claim at all is called disproved.")] = 0.99,
    seed: Annotated[int | None, typer.Option(help="Makes the audit repeatable.")] = None,
    jobs: Annotated[int, typer.Option(help="Processes; -1 for all cores.")] = -1,
    report: Report = None,
    force: Force = False,
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
    from thresher.audit.page import audit_page
    from thresher.cli.display import out, show_json

    check_outputs(force, report=report)
    cases = find_cases(name)
    if report is not None:
        check_writable(report)
    settings: dict[str, Any] = {"random_state": seed, "n_jobs": jobs, "verbose": 1}
    findings = list(audit_cases(cases, runs=runs, confidence=confidence, **settings))
    if report is not None:
        memberships = membership_examples(**settings) if name == "all" else None
        write_atomically(report, audit_page(findings, confidence, memberships))
    if as_json:
        show_json([{"kind": f.case.kind, **f.result.to_dict()} for f in findings])
    else:
        _show(findings, confidence)
        if report is not None:
            out.print(f"Written to {report}.")
    if any(finding.surprising for finding in findings):
        raise typer.Exit(1)


def _show(findings: list[Finding], confidence: float) -> None:
    from thresher.audit.catalogue import verdict
    from thresher.cli.display import folding_grid, out

    grid = folding_grid("audit of", "on", "claimed epsilon, delta", "epsilon is above", "guesses right", "verdict")
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


def _names() -> list[str]:
    from thresher.audit.catalogue import catalogue

    return ["all", *dict.fromkeys(case.name for case in catalogue())]
