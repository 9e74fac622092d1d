"""The other half of a survey: it asks, counts reports, and fits; it never sees a record.

The algorithms are deterministic once the mean reports are known. So the next question is found by *replaying*: the
algorithm runs from the start on a vault that answers the rounds that are closed from their sums, until it asks what
nobody has answered yet. There is no second copy of any algorithm, and no thread that waits.

What hostile people can do: lie, each within what a record could have reported, so that a report moves the mean by
radius * size/people at most; report as often as they have identities, which only the transport can tell (authenticate
it); and, where rows are public, report for a row that is not theirs before its owner does. Bytes that are no report are
counted and forgotten. The ids of reports are random and must not be replaced by names of people. They are kept, so that
a report counts once; ten times as many reports as people were planned for are a crowd, of which no more are taken in.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from thresher.algorithms import LocalAlgorithm
from thresher.local.estimators import (
    LocalSparseClassifier,
    LocalSparseRegressor,
    features_are_public,
    plan_for_public_rows,
)
from thresher.local.question import SurveyQuestion
from thresher.local.task import SurveyTask
from thresher.local.wire import BadReport, Report, Reports, decode, format_of, fresh_id
from thresher.models.estimator import Found, algorithm_of
from thresher.models.fit import Outcome, completed
from thresher.privacy.arrays import Floats, Matrix, Values
from thresher.privacy.plan import Answer, Plan
from thresher.privacy.releases import Release
from thresher.vaults import LabelVault, LocalVault
from thresher.vaults.people import Reporter
from thresher.vaults.randomness import NoiseSource

__all__ = ["Server"]

LocalEstimator = LocalSparseRegressor | LocalSparseClassifier

Sum = tuple[int, NDArray[np.int64]]  # of people, and of their units

CROWD = 10  # times the planned number of people: what endless reports may take of the memory
RANDOMNESS = (
    "drawn on each person's own device: AES-128 counter mode keyed by its operating system; grid-rounded reports"
)


class Server:
    """Collects the reports of a survey, round by round, and returns the fitted model.

    More or fewer people may come than were planned for, up to ten times as many, which changes nothing for privacy; the
    steps of the fit reckon with the planned number, so a survey that few answer should be planned anew.

    Parameters
    ----------
    estimator : LocalSparseRegressor or LocalSparseClassifier
        Unfitted; it is cloned.
    people : int
        How many are expected in all rounds together, where people are asked for gradients.
    features : int
        How many numbers each of them has.
    X : array or sparse matrix
        The public rows, where the owner of each is asked for a label: in place of ``people`` and ``features``.
    survey : str
        The survey's name; by default at random, so that reports to one survey never count in another.

    Examples
    --------
    >>> from thresher import LocalSparseRegressor
    >>> from thresher.local import Client, Server
    >>> server = Server(LocalSparseRegressor(1, 4.0, feature_bound=1.0, target_bound=2.0), people=100, features=2)
    >>> client = Client(server.task, [0.5, -1.0], 1.5)
    >>> server.receive(client.answer(server.question()))
    True
    """

    def __init__(
        self,
        estimator: LocalEstimator,
        people: int | None = None,
        features: int | None = None,
        *,
        X: Matrix = None,
        survey: str | None = None,
    ) -> None:
        _check_estimator(estimator)
        self._model: LocalEstimator = clone(estimator)
        self._classes = _declared_classes(estimator)
        public = features_are_public(estimator.algorithm)
        if (X is not None, people is not None, features is not None) != (public, not public, not public):
            raise ValueError(
                f"algorithm={estimator.algorithm!r} has {'public' if public else 'private'} features: call "
                f"{'Server(estimator, X=rows)' if public else 'Server(estimator, people, features)'}"
            )
        rows = None
        if public:
            rows, self._plan = plan_for_public_rows(self._model, X)
        else:
            self._plan = self._model.plan(people, features)
            self._model.n_features_in_ = self._plan.problem.d
        self._algorithm = algorithm_of(self._model, self._plan)
        survey = fresh_id(NoiseSource()).hex() if survey is None else survey
        self.task = SurveyTask.from_plan(self._plan, survey, self._classes)
        self._survey: _Survey = _Labels(self.task, self._plan, rows) if public else _Gradients(self.task, self._plan)
        self.accepted = 0
        """Reports that count, in all rounds."""
        self.rejected: Counter[str] = Counter()
        """Bytes that do not count, by reason (``thresher.local.wire.REASONS``)."""
        self._ids: set[bytes] = set()
        self._rounds: list[int] = []  # accepted in each round that is closed
        self._lock = threading.Lock()
        self._advance()

    @property
    def round(self) -> int:
        """The number of the current round, from 1."""
        return len(self._rounds) + 1

    @property
    def heard(self) -> int:
        """Reports that count, in the current round."""
        return self.accepted - sum(self._rounds)

    @property
    def finished(self) -> bool:
        """Whether every round is closed, so that there is a model."""
        return len(self._rounds) == self.task.rounds

    def question(self) -> SurveyQuestion:
        """What the current round asks, of anybody who has not reported yet."""
        if self.finished:
            raise RuntimeError("every round is closed: there is nothing left to ask; call model()")
        return SurveyQuestion.about(self.task, self.round, self._theta)

    def receive(self, data: bytes) -> bool:
        """Whether ``data`` is a report that counts. Never raises, whatever the bytes."""
        with self._lock:
            try:
                report = decode(data, self.task)
                if report.round != self.round:
                    raise BadReport("round")
                if self.accepted >= CROWD * self.task.people:
                    raise BadReport("crowd")
                if report.id in self._ids:
                    raise BadReport("replayed")
                self._survey.take(report)
            except BadReport as error:
                self.rejected[error.reason] += 1
                return False
            self._ids.add(report.id)
            self.accepted += 1
            return True

    def close_round(self) -> None:
        """End the round: what it heard answers its question. Reports that come later are too late."""
        with self._lock:
            if self.finished:
                raise RuntimeError("every round is closed; call model()")
            if self.heard == 0:
                raise RuntimeError(f"round {self.round} has no report yet: wait for at least one before closing it")
            self._survey.close()
            self._rounds.append(self.heard)
            self._advance()

    def model(self) -> LocalEstimator:
        """The fitted estimator, with its certificate.

        The certificate's ``n_samples`` is the number of people whose reports are in the model, not the planned one: it
        is the receipt of what was done, and a survey of a million people which ten answered must not look like one of a
        million. The plan, in ``plan_`` and in a note, keeps the planned number.
        """
        if not self.finished:
            raise RuntimeError(f"round {self.round} of {self.task.rounds} is open: close it first")
        note = f"planned for {self.task.people} people; reports accepted by round: {', '.join(map(str, self._rounds))}"
        heard = replace(_with_people(self._plan, self.accepted), notes=(*self._plan.notes, note))
        model: LocalEstimator = clone(self._model)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self._model, name):
                setattr(model, name, getattr(self._model, name))
        if self._classes is not None:
            model.classes_ = self._classes
        outcome = Outcome(self._theta, self._answers, RANDOMNESS)
        model.certificate_ = completed(Found(model, self._plan), heard, outcome)
        return model

    def _advance(self) -> None:
        """Run the algorithm as far as the answers go: to the next question, or to the end."""
        try:
            self._theta, self._answers = self._survey.run(self._algorithm)
        except _OpenRound as pending:
            self._theta = pending.theta


class _OpenRound(Exception):  # noqa: N818  (not an error)
    """The algorithm asks what nobody has answered yet."""

    def __init__(self, theta: Floats) -> None:
        super().__init__()
        self.theta = theta


class _Survey(Protocol):
    """What is kept of reports: sums, or the reported labels of public rows."""

    def take(self, report: Report) -> None: ...

    def close(self) -> None: ...

    def run(self, algorithm: LocalAlgorithm) -> tuple[Floats, tuple[Answer, ...]]:
        """The model and how it was answered, or ``_OpenRound``."""
        ...


class _Gradients:
    """The sum of the reports of each round, in exact whole numbers; no single report is kept."""

    def __init__(self, task: SurveyTask, plan: Plan) -> None:
        self._task, self._plan = task, plan
        self.sums: list[Sum] = []
        self._begin()

    def _begin(self) -> None:
        self._people, self.total = 0, np.zeros(self._task.problem.dimension, dtype=np.int64)

    def take(self, report: Report) -> None:
        self.total += report.units
        self._people += 1

    def close(self) -> None:
        self.sums.append((self._people, self.total))
        self._begin()

    def run(self, algorithm: LocalAlgorithm) -> tuple[Floats, tuple[Answer, ...]]:
        with _Replay(self._plan, self._task, self.sums) as vault:
            return algorithm.run(vault), vault.answers


class _Labels:
    """The reported label of each public row; rows whose owner says nothing are left out."""

    def __init__(self, task: SurveyTask, plan: Plan, X: Matrix) -> None:
        self._task, self._plan, self._X = task, plan, X
        self._units = np.zeros((task.people, 1), dtype=np.int64)
        self._heard = np.zeros(task.people, dtype=bool)
        self._closed = False

    def take(self, report: Report) -> None:
        if self._heard[report.row]:
            raise BadReport("replayed")
        self._heard[report.row], self._units[report.row] = True, report.units

    def close(self) -> None:
        self._closed = True

    def run(self, algorithm: LocalAlgorithm) -> tuple[Floats, tuple[Answer, ...]]:
        if not self._closed:
            raise _OpenRound(np.zeros(0))
        (rows,) = np.nonzero(self._heard)
        plan = _with_people(self._plan, len(rows))
        reports = format_of(self._task).reports(self._units[rows])
        with _ReportedLabels(self._X[rows], reports, plan) as vault:
            return algorithm.run(vault), vault.answers


class _Replay(LocalVault):
    """A local vault whose people reported earlier."""

    def __init__(self, plan: Plan, task: SurveyTask, sums: list[Sum]) -> None:
        super().__init__(plan, NoiseSource())
        self._task, self._left = task, iter(sums)

    def close(self) -> None:
        self._left = iter(())

    def gradient(self, theta: Floats, release: Release, clip: float) -> Floats:
        if clip != self._task.clip:
            raise ValueError(f"clip={clip!r} is not what people were told, {self._task.clip!r}")
        return super().gradient(theta, release, clip)

    def _reports(self, reporter: Reporter, theta: Floats) -> Iterable[tuple[int, Reports]]:
        heard = next(self._left, None)
        if heard is None:
            raise _OpenRound(theta)
        people, total = heard
        return [(people, format_of(self._task).reports(total[None]))]


class _ReportedLabels(LabelVault):
    """A label vault whose labels were randomised by their owners."""

    def __init__(self, X: Matrix, reports: Reports, plan: Plan) -> None:
        outputs = plan.problem.outputs
        super().__init__(X, np.zeros(len(reports) if outputs == 1 else (len(reports), outputs)), plan, NoiseSource())
        self._reports = reports

    def _randomise(self, randomiser: object, values: Values) -> Reports:
        return self._reports


def _with_people(plan: Plan, people: int) -> Plan:
    return replace(plan, problem=replace(plan.problem, n=people))


def _check_estimator(estimator: object) -> None:
    if not isinstance(estimator, (LocalSparseRegressor, LocalSparseClassifier)):
        raise TypeError(f"estimator={estimator!r} must be a LocalSparseRegressor or a LocalSparseClassifier")
    if estimator.random_state is not None:
        raise ValueError(f"random_state={estimator.random_state!r} must be None: people draw their own noise")


def _declared_classes(estimator: LocalEstimator) -> Values | None:
    """The labels of a classifier, which no data is there to be read from."""
    if isinstance(estimator, LocalSparseRegressor):
        return None
    classes = np.unique(np.asarray([] if estimator.classes is None else estimator.classes))
    if len(classes) < 2:
        raise ValueError(
            f"classes={estimator.classes!r}: a server has no data to read the labels from; give at least two, for "
            "example classes=[0, 1]"
        )
    return classes
