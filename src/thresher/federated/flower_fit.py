"""A whole private fit over Flower: the server runs the algorithm and sees noisy sums, the parties keep their rows.

    # study.py, the same everywhere: FederatedStudy(estimator, group, everybody, sizes, features)
    # server_app.py                                  # client_app.py
    app = fit_app(study, "model.json")               app = party_app(study, number, identity, load, folder)

A round goes on without up to ``group.dropouts`` parties. The rows of those who are away are missing from its sum, and
the mean is still divided by the public number of all rows, for which noise and grid were planned: such a gradient is a
little shorter. Who comes back answers the rounds that follow. A round that loses more parties ends the run, and what
was spent stays spent: every party's journal says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.federated.aggregation import Law
from thresher.federated.flower import PATIENCE, FlowerAggregation, FlowerMember, client_app, server_app
from thresher.federated.model import FederatedModel
from thresher.federated.rounds import Load, RoundQuestion, answer
from thresher.federated.study import FederatedStudy
from thresher.federated.vault import JointVault
from thresher.models.estimator import Found, algorithm_of
from thresher.models.fit import Fit
from thresher.privacy.arrays import Floats, Integers
from thresher.privacy.releases import SkellamRelease
from thresher.vaults.randomness import NoiseSource
from thresher.vaults.vault import no_watch

if TYPE_CHECKING:  # where Flower is missing, thresher.federated.flower says how to install it
    from flwr.app import Context
    from flwr.clientapp import ClientApp
    from flwr.serverapp import ServerApp

__all__ = ["fit_app", "fit_study", "party_app"]


def fit_app(study: FederatedStudy, out: str | Path, patience: float = PATIENCE) -> ServerApp:
    """The server's app: it fits, and writes the model and its certificate to the file ``out``.

    ``patience``: the seconds that parties have for a stage; each round waits so long for one that is away.
    """

    def fit(aggregation: FlowerAggregation, _: Context) -> None:
        fit_study(study, aggregation).save(out)

    return server_app(fit, study.group, study.everybody, study.plan.problem.dimension, patience)


def party_app(study: FederatedStudy, number: int, identity: bytes, load: Load, folder: str | Path) -> ClientApp:
    """Party ``number``'s app; ``identity``, ``load`` and ``folder``, its journal's place, are its own machine's."""

    def member(_: Context) -> FlowerMember:
        own = partial(answer, study, number, load, Path(folder))
        return FlowerMember(study.group, study.everybody, number, identity, study.release.law, own)

    return client_app(member)


def fit_study(study: FederatedStudy, aggregation: FlowerAggregation) -> FederatedModel:
    """The model that the parties behind the aggregation make together."""
    model, plan = study.model(), study.plan
    fit = Fit(plan)
    outcome = fit.ask(lambda watch: FlowerVault(study, aggregation, watch), algorithm_of(model, plan).run)
    model.n_features_in_ = study.features
    if hasattr(model, "classes"):
        model.classes_ = np.unique(model.classes)
    model.certificate_ = fit.complete(Found(model, plan), outcome)
    return model


class FlowerVault(JointVault):
    """A joint vault without rows: its one party is all of them, who answer with their noise in the sum."""

    def __init__(
        self, study: FederatedStudy, aggregation: FlowerAggregation, watch: Callable[[], None] = no_watch
    ) -> None:
        everybody: Any = _Everybody(study, aggregation)
        super().__init__([everybody], study.sizes, study.plan, NoiseSource(), watch)  # which draws nothing

    @property
    def randomness(self) -> str:
        return f"each party's own share ({super().randomness.partition(';')[0]}); whole numbers, masked"

    def _noisy_sum(self, parts: Callable[[], list[Integers]], law: Law) -> Integers:
        (total,) = parts()
        return total


class _Everybody:
    """All parties as one, which holds all rows and is asked through the aggregation."""

    def __init__(self, study: FederatedStudy, aggregation: FlowerAggregation) -> None:
        self.problem = study.plan.problem
        self._hash, self._aggregation, self._rounds = study.hash, aggregation, 0

    def close(self) -> None:
        """There is nothing to close."""

    def gradient_part(
        self, theta: Floats, release: SkellamRelease, clip: float, weight: float, grid: float
    ) -> Integers:
        return self._noisy_answer(release, clip, grid, theta=theta.tolist())

    def minimiser_part(
        self, release: SkellamRelease, clip: float, ridge: float, weight: float, grid: float
    ) -> Integers:
        return self._noisy_answer(release, clip, grid, ridge=ridge)

    def _noisy_answer(
        self, release: SkellamRelease, clip: float, grid: float, theta: Sequence[float] | None = None,
        ridge: float | None = None,
    ) -> Integers:  # fmt: skip
        self._rounds += 1
        question = RoundQuestion(self._hash, self._rounds, clip, grid, theta, ridge)
        return self._aggregation.noisy_sum(question.to_bytes(), release.law)
