"""Tasks and questions from strangers: what is consistent comes through, everything else names the field."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surveys import ESTIMATORS, FEATURES, LABELS, client_of, server_of
from thresher import LocalSparseClassifier, LocalSparseRegressor
from thresher.algorithms import LDPIHT, LabelLDPIHT
from thresher.local import Client, Server, SurveyQuestion, SurveyTask, decode

TASKS = {name: server_of(name).task for name in ESTIMATORS}
kinds = pytest.mark.parametrize("name", ESTIMATORS)


def altered(name, **changes):
    return json.dumps({**json.loads(TASKS[name].to_json()), **changes})


# -- tasks --------------------------------------------------------------------------------------------------------


@kinds
def test_a_task_comes_back_from_its_json(name):
    task = TASKS[name]
    again = SurveyTask.from_json(task.to_json())
    assert again == task
    assert again.fingerprint == task.fingerprint
    assert (again.problem, again.release) == (task.problem, task.release)
    assert SurveyTask.from_json(json.dumps(json.loads(task.to_json()), indent=4)) == task  # white space says nothing


def test_fingerprints_tell_tasks_apart():
    prints = [task.fingerprint for task in TASKS.values()]
    assert len(set(prints)) == len(prints)
    for field, value in (("people", 61), ("intercept", False), ("clip", 0.25)):
        changed = {field: value}
        if field == "intercept":
            changed["release"] = {**TASKS["row bound"].release.to_dict(), "dimension": FEATURES}
        assert SurveyTask.from_json(altered("row bound", **changed)).fingerprint != TASKS["row bound"].fingerprint


@kinds
def test_a_task_states_what_its_plan_costs_and_says_so_in_words(name):
    task = TASKS[name]
    assert task.epsilon == pytest.approx(2.0, rel=1e-9)
    assert task.delta == (1e-6 if name == "gaussian labels" else 0.0)
    words = task.describe()
    assert "one report, ever" in words
    assert "epsilon = 2," in words
    assert ("delta = 1e-06" in words) == (name == "gaussian labels")
    assert ("PUBLIC" in words) == (name in LABELS)
    assert "\n" not in words


BAD_FIELDS = {
    "epsilon": [1.0, 1.999999, 2.00001, 0, -2, 21.0, "2", None, True, [2.0], 1e400, 10**400],
    "delta": [1e-9, 0.5, -0.0001, "0", None],
    "people": [0, -1, 2**32, 1.5, 60.0, "60", True, None, 10**400],
    "features": [4, 6, 0, 10**7, 5.0, None],
    "sparsity": [0, 6, 1.0, True],
    "loss": ["hinge", "logistic", "multinomial", 3, None],
    "measurement": ["given by the user", "", None, ["linear"]],
    "survey": ["", "a" * 65, "two\nlines", "<b>", None, 7],
    "algorithm": ["dp-ight", "label-ldp-iht", "", None, 7],
    "trust": ["central", "labels", None, {}],
    "feature_bound": [0, -1, [1.0], [1.0] * 6, ["1"] * 5, {}, "1", [[1.0]] * 5, 1e50, True],
    "row_bound": [0, -2.0, "2", [2.0], 1e-300, False],
    "target_bound": [None, [1.0], [2.0, 1.0], [1.0, 1.0], 2.0, [0.0, 1e300], ["a", "b"], [0, 1, 2]],
    "intercept": [False, 1, "true", None],
    "classes": [["a", "b"], [0, 1], [], "ab"],
    "rounds": [0, 2, 4, 3.0, 10**9, None],
    "clip": [None, 0, -1, "1", 1e200, [0.1]],
    "format": ["thresher-task-2", "thresher-question-1", None, 1],
    "extra": [1],
    "release": [
        None, {}, [], "SphereReport", {"kind": []}, {"kind": "ExactRelease", "times": 3, "question": "local gradient"},
        {"kind": "GaussianGradient", "times": 3, "sd_per_sensitivity": 1.0}, {"kind": "Task"},
    ],
}  # fmt: skip
CASES = [(field, value) for field, values in BAD_FIELDS.items() for value in values]


@pytest.mark.parametrize(("field", "value"), CASES, ids=lambda value: repr(value)[:40])
def test_a_field_that_is_wrong_is_refused_by_name(field, value):
    """The release of "duchi-l2" has times 3, epsilon 2 and dimension 6."""
    related = {"features": "release|feature_bound|sparsity", "intercept": "release", "loss": "classes|outputs"}
    with pytest.raises(ValueError, match=f"{field}|{related.get(field, field)}") as refused:
        SurveyTask.from_json(altered("duchi-l2", **{field: value}))
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize("field", [*json.loads(TASKS["duchi-l2"].to_json())])
def test_a_field_that_is_missing_is_refused_by_name(field):
    fields = json.loads(TASKS["duchi-l2"].to_json())
    del fields[field]
    with pytest.raises(ValueError, match=field):
        SurveyTask.from_json(json.dumps(fields))


RELEASES = {
    "duchi-l2": [
        {"epsilon": 1.0}, {"epsilon": "2"}, {"epsilon": True}, {"epsilon": -2.0}, {"dimension": 5}, {"dimension": 6.0},
        {"times": 2}, {"times": 0}, {"height": 1.0}, {"height": -0.1}, {"height": 1 - 1e-16}, {"height": None},
        {"noise": "none"}, {"question": "local gradient"},
    ],
    "duchi-linf": [
        {"sampled": 0}, {"sampled": 7}, {"sampled": 3.5}, {"agreeing": 3}, {"agreeing": 7}, {"sampled": 10**9},
        {"kind": "SphereReport"},
    ],
    "gaussian labels": [{"sd_per_sensitivity": 0.0}, {"sd_per_sensitivity": 1e-3}, {"sd_per_sensitivity": 1e200},
                        {"times": 2}, {"kind": "GaussianGradient"}],
    "three class labels": [{"classes": 2}, {"classes": 4}, {"classes": 3.0}, {"epsilon": 2.1}],
    "laplace labels": [{"times": 2}, {"epsilon": 1.0}, {"classes": 2}],
}  # fmt: skip
RELEASE_CASES = [(name, changes) for name, several in RELEASES.items() for changes in several]


@pytest.mark.parametrize(("name", "changes"), RELEASE_CASES, ids=str)
def test_a_release_that_is_wrong_is_refused(name, changes):
    release = {**TASKS[name].release.to_dict(), **changes}
    with pytest.raises(ValueError, match=r"release|epsilon|rounds"):
        SurveyTask.from_json(altered(name, release=release))


@pytest.mark.parametrize("name", ["duchi-l2", "two classes", "laplace labels", "three class labels"])
def test_a_release_of_another_question_is_refused(name):
    """With ``times`` and ``epsilon`` that would fit."""
    for other in TASKS.values():
        if (other.trust, other.classes) != (TASKS[name].trust, TASKS[name].classes):
            release = {**other.release.to_dict(), "times": TASKS[name].rounds}
            if "dimension" not in release or other.trust != TASKS[name].trust:
                with pytest.raises(ValueError, match="release"):
                    SurveyTask.from_json(altered(name, release=release))


@pytest.mark.parametrize("name", ["two classes", "two class labels", "three class labels"])
def test_classes_have_no_range(name):
    with pytest.raises(ValueError, match="target_bound="):
        SurveyTask.from_json(altered(name, target_bound=[-1000.0, 1000.0]))


def test_gaussian_noise_is_not_sold_as_pure():
    """Its price at delta = 0 is infinite; no finite epsilon is near that."""
    with pytest.raises(ValueError, match="the release costs inf"):
        SurveyTask.from_json(altered("gaussian labels", delta=0.0))


def test_a_release_too_weak_for_its_stated_epsilon_is_refused_even_if_both_agree_on_absurdity():
    release = {**TASKS["duchi-l2"].release.to_dict(), "epsilon": 40.0}
    with pytest.raises(ValueError, match="epsilon"):
        SurveyTask.from_json(altered("duchi-l2", release=release, epsilon=40.0))


def test_a_report_that_says_nothing_is_refused():
    """All of 2000 signs must agree: the chance of that is below any coin's."""
    server = Server(LocalSparseRegressor(2, 2.0, algorithm=LDPIHT(iterations=3, randomiser="duchi-linf"),
                                         feature_bound=1.0, target_bound=2.0), 60, 1999)  # fmt: skip
    fields = json.loads(server.task.to_json())
    fields["release"]["agreeing"] = 2000
    with pytest.raises(ValueError, match="release would magnify"):
        SurveyTask.from_json(json.dumps(fields))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "NaN", "[" * 100_000, '{"format": Infinity}', "1" * 5000, None, b"{}"]
)
def test_text_that_is_no_task_is_refused(text):
    for kind in (SurveyTask, SurveyQuestion):
        with pytest.raises(ValueError, match=r"."):
            kind.from_json(text)


