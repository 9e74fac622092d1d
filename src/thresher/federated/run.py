"""One party's run of a task: its own data, its own journal, and the same model and certificate as everybody's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from thresher.data.concealment import without_causes
from thresher.data.labels import label_array
from thresher.data.reading.table import read_table
from thresher.federated.aggregation import Aborted
from thresher.federated.journal import Journal, price
from thresher.federated.model import FederatedModel, checked_party
from thresher.federated.session import SecureComputation, Session, SessionVault
from thresher.federated.task import JointTask
from thresher.federated.vault import Party
from thresher.models.estimator import Found, algorithm_of
from thresher.models.fit import Fit
from thresher.privacy.arrays import Floats, Matrix
from thresher.vaults.randomness import NoiseSource

__all__ = ["run_party"]


@without_causes
def run_party(
    task: JointTask, me: str, data: Path, folder: Path, join: Callable[[], SecureComputation], verbose: int = 0
) -> FederatedModel:
    """The fitted model, once every party has said the same; ``join`` connects with the others.

    A run that ended early goes on: what was answered is in ``folder``, and is not asked again.
    """
    at = task.position_of(me)
    model, plan = task.model(), task.plan
    X, y = rows_of_party(task, model, data, task.members[at].rows)
    fit = Fit(plan, verbose)
    questions = sum(release.times for release in plan.releases)
    with Journal.locked(folder) as journal:
        journal.check(task.hash)
        heard_all = len(journal.answers) == questions  # then others may need this party, but not it them
        with nullcontext() if journal.parted else closing(join()) as computation:
            names = [member.name for member in task.members]
            session = Session(computation, at, names, task.hash, journal, plan.problem.dimension)
            if computation is not None:
                with suppress(Aborted) if heard_all else nullcontext():
                    session.meet()
            journal.enter_charge(price(plan, task.hash))
            opened = partial(_open_vault, task, at, X, y, session)
            outcome = fit.ask(opened, algorithm_of(model, plan).run)
            if computation is not None:
                session.part()
    if not isinstance(task.features, int):
        model.feature_names_in_ = np.array(task.features, dtype=object)
    if task.task == "classification":
        model.classes_ = np.unique(label_array(task.settings["classes"]))
    model.certificate_ = fit.complete(Found(model, plan), outcome)
    return model


@contextmanager
def _open_vault(
    task: JointTask, at: int, X: Matrix, y: Floats, session: Session, watch: Callable[[], None]
) -> Iterator[SessionVault]:
    own = replace(task.plan, problem=replace(task.plan.problem, n=task.members[at].rows))
    noise = NoiseSource()  # draws nothing: the noise is the parties' together
    with (
        Party(X, y, own, noise) as party,
        SessionVault(party, task.sizes, session, task.plan, noise, watch) as vault,
    ):
        yield vault


def rows_of_party(task: JointTask, model: FederatedModel, data: Path, most: int) -> tuple[Matrix, Floats]:
    """This party's rows and targets as any fit would take them, before anything is said to anybody."""
    named = None if isinstance(task.features, int) else list(task.features)
    table = read_table(data, task.target, named)
    if table.y is None:
        raise ValueError(f"DATA={data.name!r} has no column {task.target!r}, the task's target")
    if table.X.shape[1] != task.width:
        raise ValueError(f"DATA={data.name!r} has {table.X.shape[1]} feature columns, the task {task.width}")
    if table.X.shape[0] > most:
        raise ValueError(f"DATA={data.name!r} has more rows than the {most} this party declared; declare more")
    if task.task == "classification":
        model.set_params(classes=label_array(task.settings["classes"]))
    return checked_party(model, table.X, table.y)
