"""Everything that is logged, in one place, so that it can be checked: public facts only.

A log line may tell what a plan, a certificate or a file name tells. It tells no row, no number of rows that is not
public, no answer (not even one that is published), no clip in force, no id, no class label, no name of a data set. What
nobody may know about, such as the trials of a search, asks vaults that nobody watches, and these log nothing.

The loggers are children of "thresher"; INFO for the steps of a fit, DEBUG for releases and answers. Lines carry the
time, and how long a fit takes may depend on its rows: a log belongs to whoever holds them.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from thresher.privacy.certificate import Certificate
    from thresher.privacy.plan import Plan
    from thresher.privacy.releases import Release

__all__ = ["answered", "certified", "opened", "planned", "reserved", "saved", "settled"]

_plan, _vault, _ledger, _certificate, _model = (
    logging.getLogger(f"thresher.{name}") for name in ("plan", "vault", "ledger", "certificate", "model")
)
logging.getLogger("thresher").addHandler(logging.NullHandler())  # silent until somebody asks for it


def planned(plan: Plan) -> None:
    budget = plan.budget
    if not _plan.isEnabledFor(logging.INFO):
        return
    _plan.info(
        "%s, %d releases, epsilon %.6g of %g at delta %.3g, %s",
        plan.algorithm, sum(release.times for release in plan.releases), plan.epsilon, budget.epsilon, budget.delta,
        budget.adjacency,
    )  # fmt: skip
    for release in plan.releases:
        _plan.debug(
            "%d x %s, %s noise of %.6g times the sensitivity",
            release.times, release.question.name, release.noise, release.multiplier,
        )  # fmt: skip


def opened(plan: Plan) -> None:
    problem = plan.problem
    _vault.info("opened for %d %s with %d columns", problem.n, problem.counted, problem.d)


def answered(release: Release, so_far: int) -> None:
    _vault.debug("answer %d: %s", so_far, release.question.name)


def reserved(entry: str) -> None:
    _ledger.info("entry %s reserved", entry)


def settled(entry: str) -> None:
    _ledger.info("entry %s settled", entry)


def certified(certificate: Certificate) -> None:
    _certificate.info(
        "%s, epsilon %s at delta %.3g, grade %s",
        certificate.algorithm, certificate.epsilon, certificate.delta, certificate.grade,
    )  # fmt: skip


def saved(path: str | Path) -> None:
    _model.info("saved as %s", Path(path).name)
