"""One party's run of a task: its own data, its own journal, and the same model and certificate as everybody's."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from thresher.data.concealment import discreet
from thresher.data.tables import Table, labels, numeric_target, read_table
from thresher.federated.aborted import Aborted
from thresher.federated.journal import Journal, price
from thresher.federated.parties import Party
from thresher.federated.session import Seat, Session, SessionVault
from thresher.federated.task import Task
from thresher.models.fit import Found, Heard, completed, warn_about
from thresher.privacy import logs
from thresher.privacy.progress import progress_bar
from thresher.vaults.randomness import NoiseSource

__all__ = ["run_party"]


@discreet
def run_party(task: Task, me: str, data: Path, folder: Path, seat: Callable[[], Seat], verbose: int = 0) -> Any:
    """The fitted model, once every party has said the same; ``seat`` sits down with the others.

    A run that ended early goes on: what was answered is in ``folder``, and is not asked again.
    """
    at = task.seat_of(me)
    model, plan = task.model(), task.plan
    X, y = _rows(task, model, data, task.members[at].rows)
    logs.planned(plan)
    warn_about(plan)
    with Journal.held(folder) as journal:
        journal.check(task.hash)
        heard_all = len(journal.answers) == _questions(task)  # then others may need this party, but not it them
        with nullcontext() if journal.parted else closing(seat()) as table:
            names = [member.name for member in task.members]
            session = Session(table, at, names, task.hash, journal, plan.problem.dimension)
            if table is not None:
                with suppress(Aborted) if heard_all else nullcontext():
                    session.meet()
            journal.charged(price(plan, task.hash))
            theta, vault = _asked(task, at, X, y, session, verbose)
            if table is not None:
                session.part()
    if not isinstance(task.features, int):
        model.feature_names_in_ = np.array(task.features, dtype=object)
    if task.task == "classification":
        model.classes_ = np.unique(labels(task.settings["classes"]))
    model.certificate_ = completed(Found(model, theta, plan), plan, Heard.of(vault))
    return model


def _asked(task: Task, at: int, X: Any, y: Any, session: Session, verbose: int) -> tuple[Any, SessionVault]:
    plan = task.plan
    own = replace(plan, problem=replace(plan.problem, n=task.members[at].rows))
    noise = NoiseSource()  # draws nothing: the noise is the parties' together
    with (
        progress_bar(plan.algorithm, _questions(task), enabled=verbose > 0) as watch,
        Party(X, y, own, noise) as party,
        SessionVault(party, task.sizes, session, plan, noise, watch) as vault,
    ):
        return task.model()._algorithm(plan.problem.outputs).run(vault), vault


def _rows(task: Task, model: Any, data: Path, most: int) -> tuple[Any, Any]:
    """This party's rows and targets as any fit would take them, before anything is said to anybody."""
    named = None if isinstance(task.features, int) else list(task.features)
    table = read_table(data, task.target, named)
    if table.y is None:
        raise ValueError(f"DATA={data.name!r} has no column {task.target!r}, the task's target")
    if table.X.shape[1] != task.width:
        raise ValueError(f"DATA={data.name!r} has {table.X.shape[1]} feature columns, the task {task.width}")
    if table.X.shape[0] > most:
        raise ValueError(f"DATA={data.name!r} has more rows than the {most} this party declared; declare more")
    X, y = model._checked(table.X, _targets(task, table), accept_sparse=("csc", "csr", "coo"), ensure_min_samples=1)
    if task.task == "classification":
        _, y, _ = model.set_params(classes=labels(task.settings["classes"]))._classes_in(y)
    return X, y


def _targets(task: Task, table: Table) -> Any:
    return table.y if task.task == "classification" else numeric_target(table.y)


def _questions(task: Task) -> int:
    return sum(release.times for release in task.plan.releases)
