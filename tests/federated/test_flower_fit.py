"""A whole fit over Flower in one process: what a party answers, what it refuses, and parties that leave."""

from __future__ import annotations

import json
import os
from functools import partial

import numpy as np
import pytest

pytest.importorskip("flwr")

from flwr.app import Context, RecordDict

from flower_machines import OneProcessGrid
from secure_sums import EVERYBODY, IDENTITIES
from thresher import load_model
from thresher.algorithms import DPGD, DPIGHT
from thresher.federated import FederatedDenseRegressor, FederatedSparseClassifier, FederatedSparseRegressor, rounds
from thresher.federated.flower import FlowerAggregation
from thresher.federated.flower_fit import fit_app, fit_study, party_app
from thresher.federated.group import Group
from thresher.federated.messages import SumStage
from thresher.federated.rounds import RoundQuestion, answer
from thresher.federated.secagg import RoundAborted
from thresher.federated.study import FederatedStudy
from thresher.federated.vault import JointVault, Party
from thresher.privacy.laws.skellam import Skellam
from thresher.vaults.randomness import NoiseSource

SIZES = [400, 700, 1900]
COLUMNS = 6
GROUP = Group(3, dropouts=1)
ROUNDS = 4


def table(number):
    """A party's rows; the slopes of columns 1 and 4 are a hundred standard deviations of the noise below."""
    rng = np.random.default_rng(number)
    X = rng.uniform(-1, 1, size=(SIZES[number], COLUMNS))
    return X, 2 * X[:, 1] - 2 * X[:, 4] + 0.1 * rng.normal(size=len(X))


def sides(number):
    X, y = table(number)
    return X, np.where(y > 0, "up", "down")


def study_of(model=FederatedSparseRegressor, *, group=GROUP, **changes):
    settings = {"epsilon": 8.0, "delta": 1e-6, "feature_bound": 1.0, "aggregation": "skellam"}
    if model is not FederatedDenseRegressor:
        settings |= {"sparsity": 2, "algorithm": DPIGHT(iterations=ROUNDS)}
    settings |= {"classes": ["up", "down"]} if model is FederatedSparseClassifier else {"target_bound": 4.0}
    return FederatedStudy(model(**{**settings, **changes}), group, EVERYBODY[:3], SIZES, COLUMNS)


def grid_of(study, folder, load=table):
    """All parties of the study, as if their machines had just started."""
    places = enumerate(IDENTITIES[:3])
    return OneProcessGrid([party_app(study, n, own, partial(load, n), folder / f"{n}") for n, own in places])


def asking(study, grid):
    return FlowerAggregation(grid, study.group, study.everybody, study.plan.problem.dimension, patience=0.3)


def question_of(study, /, **changes):
    """A question that a party may answer, but for the changes."""
    plan = study.plan
    facts = {"study": study.hash, "round": 1, "clip": plan.settings["clip"]}
    facts["theta"] = [0.1] * plan.problem.dimension
    if study.release.question.name == "minimiser":
        facts |= {"theta": None, "ridge": plan.settings["ridge"]}
    rules = JointVault([], SIZES, plan, NoiseSource())
    facts["grid"] = rules.grid_step(study.release, facts["clip"], facts.get("ridge"))
    return RoundQuestion(**{**facts, **changes})


def journal_in(folder):
    path = folder / "journal.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def begun_in(folder):
    return [entry["round"] for entry in journal_in(folder) if entry["what"] == "begun"]


# -- fits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "load", "changes"),
    [
        (FederatedSparseRegressor, table, {}),
        (FederatedSparseRegressor, table, {"algorithm": "mpc-out-p"}),
        (FederatedSparseRegressor, table, {"algorithm": "noisy-frank-wolfe"}),
        (FederatedDenseRegressor, table, {"algorithm": DPGD(passes=8)}),
        (FederatedSparseClassifier, sides, {}),
    ],
)
def test_the_model_finds_its_columns_and_its_certificate_verifies(model, load, changes, tmp_path):
    study = study_of(model, **changes)
    app = fit_app(study, tmp_path / "model.json", patience=0.3)
    app(grid_of(study, tmp_path, load), Context(1, 1, {}, RecordDict(), {}))
    found = load_model(tmp_path / "model.json")
    assert set(np.argsort(np.abs(np.ravel(found.coef_)))[-2:]) == {1, 4}
    X, y = load(0)
    assert found.score(X, y) > 0.5
    certificate = found.certificate_
    assert certificate.verify()
    assert (certificate.n_samples, certificate.epsilon) == (sum(SIZES), 8.0)
    assert "masks" in certificate.trust["model"]
    assert "AES" in certificate.randomness
    notes = " ".join(certificate.notes)
    assert "at most 400, 700, 1900 rows" in notes
    assert "up to 1 of them may leave" in notes
    for number in range(3):
        entries = journal_in(tmp_path / f"{number}")
        assert entries[0]["charge"]["epsilon"] == 8.0
        assert begun_in(tmp_path / f"{number}") == list(range(1, study.release.times + 1))


