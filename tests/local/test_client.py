"""One person: one report, ever, whatever happens; and nothing spent by what is refused."""

from __future__ import annotations

import copy
import math
import multiprocessing
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from surveys import ESTIMATORS, FEATURES, LABELS, client_of, server_of
from thresher import BudgetExceeded, LocalSparseClassifier, LocalSparseRegressor
from thresher.algorithms import LDPIHT, LabelLDPIHT
from thresher.local import Client, Server, SurveyQuestion, SurveyTask, decode
from thresher.local.estimators import features_are_public
from thresher.local.wire import format_of
from thresher.vaults.randomisers import Signs
from thresher.vaults.randomness import NoiseSource

kinds = pytest.mark.parametrize("name", ESTIMATORS)
SERVERS = {name: server_of(name) for name in ESTIMATORS}
SECRET = 0.123456789


def first(name):
    """The task and the first question of a survey."""
    return SERVERS[name].task, SERVERS[name].question()


# -- once ---------------------------------------------------------------------------------------------------------


@kinds
def test_a_person_reports_once(name):
    task, question = first(name)
    client = client_of(task, name, 0)
    assert decode(client.answer(question), task)
    for again in (question, SurveyQuestion(task.fingerprint, task.rounds)):
        with pytest.raises(BudgetExceeded, match="nobody reports twice"):
            client.answer(again)


@pytest.mark.parametrize("leave", [pickle.dumps, copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"])
@pytest.mark.parametrize("used", [False, True])
def test_a_client_cannot_leave_its_process(leave, used):
    task, question = first("row bound")
    client = client_of(task, "row bound", 0)
    if used:
        client.answer(question)
    with pytest.raises(TypeError, match="never leaves its process"):
        leave(client)


def outcome_in_a_fork(action):
    """0 if the action raises BudgetExceeded in a forked child, 1 if it does not, 2 for another error."""
    child = os.fork()
    if child == 0:
        code = 2
        try:
            action()
            code = 1
        except BudgetExceeded:
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_client_refuses_and_its_original_goes_on():
    task, question = first("row bound")
    client = client_of(task, "row bound", 0)
    assert outcome_in_a_fork(lambda: client.answer(question)) == 0
    assert decode(client.answer(question), task)


def test_of_many_threads_one_gets_a_report():
    task, question = first("row bound")
    client, start = client_of(task, "row bound", 0), threading.Barrier(8)

    def ask(_):
        start.wait()
        try:
            return client.answer(question)
        except BudgetExceeded:
            return None

    with ThreadPoolExecutor(8) as pool:
        reports = list(pool.map(ask, range(8)))
    assert sum(report is not None for report in reports) == 1


def test_a_marker_outlives_the_client(tmp_path):
    task, question = first("row bound")
    marker = tmp_path / "spent"
    client_of(task, "row bound", 0, spent=marker).answer(question)
    assert task.fingerprint in marker.read_text()
    for name in ("row bound", "laplace labels"):  # one file may stand for all surveys
        other = client_of(SERVERS[name].task, name, 0, spent=str(marker))
        with pytest.raises(BudgetExceeded, match="exists: this person has reported"):
            other.answer(SERVERS[name].question())


def test_a_crash_between_marker_and_report_counts_as_a_report(tmp_path, monkeypatch):
    """The marker is on the disk, file and folder, before the record is touched."""
    task, question = first("row bound")
    marker, synced = tmp_path / "spent", []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.readlink(f"/proc/self/fd/{file}")) or fsync(file))

    def crash(*_):
        assert marker.read_text()
        assert synced == [str(marker), str(tmp_path)]
        raise MemoryError

    client = client_of(task, "row bound", 0, spent=marker)
    monkeypatch.setattr(client, "_randomise", crash)
    with pytest.raises(MemoryError):
        client.answer(question)
    for person in (client, client_of(task, "row bound", 0, spent=marker)):
        with pytest.raises(BudgetExceeded):
            person.answer(question)