def test_not_a_number_and_repeated_fields_are_refused():
    text = TASKS["duchi-l2"].to_json()
    with pytest.raises(ValueError, match="delta=nan"):
        SurveyTask.from_json(text.replace('"delta":0.0', '"delta":NaN'))
    with pytest.raises(ValueError, match="twice"):
        SurveyTask.from_json(text.replace('"delta":0.0', '"delta":0.0,"delta":0.0'))


def test_text_that_is_too_long_is_refused_unread():
    with pytest.raises(ValueError, match="characters"):
        SurveyTask.from_json(TASKS["duchi-l2"].to_json() + " " * 2**25)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (LocalSparseRegressor(2, math.inf, feature_bound=1.0, target_bound=1.0), "epsilon=inf"),
        (LocalSparseRegressor(2, 30.0, feature_bound=1.0, target_bound=1.0), "epsilon=30"),
        (LocalSparseRegressor(2, 1.0, feature_bound=1.0, target_bound=1.0, measurement=(np.tanh, np.ones_like)),
         "pair of functions"),
    ],
)  # fmt: skip
def test_a_survey_that_cannot_be_put_on_the_wire_is_refused(estimator, message):
    with pytest.raises(ValueError, match=message):
        Server(estimator, 100, 5)


def test_a_survey_with_printed_noise_is_refused():
    printed = LabelLDPIHT(noise="gaussian", calibration="printed")
    estimator = LocalSparseRegressor(2, 1.0, algorithm=printed, delta=1e-3, target_bound=1.0)
    with pytest.raises(ValueError, match="calibration='printed'"):
        Server(estimator, X=np.eye(5))