def test_the_parts_add_up_to_the_gradient_of_all_rows(tmp_path):
    study = study_of(algorithm=DPIGHT(iterations=1, clip=100.0))  # nothing is clipped
    question = question_of(study)
    parts = [answer(study, n, partial(table, n), tmp_path / f"{n}", question.to_bytes()) for n in range(3)]
    X = np.vstack([table(n)[0] for n in range(3)])
    X = np.column_stack([X, np.full(len(X), study.plan.problem.intercept_column)])
    y = np.concatenate([table(n)[1] for n in range(3)])
    expected = X.T @ (X @ question.theta - y) / len(X)
    np.testing.assert_allclose(sum(parts) * question.grid, expected, atol=2 * question.grid)


# -- refusals -------------------------------------------------------------------------------------------------------

NOWHERE = [0.1] * COLUMNS + [float("inf")]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"study": "0" * 64}, "another one than ours"),
        ({"round": 0}, "round=0 is not in the plan, which has 4"),
        ({"round": ROUNDS + 1}, "round=5 is not in the plan, which has 4"),
        ({"clip": 1e9}, "clip=1000000000.0 is not the plan's"),
        ({"clip": float("nan")}, "clip=nan is not the plan's"),
        ({"ridge": 1e-9}, "ridge=1e-09 is not the plan's"),
        ({"grid": 1e-30}, "grid=1e-30 is not the plan's"),
        ({"theta": [0.1] * COLUMNS}, "theta has 6 coordinates, the question needs 7"),
        ({"theta": None}, "theta has None coordinates, the question needs 7"),
        ({"theta": NOWHERE}, "theta is not finite"),
    ],
)
def test_a_party_refuses_what_its_plan_does_not_allow(changes, why, tmp_path):
    study = study_of()
    with pytest.raises(ValueError, match=why):
        answer(study, 0, partial(table, 0), tmp_path, question_of(study, **changes).to_bytes())
    assert not journal_in(tmp_path)


@pytest.mark.parametrize("changes", [{"ridge": 1e-9}, {"ridge": None}, {"theta": [0.1] * (COLUMNS + 1)}, {"grid": 1.0}])
def test_a_party_refuses_another_minimiser_than_the_planned_one(changes, tmp_path):
    study = study_of(algorithm="mpc-out-p")
    with pytest.raises(ValueError, match=f"{next(iter(changes))}.*(the plan's|the question needs)"):
        answer(study, 0, partial(table, 0), tmp_path, question_of(study, **changes).to_bytes())
    assert not journal_in(tmp_path)


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b'{"study": 1, "round": [], "clip": 1, "grid": 1}', b"\xff", b"[" * 1000]
)
def test_a_party_refuses_nonsense(data, tmp_path):
    with pytest.raises(ValueError, match="the question is not one"):
        answer(study_of(), 0, partial(table, 0), tmp_path, data)


def test_a_question_is_no_longer_than_one_of_this_study_can_be(tmp_path):
    """The longest that there is: every coordinate as long as a number can be."""
    study = study_of()
    longest = question_of(study, theta=[-2.2250738585072014e-308] * study.plan.problem.dimension).to_bytes()
    answer(study, 0, partial(table, 0), tmp_path / "one", longest)
    with pytest.raises(ValueError, match="bytes, more than any of this study"):
        answer(study, 0, partial(table, 0), tmp_path / "two", longest + b" " * 10_000)
    assert not journal_in(tmp_path / "two")


@pytest.mark.parametrize(
    "other",
    [
        {"epsilon": 9.0},
        {"feature_bound": 2.0},
        {"fit_intercept": False},
        {"algorithm": DPIGHT(iterations=ROUNDS, ridge=1.0)},
        {"group": Group(3)},
    ],
)
def test_other_facts_are_another_study(other):
    assert study_of(**other).hash != study_of().hash


def test_less_noise_than_the_plans_is_refused(tmp_path, caplog):
    study = study_of()
    grid = grid_of(study, tmp_path)
    less = Skellam(np.nextafter(study.release.variance, 0))
    with pytest.raises(RoundAborted, match="stage MASK"):
        asking(study, grid).noisy_sum(question_of(study).to_bytes(), less)
    assert "less noise than this party insists on" in caplog.text
    assert not any(journal_in(tmp_path / f"{n}") for n in range(3))


def test_a_round_is_answered_once_whatever_restarts(tmp_path, caplog):
    study = study_of()
    fit_study(study, asking(study, grid_of(study, tmp_path)))
    with pytest.raises(RoundAborted, match="stage MASK"):
        fit_study(study, asking(study, grid_of(study, tmp_path)))
    assert "round=1 was answered before" in caplog.text
    assert begun_in(tmp_path / "0") == [1, 2, 3, 4]


def test_rounds_may_be_left_out_but_not_turned_back_to(tmp_path):
    study = study_of()
    at = partial(answer, study, 0, partial(table, 0), tmp_path)
    at(question_of(study, round=3).to_bytes())
    for number in (1, 2, 3):
        with pytest.raises(ValueError, match=f"round={number} was answered before, or is over"):
            at(question_of(study, round=number).to_bytes())
    at(question_of(study, round=4).to_bytes())
    assert begun_in(tmp_path) == [3, 4]


