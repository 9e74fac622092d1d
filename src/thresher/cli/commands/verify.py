"""thresher verify: whether a certificate holds, and for the model it comes with."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from thresher.cli.errors import complain
from thresher.cli.options import (
    AsJson,
)

__all__ = ["verify"]


def verify(
    model: Annotated[Path, typer.Argument(help="A model written by thresher fit, or a certificate alone.")],
    as_json: AsJson = False,
) -> None:
    """Recompute the privacy cost of a model from its listed releases alone; exit status 1 if the claim fails, if the
    certificate contradicts itself, or if it belongs to another model."""
    from thresher.cli.display import out, show_certificate, show_json
    from thresher.models.files import verify_file

    certificate, check = verify_file(model)
    opinion = certificate.second_opinion() if check else None
    if as_json:
        show_json({**asdict(check), "dp_accounting_epsilon": opinion})
    else:
        if check.readable:
            show_certificate(certificate)
            out.print(f"Recomputed: epsilon {check.epsilon:.6g} at delta {certificate.delta:g} by {check.method}.")
        if opinion is not None:
            out.print(f"Second opinion, dp-accounting's Renyi accountant (an upper bound): epsilon {opinion:.6g}.")
        for sentence in (*check.warnings, *check.problems):
            complain(sentence)
        if certificate.epsilon is None and check:
            out.print("The certificate claims no guarantee.")
        else:
            out.print("The certificate holds." if check else "The certificate does NOT hold.")
    if not check:
        raise typer.Exit(1)