def test_a_delta_in_the_budget_of_a_pure_report_is_not_charged():
    task = Server(LocalSparseRegressor(2, 1.0, delta=1e-5, feature_bound=1.0, target_bound=1.0), 100, 5).task
    assert (task.epsilon, task.delta) == (1.0, 0.0)


def test_a_classifier_without_classes_is_refused():
    for classes in (None, [1], [1, 1]):
        with pytest.raises(ValueError, match="classes="):
            Server(LocalSparseClassifier(2, 1.0, feature_bound=1.0, classes=classes), 100, 5)


# -- questions ----------------------------------------------------------------------------------------------------


def test_a_question_comes_back_from_its_json():
    theta = np.array([0.0, 1e-300, 0.0, -1 / 3, 0.0, 1e300])
    question = SurveyQuestion.about(TASKS["row bound"], 2, theta)
    again = SurveyQuestion.from_json(question.to_json())
    assert again == question
    np.testing.assert_array_equal(again.theta(6), theta)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("task", "0" * 63), ("task", "G" * 64), ("task", None), ("round", 0), ("round", 1.0), ("round", True),
        ("round", 2**40), ("at", [3, 1]), ("at", [1, 1]), ("at", [-1, 3]), ("at", [1]), ("at", [1, 3.0]), ("at", "13"),
        ("at", [1, 10**9]), ("values", [1.0, 0.0]), ("values", [1.0, None]), ("values", [1.0, 1e400]),
        ("values", [1.0, "1"]), ("values", [1.0, 2.0, 3.0]), ("values", {}), ("format", "thresher-question-0"),
        ("more", 1),
    ],
)  # fmt: skip
def test_a_question_with_a_wrong_field_is_refused_by_name(field, value):
    question = SurveyQuestion(TASKS["row bound"].fingerprint, 1, (1, 3), (0.5, -0.5))
    with pytest.raises(ValueError, match=field):
        SurveyQuestion.from_json(json.dumps({**json.loads(question.to_json()), field: value}))