def test_a_marker_left_empty_by_a_crash_counts_as_a_report(tmp_path):
    task, question = first("row bound")
    (tmp_path / "spent").touch()
    with pytest.raises(BudgetExceeded):
        client_of(task, "row bound", 0, spent=tmp_path / "spent").answer(question)


def test_a_marker_that_cannot_be_made_spends_nothing(tmp_path):
    task, question = first("row bound")
    client = client_of(task, "row bound", 0, spent=tmp_path / "missing" / "spent")
    with pytest.raises(FileNotFoundError):
        client.answer(question)
    (tmp_path / "missing").mkdir()
    assert decode(client.answer(question), task)


def race(start, results, path):
    task, question = first("row bound")
    client = client_of(task, "row bound", 0, spent=path)
    start.wait()
    try:
        results.put(len(client.answer(question)) > 0)
    except BudgetExceeded:
        results.put(False)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_of_processes_that_race_for_a_marker_exactly_one_wins(tmp_path):
    context = multiprocessing.get_context("fork")
    for trial in range(5):
        start, results = context.Barrier(4), context.Queue()
        racers = [context.Process(target=race, args=(start, results, tmp_path / str(trial))) for _ in range(4)]
        for racer in racers:
            racer.start()
        won = [results.get(timeout=600) for _ in racers]
        for racer in racers:
            racer.join()
        assert sorted(won) == [False, False, False, True]


# -- refused before anything is spent -----------------------------------------------------------------------------


def bad_questions(task):
    good = SurveyQuestion(task.fingerprint, 1)
    yield "task", SurveyQuestion("0" * 64, 1)
    yield "round", SurveyQuestion(task.fingerprint, task.rounds + 1)
    if task.trust == "labels":
        yield "at", SurveyQuestion(task.fingerprint, 1, (0,), (1.0,))
        return
    yield "at", SurveyQuestion(task.fingerprint, 1, (task.problem.dimension,), (1.0,))
    for value in (math.nan, math.inf):  # nobody can make such a question; should one come anyway ...
        broken = SurveyQuestion(task.fingerprint, 1, (0,), (1.0,))
        object.__setattr__(broken, "values", (value,))
        yield "values", broken
    object.__setattr__(good, "round", 0)
    yield "round", good


@kinds
def test_a_refused_question_leaves_the_person_able_to_answer(name, tmp_path):
    task, question = first(name)
    client = client_of(task, name, 0, spent=tmp_path / "spent")
    for field, bad in bad_questions(task):
        with pytest.raises(ValueError, match=field):
            client.answer(bad)
        assert not (tmp_path / "spent").exists()
    assert decode(client.answer(question), task)


def test_json_is_read_before_it_is_used():
    task, question = first("row bound")
    with pytest.raises(TypeError, match=r"SurveyTask\.from_json"):
        Client(task.to_json(), np.zeros(FEATURES), 1.0)
    client = client_of(task, "row bound", 0)
    with pytest.raises(TypeError, match=r"SurveyQuestion\.from_json"):
        client.answer(question.to_json())
    assert decode(client.answer(question), task)


BAD_RECORDS = [
    (np.full(FEATURES, SECRET)[:-1], 1.0), (np.full(FEATURES + 1, SECRET), 1.0), (np.full((1, FEATURES), SECRET), 1.0),
    ([SECRET] * 4 + [math.nan], 1.0), ([SECRET] * 4 + ["x"], 1.0), (None, 1.0), (SECRET, 1.0), ([1j] * 5, 1.0),
    ([10**400] * 5, 1.0), (np.zeros(FEATURES), math.nan), (np.zeros(FEATURES), "much"), (np.zeros(FEATURES), None),
    (np.zeros(FEATURES), [SECRET, 1.0]), (np.zeros(FEATURES), 10**400),
]  # fmt: skip


