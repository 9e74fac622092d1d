"""thresher demo: the main job on a synthetic table, from the plan to the certificate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from thresher.cli.errors import check_outputs
from thresher.cli.options import (
    AsJson,
    Epsilon,
    Force,
    Report,
)
from thresher.report.page import check_writable

__all__ = ["demo"]


def demo(
    epsilon: Epsilon = 2.0,
    out_path: Annotated[Path | None, typer.Option("--out", help="Where to keep the fitted model.")] = None,
    report: Report = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """The main job on synthetic data: plan, fit, coefficients, certificate."""
    from thresher.cli.display import quiet_output, show_json

    check_outputs(force, out=out_path, report=report)
    if report is not None:
        check_writable(report)
    with quiet_output(as_json):
        record = _demonstrate(epsilon, out_path, report)
    if as_json:
        show_json(record)


def _demonstrate(epsilon: float, out_path: Path | None, report: Path | None) -> dict[str, object]:
    """Shows everything, and returns it."""
    import numpy as np

    from thresher.cli.display import out, plan_record, show_certificate, show_coefficients, show_plans
    from thresher.data.laws import dpsl_kt_law
    from thresher.models.sparse import SparseRegressor

    law = dpsl_kt_law(n=10_000, d=500, s=10)
    X, y, theta = law.draw(seed=0)
    bound = round(3 * law.target_deviation, 1)
    out.print(f"A synthetic table: {law.n} rows, {law.d} columns, {law.s} of which matter.")
    out.print()
    model = SparseRegressor(sparsity=law.s, epsilon=epsilon, feature_bound=1.0, target_bound=bound)
    out.print("1. The plan: made before any row is read, from public facts alone.")
    plan = model.plan(law.n, law.d)
    show_plans([plan])
    out.print("2. The fit.")
    model.fit(X, y)
    show_coefficients(model, truth=theta)
    found = len(set(model.support_) & set(np.flatnonzero(theta)))
    error = np.linalg.norm(model.coef_ - theta) / np.linalg.norm(theta)
    out.print(f"{found} of the {law.s} true features found; relative error {error:.2f} (the zero model has 1).")
    out.print()
    out.print("3. The certificate: what was released and what it cost.")
    show_certificate(model.certificate_)
    check = model.certificate_.verify()
    out.print(f"Verified from the listed releases alone: epsilon {check.epsilon:.4g} by {check.method}.")
    if out_path is not None:
        model.save(out_path)
        out.print(f"Written to {out_path}.")
    if report is not None:
        model.report(report)
        out.print(f"A page about the model, to read and to print: {report}")
    return {
        "plan": plan_record(plan), "summary": model.summary().to_dict(), "true_features_found": found,
        "relative_error": float(error), "certificate": json.loads(model.certificate_.to_json()),
        "verified_epsilon": check.epsilon,
    }  # fmt: skip
