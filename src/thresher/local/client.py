"""One person's half of a survey: a record that stays, and one report that leaves.

What a hostile server can do to a person: waste their report, by asking a useless question. Any theta is answered within
the task's epsilon, because the record is clipped and randomised whatever is asked, and nothing is answered twice. It
can ask the same person in another survey; the epsilons of all that are answered add up, and one marker file for all of
them (``spent``) stops that. What it learns beside a report is what no report can hide: that this person took part,
when, in which round, and from which address. The transport should be encrypted and authenticated (TLS), and hide
addresses if they matter.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np

from thresher.data.atomic_files import sync_folder
from thresher.data.concealment import without_causes
from thresher.local.question import SurveyQuestion
from thresher.local.task import Label, SurveyTask
from thresher.local.wire import Report, Reports, encode, format_of, fresh_id
from thresher.privacy.arrays import Floats
from thresher.privacy.budget import BudgetExceeded, is_whole
from thresher.vaults.people import Reporter, unit_labels
from thresher.vaults.randomisers import Classes
from thresher.vaults.randomness import NoiseSource

__all__ = ["Client"]


class Client:
    """One person, who answers one question, once.

    A report that was lost on the way may be sent again as it is: the bytes are public once made, and the server counts
    them once. A client cannot be pickled, copied or used in a forked process.

    Parameters
    ----------
    task : SurveyTask
        What the survey states; read ``SurveyTask.describe`` first.
    x : sequence
        The record: ``task.features`` numbers, None where features are public. It may be wild, it is clipped; it may not
        hold NaN, and a person whose record is refused sends nothing, which may be noticed. Errors show no value of it.
    y : float or label
        The target or the class label of the record.
    row : int
        Where features are public, the number of this person's row.
    spent : path
        A file that says that this person has reported, made before the report is. Across restarts and processes there
        is then one report at most, even if the device fails in between. One file for each survey, or one for all.

    Examples
    --------
    >>> from thresher import LocalSparseRegressor
    >>> from thresher.local import Client, Server
    >>> server = Server(LocalSparseRegressor(1, 4.0, feature_bound=1.0, target_bound=2.0), people=100, features=2)
    >>> report = Client(server.task, [0.5, -1.0], 1.5).answer(server.question())
    >>> len(report)
    46
    """

    @without_causes
    def __init__(
        self,
        task: SurveyTask,
        x: Sequence[float] | Floats | None,
        y: Label,
        *,
        row: int | None = None,
        spent: str | Path | None = None,
        _noise: NoiseSource | None = None,
    ) -> None:
        if not isinstance(task, SurveyTask):
            raise TypeError(f"task={type(task).__name__} must be a SurveyTask; read JSON with SurveyTask.from_json")
        self.task = task
        self._row = _checked_row(task, row)
        self._record: tuple[Floats, Floats] | None = (_checked_features(task, x), _checked_target(task, y))
        self._marker = None if spent is None else Path(spent)
        self._noise = _noise
        self._lock = threading.Lock()
        self._process = os.getpid()

    def answer(self, question: SurveyQuestion) -> bytes:
        """The report, to be handed to the server. What can be refused is refused before anything is spent."""
        theta = self._point_asked(question)
        x, y = self._spend()
        noise = self._noise or NoiseSource()
        units = format_of(self.task).units(self._randomise(x, y, theta, noise), noise)
        return encode(Report(question.round, fresh_id(noise), self._row, units[0]), self.task)

    def _point_asked(self, question: SurveyQuestion) -> Floats:
        """The point asked about, if the question belongs to the task."""
        if not isinstance(question, SurveyQuestion):
            raise TypeError(
                f"question={type(question).__name__} must be a SurveyQuestion; read JSON with SurveyQuestion.from_json"
            )
        task = self.task
        if question.task != task.fingerprint:
            raise ValueError(
                f"question.task={question.task[:16]}... is another task than the one this person agreed to"
            )
        if not 1 <= question.round <= task.rounds:
            raise ValueError(f"question.round={question.round} is not one of the task's {task.rounds} rounds")
        if task.trust == "labels" and question.at:
            raise ValueError("question.at must be empty: this task asks for a label, not about a theta")
        theta = question.theta(task.problem.dimension)
        if not np.all(np.isfinite(theta)):
            raise ValueError("question.values must be finite numbers")
        return theta

    def _spend(self) -> tuple[Floats, Floats]:
        """The record, handed out once: in this process and, with a marker, in any."""
        if os.getpid() != self._process:
            raise BudgetExceeded("this client belongs to another process, which may have reported already")
        with self._lock:
            if self._record is None:
                raise BudgetExceeded(
                    "this person has reported; nobody reports twice. Send the same bytes again instead"
                )
            if self._marker is not None:
                _claim(self._marker, self.task)
            record, self._record = self._record, None
            return record

    def _randomise(self, x: Floats, y: Floats, theta: Floats, noise: NoiseSource) -> Reports:
        """What the randomiser reports of one record."""
        task = self.task
        if task.clip is not None:
            report: Reports = Reporter(task.problem, task.release, task.clip).report(x, y, theta, noise)
            return report
        if isinstance(task.randomiser, Classes):
            return task.randomiser.randomise(y.astype(np.int64), noise)
        return task.randomiser.randomise(unit_labels(y, task.problem.bounds), noise)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a client never leaves its process: it cannot be pickled or copied, or it would report twice")


def _claim(marker: Path, task: SurveyTask) -> None:
    """Make the marker, or refuse if it is there. On the disk before the report exists, so no crash forgets a report."""
    try:
        file = os.open(marker, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        raise BudgetExceeded(f"spent={str(marker)!r} exists: this person has reported; nobody reports twice") from None
    with os.fdopen(file, "w") as stream:
        stream.write(f"one report was made for thresher task {task.fingerprint}, epsilon={task.epsilon!r}\n")
        stream.flush()
        os.fsync(file)
    sync_folder(marker.parent)


def _checked_features(task: SurveyTask, x: Sequence[float] | Floats | None) -> Floats:
    if task.trust == "labels":
        if x is not None:
            raise ValueError("x must be None: the features of this task are public, say row= instead")
        return np.empty((1, 0))
    try:
        row = np.array(x, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"x must be {task.features} numbers") from None
    if row.shape != (task.features,):
        raise ValueError(f"x has shape {row.shape}, the task asks for {task.features} numbers")
    if np.isnan(row).any():
        raise ValueError("x has a value that is not a number; fill it in, for example with 0, or do not take part")
    return row[None]


def _checked_target(task: SurveyTask, y: Label) -> Floats:
    """The target, or the number of the class, in an array of one."""
    if task.classes is not None:
        numbers = [number for number, label in enumerate(task.classes) if np.ndim(y) == 0 and bool(label == y)]
        if not numbers:
            raise ValueError(f"y is none of the task's {len(task.classes)} classes")
        return np.array(numbers[:1], dtype=np.float64)
    try:
        target = float(y)
    except (TypeError, ValueError, OverflowError):
        raise ValueError("y must be a number") from None
    if np.isnan(target):
        raise ValueError("y is not a number; a person without a target cannot take part")
    return np.array([target])


def _checked_row(task: SurveyTask, row: int | None) -> int | None:
    if task.trust == "local":
        if row is not None:
            raise ValueError(f"row={row!r} must be None: rows of this task are private")
        return None
    if row is None or not is_whole(row) or not 0 <= row < task.people:
        raise ValueError(f"row={row!r} must be the number of this person's public row, from 0 to {task.people - 1}")
    return int(row)