@pytest.mark.parametrize(("x", "y"), BAD_RECORDS, ids=range(len(BAD_RECORDS)))
def test_a_bad_record_is_refused_without_being_shown(x, y, tmp_path):
    with pytest.raises(ValueError, match=r"^(x|y) ") as refused:
        Client(SERVERS["row bound"].task, x, y, spent=tmp_path / "spent")
    assert str(SECRET) not in str(refused.value)
    assert "much" not in str(refused.value)
    assert not (tmp_path / "spent").exists()


@pytest.mark.parametrize("y", ["green", "", None, math.nan, 0, ["blue"], b"blue"])
def test_a_label_that_is_no_class_is_refused_without_being_shown(y):
    with pytest.raises(ValueError, match=r"y is none of the task's 2 classes$"):
        Client(SERVERS["two classes"].task, np.zeros(FEATURES), y)


@pytest.mark.parametrize("row", [None, -1, 60, 1.0, True, "0"])
def test_a_label_needs_a_row_that_exists(row):
    with pytest.raises(ValueError, match=r"row="):
        Client(SERVERS["laplace labels"].task, None, 1.0, row=row)


def test_rows_are_named_where_they_are_public_and_nowhere_else():
    with pytest.raises(ValueError, match="x must be None"):
        Client(SERVERS["laplace labels"].task, np.zeros(FEATURES), 1.0, row=0)
    with pytest.raises(ValueError, match="row=0 must be None"):
        Client(SERVERS["row bound"].task, np.zeros(FEATURES), 1.0, row=0)


def test_a_class_may_be_given_by_any_equal_label():
    for label in (1, 1.0, np.int64(1), np.float32(1)):
        assert Client(SERVERS["two class labels"].task, None, label, row=0)


def test_nothing_of_the_record_shows_or_stays():
    task, question = first("row bound")
    client = Client(task, np.full(FEATURES, SECRET), SECRET)
    assert str(SECRET) not in f"{client!r} {client}"
    client.answer(question)
    assert client._record is None


def test_later_changes_of_the_callers_array_do_not_reach_the_client():
    task, _ = first("row bound")
    x = np.zeros(FEATURES)
    client = Client(task, x, 1.0)
    x[:] = math.nan
    assert np.all(np.isfinite(client._record[0]))


# -- the law ------------------------------------------------------------------------------------------------------

PEOPLE, CROWD = 1500, 300


def line(randomiser):
    """One feature, no intercept: a record of +-1 is the worst case, and a report is one sign."""
    return LocalSparseRegressor(
        1, 1.0, algorithm=LDPIHT(iterations=1, randomiser=randomiser), feature_bound=1.0, target_bound=1.0,
        fit_intercept=False,
    )  # fmt: skip


def labelled(noise):
    delta = 1e-6 if noise == "gaussian" else 0.0
    return LocalSparseRegressor(1, 1.0, algorithm=LabelLDPIHT(noise=noise), delta=delta, target_bound=1.0)


WORST = {
    **{name: line(name) for name in ("duchi-l2", "priv-unit", "sampled-signs")},
    **{noise: labelled(noise) for noise in ("laplace", "piecewise", "gaussian")},
    "classes": LocalSparseClassifier(1, 1.0, algorithm="label-ldp-iht", classes=[-1, 1]),
}


@pytest.mark.parametrize("name", WORST)
def test_two_opposite_records_are_told_apart_by_epsilon_and_no_more(name):
    """The sign of the report that left the device. Its log-odds differ by exactly epsilon = 1 for two answers; for
    numbers by less. Their sd is 0.05: 0.25 off has a chance of 1e-6, and half of epsilon would be noticed."""
    estimator, noise = WORST[name], NoiseSource(5)
    public = features_are_public(estimator.algorithm)
    server = Server(estimator, X=np.ones((PEOPLE, 1))) if public else Server(estimator, PEOPLE, 1)
    task, question = server.task, server.question()
    ups = []
    for y in (-1.0, 1.0):
        clients = (
            Client(task, None if public else [1.0], y, row=row if public else None, _noise=noise)
            for row in range(PEOPLE)
        )
        units = [decode(client.answer(question), task).units[0] for client in clients]
        ups.append(np.mean(np.array(units) > 0))
    told = max(abs(math.log(ups[0] / ups[1])), abs(math.log((1 - ups[0]) / (1 - ups[1]))))
    low, high = (0.75, 1.25) if name not in ("laplace", "piecewise", "gaussian") else (0.1, 1.25)
    assert low < told < high


