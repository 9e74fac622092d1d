"""The server: what it counts and what not, and a model that is the simulation's."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats
from sklearn.exceptions import NotFittedError

from inside import identifiers_of, plan_of, point_of, survey_of
from surveys import ESTIMATORS, FEATURES, LABELS, PEOPLE, client_of, held, records, server_of
from thresher import LocalSparseClassifier, LocalSparseRegressor, SparseRegressor, load_model
from thresher.algorithms import LDPIHT, LabelLDPIHT
from thresher.local import Client, Report, Server, SurveyQuestion, decode, encode
from thresher.local.server import _Replay
from thresher.local.wire import REASONS, format_of
from thresher.models.estimator import algorithm_of
from thresher.vaults import LabelVault, LocalVault
from thresher.vaults.people import Reporter, label_randomiser, unit_labels
from thresher.vaults.randomness import NoiseSource

kinds = pytest.mark.parametrize("name", ESTIMATORS)


# -- a whole survey -----------------------------------------------------------------------------------------------


@kinds
def test_a_survey_of_every_kind_gives_a_model_with_a_certificate(name, tmp_path):
    server = held(server_of(name), name)
    model, (X, y) = server.model(), records(name)
    assert server.finished
    assert (server.accepted, server.rejected) == (PEOPLE, Counter())
    certificate = model.certificate_
    assert certificate.verify()
    exact = certificate.releases[0]["noise"] in ("hypercube", "randomised response")
    assert certificate.grade == ("proved" if exact else "conditional")
    assert certificate.epsilon == 2.0
    assert certificate.n_samples == PEOPLE
    assert certificate.trust["model"] == ("labels" if name in LABELS else "local")
    assert "each person's own device" in certificate.randomness
    assert model.algorithm_ == model.plan_.algorithm == certificate.algorithm
    assert len(model.support_) <= 2 * model.plan_.problem.outputs
    assert model.predict(X).shape == y.shape
    model.save(tmp_path / "model.json")
    np.testing.assert_array_equal(load_model(tmp_path / "model.json").predict(X), model.predict(X))


@kinds
def test_the_model_has_what_the_simulation_sets(name):
    X, y = records(name)
    simulated, deployed = ESTIMATORS[name].fit(X, y), held(server_of(name), name).model()
    assert deployed.plan_ == simulated.plan_
    one, two = simulated.certificate_, deployed.certificate_
    for field in ("algorithm", "epsilon", "delta", "adjacency", "trust", "grade", "claimed_epsilon", "composition",
                  "releases", "bounds", "settings", "assumptions", "n_samples", "n_features", "versions"):  # fmt: skip
        assert getattr(one, field) == getattr(two, field), field
    assert set(vars(simulated)) - set(vars(deployed)) <= {"_published", "_largest_row"}
    for field in ("coef_", "intercept_", "support_"):
        assert np.shape(getattr(simulated, field))[:-1] == np.shape(getattr(deployed, field))[:-1]
    assert type(deployed.intercept_) is type(simulated.intercept_)


class Told(LocalVault):
    """A vault whose people are given by their true reports, as the simulation has them."""

    def __init__(self, plan, rounds):
        super().__init__(plan, NoiseSource())
        self.rounds = iter(rounds)

    def close(self):
        pass

    def _reports(self, reporter, theta):
        return [next(self.rounds)]


@pytest.mark.parametrize("name", sorted(set(ESTIMATORS) - LABELS))
def test_the_server_computes_what_the_simulation_computes_from_the_same_reports(name):
    """Exactly, for signs; for points of a sphere up to what rounding 20 of them to the grid does to their mean."""
    server, noise = server_of(name), NoiseSource(6)
    task, (X, y) = server.task, records(name)
    targets = y if task.classes is None else np.equal(y, task.classes[1]).astype(float)
    reporter, rounds = Reporter(task.problem, task.release, task.clip), []
    layout = format_of(task)
    for group in np.array_split(np.arange(PEOPLE), task.rounds):
        theta = server.question().theta(task.problem.dimension)
        raw = reporter.report(X[group], targets[group], theta, noise)
        for unit, person in zip(layout.units(raw, noise), group, strict=True):
            report = Report(server.round, int(person).to_bytes(16, "big"), None, unit)
            assert server.receive(encode(report, task))
        server.close_round()
        rounds.append((len(group), raw))
    with Told(server.model().plan_, rounds) as vault:
        expected = algorithm_of(ESTIMATORS[name], plan_of(server)).run(vault)
    exact = task.release.noise == "hypercube"
    np.testing.assert_allclose(point_of(server), expected, rtol=0, atol=0 if exact else 0.05)
    for (people, raw), (heard, total) in zip(rounds, survey_of(server).sums, strict=True):
        assert people == heard
        mean, heard_mean = (task.randomiser.total(one) / people for one in (raw, layout.reports(total[None])))
        assert np.any(mean != 0)
        np.testing.assert_allclose(heard_mean, mean, rtol=0, atol=0 if exact else task.randomiser.size / 32767)


@pytest.mark.parametrize("name", sorted(LABELS))
def test_reported_labels_are_those_of_the_simulation(name, monkeypatch):
    """The same noise through a label vault and through bytes: equal but for the grid."""
    server, (X, y) = server_of(name), records(name)
    task, layout = server.task, format_of(server.task)
    (release,) = plan_of(server).releases
    randomiser = label_randomiser(release)
    if task.classes is None:
        targets, values = y, unit_labels(y, task.problem.bounds)
    else:
        values = np.searchsorted(np.array(task.classes), y)
        targets = values.astype(float) if len(task.classes) == 2 else np.eye(len(task.classes))[values]
    expected = LabelVault(X, targets, plan_of(server), NoiseSource(7)).labels(release)
    raw = randomiser.randomise(values, NoiseSource(7))
    for row, units in enumerate(layout.units(raw, NoiseSource(8))):
        assert server.receive(encode(Report(1, row.to_bytes(16, "big"), row, units), task))
    heard = []
    labels = LabelVault._record
    monkeypatch.setattr(LabelVault, "_record", lambda self, *args: heard.append(self._targets) or labels(self, *args))
    server.close_round()
    grid = 0.0 if task.classes else max(1, randomiser.size) / 1024 * (task.target_bound[1] - task.target_bound[0]) / 2
    assert heard[0].shape == expected.shape
    np.testing.assert_allclose(heard[0], expected, rtol=0, atol=grid * (1 + 1e-9))


def test_rows_without_a_report_are_left_out():
    """The survey that rows 0, 3, 6, ... answer is the survey of these rows."""
    estimator = LocalSparseRegressor(2, 2.0, algorithm=LabelLDPIHT(noise="laplace"), row_bound=3.0, target_bound=2.0)
    X, reporters = records("lasso")[0], np.arange(0, PEOPLE, 3)
    whole, part = Server(estimator, X=X), Server(estimator, X=X[reporters])
    units = np.rint(9000 * X[reporters, :1]).astype(np.int64)
    for position, row in enumerate(reporters):
        for server, at in ((whole, int(row)), (part, position)):
            assert server.receive(encode(Report(1, position.to_bytes(16, "big"), at, units[position]), server.task))
    models = []
    for server in (whole, part):
        server.close_round()
        models.append(server.model())
    assert models[0].certificate_.n_samples == len(reporters) == 20
    assert 0 in models[0].support_
    assert models[0].plan_.problem.n == PEOPLE
    assert "planned for 60 people; reports accepted by round: 20" in models[0].certificate_.notes
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, atol=1e-12)


def test_a_replay_refuses_another_clip_than_people_were_told():
    server = server_of("row bound")
    (release,) = plan_of(server).releases
    with (
        _Replay(plan_of(server), server.task, []) as vault,
        pytest.raises(ValueError, match="is not what people were told"),
    ):
        vault.gradient(server.task.problem.origin(), release, 2 * server.task.clip)


def test_more_or_fewer_people_than_planned_may_come():
    server = server_of("row bound")
    for number, people in enumerate((1, 30, 2)):
        question = server.question()
        for person in range(people):
            assert server.receive(client_of(server.task, "row bound", person).answer(question))
        assert (server.round, server.heard) == (number + 1, people)
        server.close_round()
    certificate = server.model().certificate_
    assert certificate.verify()
    assert certificate.n_samples == 33
    assert certificate.notes[-1].endswith("by round: 1, 30, 2")


def test_public_rows_may_be_sparse_or_a_table():
    X, _ = records("lasso")
    coefficients = []
    for rows in (X, sparse.csr_array(X), sparse.coo_array(X), pd.DataFrame(X, columns=list("abcde"))):
        server = Server(ESTIMATORS["lasso"], X=rows, survey="one name for all")
        for row in range(PEOPLE):
            client = client_of(server.task, "lasso", row, _noise=NoiseSource(row))
            assert server.receive(client.answer(server.question()))
        server.close_round()
        coefficients.append(server.model().coef_)
    assert server.model().feature_names_in_.tolist() == list("abcde")
    for other in coefficients[1:]:
        np.testing.assert_allclose(other, coefficients[0], atol=1e-9)


# -- accuracy -----------------------------------------------------------------------------------------------------

TRUTH = np.array([1.0, -1.0, 0, 0, 0, 0, 0, 0])
CROWD = 2000


def crowd(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (CROWD, len(TRUTH)))
    return X, X @ TRUTH + 0.1 * rng.standard_normal(CROWD)


def surveyed(estimator, X, y, noise):

    server = Server(estimator, *X.shape)
    for group in np.array_split(np.arange(len(y)), server.task.rounds):
        question = server.question()
        for person in group:
            assert server.receive(Client(server.task, X[person], y[person], _noise=noise).answer(question))
        server.close_round()
    return server.model()


@pytest.mark.parametrize("randomiser", ["priv-unit", "sampled-signs"])
def test_a_survey_of_2000_people_is_as_accurate_as_the_simulation(randomiser):
    """Errors of 5 surveys against 40 simulations: a rank test that fails one in 1000 such comparisons under fresh
    seeds (these are fixed), and that would notice if surveys erred as much as the zero model."""
    estimator = LocalSparseRegressor(
        2, 4.0, algorithm=LDPIHT(iterations=3, randomiser=randomiser), feature_bound=1.0, target_bound=2.0
    )
    errors = [np.linalg.norm(surveyed(estimator, *crowd(seed), NoiseSource(seed)).coef_ - TRUTH) for seed in range(5)]
    simulated = [
        np.linalg.norm(estimator.set_params(random_state=seed).fit(*crowd(seed)).coef_ - TRUTH) for seed in range(40)
    ]
    nothing = np.full(5, np.linalg.norm(TRUTH))
    assert stats.mannwhitneyu(errors, simulated).pvalue > 1e-3
    assert stats.mannwhitneyu(nothing, simulated).pvalue < 1e-3


# -- what does not count ------------------------------------------------------------------------------------------


@kinds
def test_bad_reports_are_counted_by_reason_and_change_nothing(name):
    server, other = server_of(name), server_of(name)
    question = server.question()
    good = client_of(server.task, name, 0).answer(question)
    later = client_of(server.task, name, 1).answer(SurveyQuestion(server.task.fingerprint, server.task.rounds))
    assert server.receive(good)
    hostile = {
        "replayed": good,
        "task": client_of(other.task, name, 1).answer(other.question()),
        "version": good[:4] + b"\x02" + good[5:],
        "malformed": good[:-1],
    }
    if name in LABELS:
        report = decode(client_of(server.task, name, 0).answer(question), server.task)
        assert not server.receive(encode(report, server.task))  # the same row under another id
        unknown = encode(Report(1, bytes(16), PEOPLE - 1, report.units), server.task)
        assert server.receive(unknown)
    else:
        hostile["round"] = later
    for data in hostile.values():
        assert server.receive(data) is False
    expected = Counter([*hostile]) + Counter(["replayed"] * (name in LABELS))
    assert server.rejected == expected
    assert server.accepted == 1 + (name in LABELS)


def test_a_replay_is_noticed_in_later_rounds_too():
    server = server_of("row bound")
    report = decode(client_of(server.task, "row bound", 0).answer(server.question()), server.task)
    assert server.receive(encode(report, server.task))
    server.close_round()
    assert not server.receive(encode(report, server.task))
    assert not server.receive(encode(Report(2, report.id, None, report.units), server.task))
    assert server.rejected == Counter({"round": 1, "replayed": 1})


def test_reports_after_the_end_do_not_count():
    server = held(server_of("row bound"), "row bound")
    before = server.model().coef_
    client = client_of(server.task, "row bound", 0)
    assert not server.receive(client.answer(SurveyQuestion(server.task.fingerprint, server.task.rounds)))
    assert server.rejected == Counter(["round"])
    np.testing.assert_array_equal(server.model().coef_, before)


FUZZED = server_of("row bound")
VALID = [client_of(FUZZED.task, "row bound", person).answer(FUZZED.question()) for person in range(5)]


@settings(max_examples=200, deadline=None)
@given(data=st.one_of(st.binary(max_size=100), st.sampled_from(VALID), st.none(), st.text(max_size=5)),
       at=st.integers(0, 60), new=st.binary(max_size=4))  # fmt: skip
def test_the_server_survives_any_bytes_and_counts_them(data, at, new):
    if isinstance(data, bytes):
        data = data[:at] + new + data[at + len(new) :]
    before = FUZZED.accepted + FUZZED.rejected.total()
    assert FUZZED.receive(data) in (True, False)
    assert FUZZED.accepted + FUZZED.rejected.total() == before + 1
    assert FUZZED.accepted <= len(VALID)
    assert set(FUZZED.rejected) <= set(REASONS)


def test_one_liar_moves_the_mean_by_no_more_than_a_report():
    """The worst that bytes can say: all signs, or a point of the sphere, over the number of people."""
    for name in ("duchi-linf", "priv-unit"):
        server = server_of(name)
        task = server.task
        units = np.zeros(FEATURES + 1, dtype=np.int64) + (1 if name == "duchi-linf" else 0)
        if name == "priv-unit":
            units[0] = 32767
        for person in range(19):
            server.receive(client_of(task, name, person).answer(server.question()))
        before = survey_of(server).total.copy()
        assert server.receive(encode(Report(1, bytes(16), None, units), task))
        moved = format_of(task).reports((survey_of(server).total - before)[None])
        size = task.randomiser.total(moved) / 20
        assert np.linalg.norm(size) <= np.sqrt(task.randomiser.second_moment) / 20 * 1.001


def test_threads_may_hand_in_reports():
    server, start = server_of("row bound"), threading.Barrier(4)
    question = server.question()
    reports = [client_of(server.task, "row bound", person).answer(question) for person in range(PEOPLE)] * 2

    def hand_in(part):
        start.wait()
        return sum(server.receive(data) for data in part)

    with ThreadPoolExecutor(4) as pool:
        accepted = sum(pool.map(hand_in, [reports[first::4] for first in range(4)]))
    assert accepted == server.accepted == server.heard == PEOPLE
    assert server.rejected == Counter({"replayed": PEOPLE})


# -- what the server refuses of its owner -------------------------------------------------------------------------


def test_a_round_without_reports_cannot_be_closed():
    server = server_of("row bound")
    with pytest.raises(RuntimeError, match="round 1 has no report yet"):
        server.close_round()
    server.receive(client_of(server.task, "row bound", 0).answer(server.question()))
    server.close_round()
    with pytest.raises(RuntimeError, match="round 2 has no report yet"):
        server.close_round()


def test_a_survey_that_is_over_asks_nothing_and_one_that_is_not_has_no_model():
    server = server_of("row bound")
    with pytest.raises(RuntimeError, match="round 1 of 3 is open"):
        server.model()
    held(server, "row bound")
    with pytest.raises(RuntimeError, match="nothing left to ask"):
        server.question()
    with pytest.raises(RuntimeError, match="every round is closed"):
        server.close_round()


BOUNDED = {"feature_bound": 1.0, "target_bound": 1.0}


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Server(SparseRegressor(2, **BOUNDED), 10, 5), TypeError, "LocalSparseRegressor"),
        (lambda: Server(LocalSparseRegressor(2, random_state=1, **BOUNDED), 10, 5), ValueError, "random_state=1"),
        (lambda: Server(LocalSparseRegressor(2, **BOUNDED), X=np.eye(3)), ValueError, "private features"),
        (lambda: Server(LocalSparseRegressor(2, **BOUNDED), 10), ValueError, "private features"),
        (lambda: Server(ESTIMATORS["lasso"], 9, 5), ValueError, "public features"),
        (lambda: Server(LocalSparseRegressor(2, target_bound=1.0), 10, 5), ValueError, "feature_bound=None"),
        (lambda: Server(LocalSparseRegressor(2, **BOUNDED), 10, 5, survey="a/b"), ValueError, "survey='a/b'"),
        (lambda: Server(LocalSparseClassifier(2, feature_bound=1.0, classes=[1, 2, 3]), 9, 5), ValueError, "ldp-iht"),
    ],
)  # fmt: skip
def test_what_makes_no_survey_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_the_estimator_that_was_given_is_left_alone():
    estimator = LocalSparseRegressor(2, 2.0, algorithm=LDPIHT(iterations=3), feature_bound=1.0, target_bound=2.0)
    server = Server(estimator, PEOPLE, FEATURES)
    held(server, "row bound")
    assert server.model() is not server.model()
    with pytest.raises(NotFittedError):
        estimator.predict(np.zeros((1, FEATURES)))


def test_endless_reports_do_not_take_endless_memory():
    """Each is a good one, of another person it seems."""
    name = next(iter(sorted(set(ESTIMATORS) - LABELS)))
    server = server_of(name)
    report = decode(client_of(server.task, name, 0).answer(server.question()), server.task)
    for number in range(10 * PEOPLE):
        assert server.receive(encode(replace(report, id=number.to_bytes(16)), server.task))
    for number in range(10 * PEOPLE, 11 * PEOPLE):
        assert not server.receive(encode(replace(report, id=number.to_bytes(16)), server.task))
    assert (server.accepted, server.rejected) == (10 * PEOPLE, Counter(crowd=PEOPLE))
    assert len(identifiers_of(server)) == 10 * PEOPLE
    server.close_round()  # what was taken in still answers