def test_a_folder_pays_for_one_plan(tmp_path):
    for epsilon in (8.0, 9.0):
        study = study_of(epsilon=epsilon)
        ask = partial(answer, study, 0, partial(table, 0), tmp_path, question_of(study, round=2).to_bytes())
        if epsilon == 8.0:
            ask()
    with pytest.raises(ValueError, match="is of another plan"):
        ask()


def test_price_and_round_are_on_disk_before_a_row_is_clipped(tmp_path, monkeypatch):
    events = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: fsync(handle) or events.append(journal_in(tmp_path)))

    class Crashing(Party):
        def __init__(self, *rows):
            events.append("clipped")
            raise MemoryError

    study = study_of()
    monkeypatch.setattr(rounds, "Party", Crashing)
    with pytest.raises(MemoryError):
        answer(study, 0, partial(table, 0), tmp_path, question_of(study).to_bytes())
    assert events.index("clipped") == len(events) - 1
    assert [entry["what"] for entry in events[-2]] == ["charge", "begun"]
    monkeypatch.setattr(rounds, "Party", Party)
    with pytest.raises(ValueError, match="was answered before"):  # a crash does not give a round back
        answer(study, 0, partial(table, 0), tmp_path, question_of(study).to_bytes())


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (lambda: (np.ones((401, COLUMNS)), np.ones(401)), "more rows than the 400 this party declared"),
        (lambda: (np.ones((9, 5)), np.ones(9)), "X has 5 columns, the study 6"),
        (lambda: (np.full((9, COLUMNS), np.nan), np.ones(9)), "NaN"),
        (lambda: (np.ones((9, COLUMNS)), ["a"] * 9), "must be numbers"),
    ],
)
def test_rows_that_do_not_fit_are_refused_before_anything_is_spent(rows, why, tmp_path):
    study = study_of()
    with pytest.raises(ValueError, match=why):
        answer(study, 0, rows, tmp_path, question_of(study).to_bytes())
    assert not journal_in(tmp_path)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"aggregation": "mpyc"}, "aggregation='mpyc'"),
        ({"random_state": 0}, "random_state=0"),
        ({"model": FederatedSparseClassifier, "classes": None}, "classes=None"),
        ({"model": FederatedDenseRegressor, "algorithm": "local-grad-p"}, "algorithm='local-grad-p'"),
        ({"group": Group(4)}, "everybody has 3 entries for parties=4"),
    ],
)
def test_a_study_that_cannot_be_is_refused(changes, why):
    with pytest.raises(ValueError, match=why):
        study_of(**changes).plan  # noqa: B018


# -- parties that leave ---------------------------------------------------------------------------------------------


def leave(grid, number, silent):
    """Let the nodes in ``silent`` leave round ``number`` from a stage on; they are back in the next one."""

    def push(messages):
        grid.silent = silent if messages[0].content["asked"]["round"] == number else {}
        return OneProcessGrid.push_messages(grid, messages)

    grid.push_messages = push


@pytest.mark.parametrize("stage", SumStage)
def test_a_party_that_leaves_a_round_is_survived_and_is_back_in_the_next(stage, tmp_path):
    study = study_of()
    grid = grid_of(study, tmp_path)
    leave(grid, 2, {101: stage})
    model = fit_study(study, asking(study, grid))
    assert set(model.support_) == {1, 4}
    assert model.certificate_.verify()
    answered = stage > SumStage.MASK
    assert begun_in(tmp_path / "1") == ([1, 2, 3, 4] if answered else [1, 3, 4])
    assert begun_in(tmp_path / "0") == [1, 2, 3, 4]


def test_a_round_that_loses_too_many_ends_the_run_and_stays_spent(tmp_path):
    study = study_of()
    grid = grid_of(study, tmp_path)
    leave(grid, 2, {100: SumStage.CONFIRM, 101: SumStage.UNMASK})
    with pytest.raises(RoundAborted, match="nothing was revealed"):
        fit_study(study, asking(study, grid))
    for number in range(3):
        assert journal_in(tmp_path / f"{number}")[0]["charge"]["plan"] == study.hash
        assert begun_in(tmp_path / f"{number}") == [1, 2]


def test_the_mean_without_a_party_is_still_divided_by_all_rows(tmp_path):
    """The noise is below 1e-3 of the slopes, so that 5 % are 50 standard deviations; the rows themselves are fixed."""
    study = study_of(epsilon=1e12, algorithm=DPIGHT(iterations=1, step=1.0))
    models = []
    for silent in ({}, {102: SumStage.ADVERTISE}):
        grid = grid_of(study, tmp_path / f"{len(silent)}")
        grid.silent = silent
        models.append(fit_study(study, asking(study, grid)).coef_[[1, 4]])
    np.testing.assert_allclose(models[1] / models[0], (400 + 700) / 3000, rtol=0.05)