def mean_report(task, question, x, y):
    """What the reports of many people with one record say on average, in units of the public bound, and its error."""
    noise, public = NoiseSource(9), task.trust == "labels"
    clients = (Client(task, x, y, row=row if public else None, _noise=noise) for row in range(CROWD))
    units = np.array([decode(client.answer(question), task).units for client in clients])
    reports = format_of(task).reports(units)
    reports = reports.signs * task.randomiser.size if isinstance(reports, Signs) else reports.reshape(CROWD, -1)
    return reports.mean(axis=0), reports.std(axis=0) / math.sqrt(CROWD)


@pytest.mark.parametrize("randomiser", ["priv-unit", "sampled-signs"])
@pytest.mark.parametrize(("x", "y"), [([0.5, -1.0], 11.0), ([-9.0, 0.3], 10.0), ([0.9, 0.1], math.inf)])
def test_what_a_person_reports_is_their_clipped_gradient(randomiser, x, y):
    """By hand: |x_j| <= 1, 10 <= y <= 14 around 12, the intercept's column sqrt(2)/8, residuals clipped to 1.5."""
    algorithm = LDPIHT(iterations=2, clip=1.5, randomiser=randomiser)
    estimator = LocalSparseRegressor(2, 3.0, algorithm=algorithm, feature_bound=1.0, target_bound=(10.0, 14.0))
    task = Server(estimator, PEOPLE, 2).task
    column = math.sqrt(2) / 8
    row = np.append(np.clip(x, -1, 1), column)
    theta = np.array([0.25, 0.0, 2.0])
    residual = np.clip(row @ theta - (min(y, 14.0) - 12.0), -1.5, 1.5)
    reach = math.sqrt(2 + 2 / 64) if randomiser == "priv-unit" else np.array([1.0, 1.0, column])
    mean, error = mean_report(task, SurveyQuestion(task.fingerprint, 2, (0, 2), (0.25, 2.0)), x, y)
    assert np.abs((mean - residual * row / reach / 1.5) / error).max() < 5


@pytest.mark.parametrize(("y", "expected"), [(20.0, 0.0), (25.0, 0.5), (1e9, 1.0), (-math.inf, -1.0)])
@pytest.mark.parametrize("noise", ["laplace", "piecewise", "gaussian"])
def test_what_a_person_reports_is_their_clipped_label(noise, y, expected):
    delta = 1e-6 if noise == "gaussian" else 0.0
    estimator = LocalSparseRegressor(1, 4.0, algorithm=LabelLDPIHT(noise=noise), delta=delta, target_bound=(10.0, 30.0))
    server = Server(estimator, X=np.ones((CROWD, 1)))
    mean, error = mean_report(server.task, server.question(), None, y)
    assert abs(mean[0] - expected) / error[0] < 5
    assert error[0] < 0.2


def test_a_client_draws_its_own_noise():
    """Without a seed: the same person, the same question, other bytes, and other ids."""
    task, question = first("priv-unit")
    reports = [client_of(task, "priv-unit", 0).answer(question) for _ in range(20)]
    assert len({decode(data, task).id for data in reports}) == 20
    assert len({decode(data, task).units.tobytes() for data in reports}) == 20


def test_a_task_from_json_is_all_a_client_needs():
    for name in ESTIMATORS:
        task, question = first(name)
        again = SurveyTask.from_json(task.to_json())
        one, two = (
            client_of(given, name, 3, _noise=NoiseSource(8)).answer(SurveyQuestion.from_json(question.to_json()))
            for given in (task, again)
        )
        assert one == two
    assert LABELS