# -- hostile servers ----------------------------------------------------------------------------------------------

numbers = st.one_of(st.integers(-3, 70), st.floats(), st.sampled_from([1e308, 1e-308, 2.0, 10**30]))
scalars = st.one_of(st.none(), st.booleans(), numbers, st.text(max_size=5))
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=7) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)  # fmt: skip


def usable(task):
    """A person can answer: any consistent task leads to a report that decodes."""
    x = None if task.trust == "labels" else np.full(task.features, 1e300)
    y = 1e300 if task.classes is None else task.classes[-1]
    client = Client(task, x, y, row=0 if task.trust == "labels" else None)
    return decode(client.answer(SurveyQuestion(task.fingerprint, task.rounds)), task)


@st.composite
def tampered(draw):
    name = draw(st.sampled_from(list(TASKS)))
    fields = json.loads(TASKS[name].to_json())
    for _ in range(draw(st.integers(1, 3))):
        field = draw(st.sampled_from(list(fields)))
        if field == "release" and draw(st.booleans()) and isinstance(fields["release"], dict):
            part = draw(st.sampled_from(list(fields["release"])))
            fields["release"][part] = draw(st.one_of(values, numbers))
        else:
            other = json.loads(TASKS[draw(st.sampled_from(list(TASKS)))].to_json())
            fields[field] = draw(st.one_of(values, numbers, st.just(other[field])))
    return json.dumps(fields)


@settings(max_examples=300, deadline=None)
@given(text=tampered())
def test_a_tampered_task_is_refused_or_consistent(text):
    try:
        task = SurveyTask.from_json(text)
    except ValueError:
        return
    assert task.release.cost().epsilon(task.delta)[0] == pytest.approx(task.epsilon, rel=1e-8)
    assert SurveyTask.from_json(task.to_json()) == task
    if task.features < 100:
        usable(task)


@settings(max_examples=80, deadline=None)
@given(text=st.one_of(st.text(max_size=60), values.map(json.dumps)))
def test_other_text_is_refused(text):
    for kind in (SurveyTask, SurveyQuestion):
        with pytest.raises(ValueError, match=r"."):
            kind.from_json(text)


@settings(max_examples=150, deadline=None)
@given(number=st.one_of(st.integers(-1, 5), values), at=st.one_of(st.lists(st.integers(-1, 7), max_size=6), values),
       given_=st.one_of(st.lists(st.floats(), max_size=6), values))  # fmt: skip
def test_a_tampered_question_is_refused_or_answered(number, at, given_):
    """Whatever may be asked is answered, once, with a report that the server can read."""
    task = TASKS["priv-unit"]
    text = json.dumps(
        {"format": "thresher-question-1", "task": task.fingerprint, "round": number, "at": at, "values": given_}
    )
    client = client_of(task, "priv-unit", 0)
    try:
        data = client.answer(SurveyQuestion.from_json(text))
    except ValueError:
        data = client.answer(SurveyQuestion(task.fingerprint, 1))  # nothing was spent
    assert decode(data, task).units.shape == (FEATURES + 1,)


extreme = st.one_of(st.floats(allow_nan=False), st.sampled_from([math.inf, -math.inf, 1.8e308 / 10, -1e300, 5e-324]))
finite = st.floats(allow_nan=False, allow_infinity=False).filter(bool)


@settings(max_examples=150, deadline=None)
@given(name=st.sampled_from(sorted(set(ESTIMATORS) - LABELS)), x=st.lists(extreme, min_size=5, max_size=5), y=extreme,
       theta=st.lists(finite, min_size=5, max_size=5))  # fmt: skip
def test_any_record_answers_any_theta_within_the_domain(name, x, y, theta):
    task = TASKS[name]
    y = y if task.classes is None else task.classes[y > 0]
    question = SurveyQuestion(task.fingerprint, 1, tuple(range(5)), tuple(theta))
    report = decode(Client(task, x, y).answer(question), task)
    assert report.units.shape == (task.problem.dimension,)


def test_a_hand_made_task_is_checked_like_one_from_json():
    with pytest.raises(ValueError, match=re.escape("epsilon=1.0 is stated, but the release costs 2")):
        replace(TASKS["duchi-l2"], epsilon=1.0)
