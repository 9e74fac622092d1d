"""Certificates that contradict themselves: what can be seen from the file alone is refused."""

from __future__ import annotations

import copy
import json
import tracemalloc
import warnings

import pytest

from certified_models import FITS, PEOPLE, N, classes, fitted, numbers
from thresher import DenseClassifier, DenseRegressor, SparseClassifier, SparseRegressor
from thresher.algorithms import DENSE, DPIGHT, REGISTRY, RRPSGD
from thresher.privacy.certificate import Certificate, combine
from thresher.privacy.trust import trust_words


def record_of(name):
    if name == "sum":
        return json.loads(combine(*(fitted(each) for each in ("scaler", "pursuit", "output-perturbation"))).to_json())
    return json.loads(fitted(name).certificate_.to_json())


def edited(record, *changes):
    """A copy in which each path of names and positions leads to another value."""
    record = copy.deepcopy(record)
    for path, value in changes:
        *outer, last = path
        place = record
        for step in outer:
            place = place[step]
        if value is GONE:
            del place[last]
        else:
            place[last] = value(place[last]) if callable(value) else value
    return record


def verdict(record):
    """Whether it passes, by the way a file is read."""
    try:
        return Certificate.from_json(json.dumps(record)).verify().ok
    except ValueError:
        return False


GONE = object()
FIRST = ("releases", 0)
RELEASE, ANSWERS, ANSWER = (*FIRST, "release"), (*FIRST, "answers"), (*FIRST, "answers", 0)


PROVED = (("grade",), "proved"), (("assumptions",), [])
EXACT = "AES-128 counter mode keyed by the operating system; grid-rounded exact noise"
SEEDED = "seeded by random_state (not private); grid-rounded exact noise"
JOINT = "joint coins of the parties (MPyC); whole numbers, drawn exactly"
OTHER_ROWS = "the number of rows, 24000, is public: it was read from the data; declare n_public instead"
OF_PEOPLE = "each person with all their records, from whoever sees the model"


def times(factor):
    return lambda value: value * factor


def scaled(answer, factor):
    """An answer that is consistent in itself."""
    return [((*answer, name), times(factor)) for name in ("clip", "sensitivity", "scale")]


CHEAPER = (("epsilon",), 0.95), (("claimed_epsilon",), 0.95), (("composition",), "epsilon=0.95 at delta=1e-06 by RDP")

EDITS = {
    # the grade, against what it rests on
    "a better grade than its assumptions": ("pursuit, seeded", (("grade",), "proved")),
    "a better grade than random_state": ("pursuit, seeded", *PROVED),
    "floating-point noise as proved": ("pursuit", *PROVED),
    "a worse grade than it has": ("dp-ight, hardened", (("grade",), "conditional")),
    "a seed nobody assumes": (
        "dp-ight, hardened",
        (("randomness",), SEEDED),
    ),
    "exact noise that was not widened": (
        "dp-ight",
        (("randomness",), EXACT),
        (("grade",), "proved"),
        (("assumptions",), []),
    ),
    "exact noise that nobody can draw": (
        "two-stage",
        (("randomness",), EXACT),
        (("grade",), "proved"),
        (("assumptions",), []),
    ),
    "randomness of dice": ("dp-ight, hardened", (("randomness",), "fair dice")),
    "whole numbers of a curator": (
        "dp-ight",
        (("randomness",), JOINT),
        (("grade",), "proved"),
        (("assumptions",), []),
    ),
    "printed noise as proved": ("dp-ight, printed", (("grade",), "conditional"), (("epsilon",), 1.0)),
    "printed noise without a word": ("dp-ight, printed", (("grade",), "conditional")),
    "proved noise as printed": ("dp-ight, hardened", (("grade",), "printed")),
    "no privacy as proved": ("ight", (("grade",), "proved")),
    "a claim without a grade": ("ight", (("claimed_epsilon",), 1.0)),
    "an assumption more": ("dp-ight, hardened", (("assumptions",), ["the sky is blue"])),
    "a public number of other rows": (
        "dp-ight, add-remove, counted",
        (
            ("assumptions", 0),
            OTHER_ROWS,
        ),
    ),
    # the unit, the neighbours, and who is trusted
    "people where rows were": ("dp-ight", (("unit",), "person")),
    "rows where people were": ("pursuit of people", (("unit",), "row")),
    "people in the words only": (
        "dp-ight",
        (("trust", "protected"), OF_PEOPLE),
    ),
    "more protected than there is": ("dp-ight", (("trust", "protected"), "everybody, from everything")),
    "nobody to be trusted": ("dp-ight", (("trust", "must be trusted"), "nobody")),
    "a curator as the local model": ("dp-ight", (("trust", "model"), "local")),
    "labels as whole records": (
        "local, laplace labels",
        (("trust",), trust_words("local", "row")),
    ),
    "parties as a curator": ("federated dp-ight", (("trust",), trust_words("central", "row"))),
    "neighbours that count half": ("dp-ight", (("adjacency",), "add-remove")),
    "neighbours that count twice": ("dp-ight, add-remove", (("adjacency",), "replace-one")),
    "neighbours unheard of": ("scaler", (("adjacency",), "next-door")),
    # bounds and clips
    "a smaller bound of features": ("dp-ight", (("bounds", "feature"), 0.1)),
    "a bound of no features": ("dp-ight", (("bounds", "feature"), -1.0)),
    "a smaller norm of rows": ("dp-ight", (("bounds", "row_norm"), 0.5)),
    "another intercept": ("dp-ight", (("bounds", "intercept_column"), 0.1)),
    "bounds of fewer columns": ("local, column bounds", (("bounds", "feature"), [1.0, 1.0])),
    "a range of targets upside down": ("dp-ight", (("bounds", "target"), [2.0, -2.0])),
    "bounds of something else": ("dp-ight", (("bounds", "mood"), 1.0)),
    "a clip that the settings deny": (
        "dp-ight",
        ((*ANSWER, "clip"), times(2)),
        ((*ANSWER, "sensitivity"), times(2)),
        ((*ANSWER, "scale"), times(2)),
    ),
    "a clip that no residual reaches": (
        "pursuit",
        (("releases", 1, "answers", 0, "clip"), times(1e6)),
        (("releases", 1, "answers", 0, "sensitivity"), times(1e6)),
        (("releases", 1, "answers", 0, "scale"), times(1e6)),
    ),
    "moments of half a column": (
        "pursuit",
        (("releases", 4, "answers", 0, "clip"), times(1.1)),
        (("releases", 4, "answers", 0, "sensitivity"), times(1.1)),
        (("releases", 4, "answers", 0, "scale"), times(1.1)),
    ),
    "labels beyond their range": (
        "local, laplace labels",
        ((*ANSWER, "clip"), times(3)),
        ((*ANSWER, "sensitivity"), times(3)),
        ((*ANSWER, "scale"), times(3)),
    ),
    "targets beyond the clip of labels": ("local, laplace labels", (("bounds", "target"), [-9.0, 9.0])),
    "a sensitivity above its clip": (
        "dp-ight",
        ((*ANSWER, "sensitivity"), times(1.5)),
        ((*ANSWER, "scale"), times(1.5)),
    ),
    "a sensitivity below its clip": (
        "peeling",
        ((*ANSWER, "sensitivity"), times(0.5)),
        ((*ANSWER, "scale"), times(0.5)),
    ),
    "a ridge that was another": ("output-perturbation", (("settings", "ridge"), times(10))),
    # the algorithm and its settings
    "an algorithm of other releases": ("dp-ight", (("algorithm",), "pursuit")),
    "peeling as two stages": ("peeling", (("algorithm",), "two-stage")),
    "frank-wolfe as peeling": ("frank-wolfe", (("algorithm",), "peeling")),
    "a teacher as a minimiser": ("dpsl-kt", (("algorithm",), "output-perturbation")),
    "fewer rounds than answers": ("dp-ight", (("settings", "rounds"), 2)),
    "more rounds than answers": ("frank-wolfe", (("settings", "rounds"), 60)),
    "other stages": ("pursuit", (("settings", "stages"), 1)),
    "settings that are gone": ("dp-ight", (("settings",), {})),
    "other batches": ("dp-sgd", (("settings", "batch"), 3)),
    "another sampling": ("dp-sgd", (("settings", "sampling"), "fixed")),
    "another momentum": ("dp-srm", (("settings", "momentum"), 0.9)),
    "one class less": ("peeling of three classes", (("settings", "classes"), 2)),
    "votes of nobody": ("two-stage", (("settings", "stage_one"), "votes")),
    "a scaler that did not centre": ("scaler", (("settings", "centre"), False)),
    "a trial of another algorithm": ("search", (("settings", "trial", "algorithm"), "peeling")),
    "another number of trials": ("search", (("settings", "trials"), 9.0)),
    "coordinates of another model": ("federated dp-ight", (("settings", "coordinates"), 5)),
    "another randomiser": ("local, priv-unit", (("settings", "clip"), 7.0)),
    "columns that nobody reported": ("local, sampled-signs", (("n_features",), 50)),
    "columns that the bounds deny": ("dp-ight", (("n_features",), 600)),
    "other rows": ("dp-ight", (("n_samples",), 24)),
    "many more rows": ("dp-ight", (("n_samples",), 24000)),
    # releases and their answers
    "more answers than paid for": ("dp-ight", ((*ANSWER, "count"), times(3))),
    "fewer answers than rounds": ("dp-ight", ((*ANSWER, "count"), 1)),
    "no answers at all": ("dp-ight", (ANSWERS, [])),
    "no releases": ("dp-ight", (("releases",), [])),
    "a release less": ("peeling", (("releases", 1), GONE)),
    "a release twice": ("peeling", (("releases",), lambda listed: [*listed, listed[0]])),
    "a release of another question": ("dp-ight", ((*FIRST, "question"), "minimiser")),
    "an answer of nothing": ("dp-ight", ((*ANSWER, "count"), 0)),
    "half an answer": ("dp-ight", ((*ANSWER, "count"), 4.5)),
    "noise of no size": ("dp-ight", ((*ANSWER, "scale"), 0.0)),
    "noise below nothing": ("dp-ight", ((*ANSWER, "scale"), -1.0)),
    "noise of half the size": ("dp-ight", ((*ANSWER, "scale"), times(0.5))),
    "absurdly large noise": ("dp-ight", ((*ANSWER, "scale"), times(1e6))),
    "infinite noise": ("dp-ight", ((*ANSWER, "scale"), "inf")),
    "noise that is no number": ("dp-ight", ((*ANSWER, "scale"), "nan")),
    "hardened noise of twice the size": ("dp-ight, hardened", ((*ANSWER, "scale"), times(2))),
    "a multiplier that is cheaper": ("dp-ight", ((*RELEASE, "sd_per_sensitivity"), times(2))),
    "a report of more epsilon": ("local, sampled-signs", ((*RELEASE, "epsilon"), 4.0)),
    "a report of another dimension": ("local, priv-unit", ((*RELEASE, "dimension"), 60)),
    "fewer coordinates": ("federated dp-ight", ((*RELEASE, "touched"), 1)),
    "a filter that paid for too much": ("dp-agd", (("releases", 0, "release", "rho"), times(0.1))),
    "an objective that no row bends": ("two-stage", *CHEAPER, (("releases", 1, "release", "curvature_ratio"), 1e-9)),
    "an objective that rows bend less": (
        "objective-perturbation",
        *CHEAPER,
        ((*RELEASE, "curvature_ratio"), times(0.5)),
    ),
    "a minimiser under more noise": ("objective-perturbation", ((*RELEASE, "sd_per_tolerance"), times(100))),
    # epsilon and delta
    "less epsilon than it costs": ("dp-ight", (("epsilon",), 0.5), (("claimed_epsilon",), 0.5)),
    "less epsilon than was claimed": ("dp-ight", (("claimed_epsilon",), 8.0)),
    "more epsilon than was claimed": ("dp-ight", (("epsilon",), 3.0)),
    "no epsilon": ("dp-ight", (("epsilon",), None)),
    "a negative epsilon": ("ight", (("epsilon",), -1.0)),
    "another delta": ("dp-ight", (("delta",), 1e-3)),
    "a delta of one": ("dp-ight", (("delta",), 1.0)),
    "a delta below nothing": ("dp-ight", (("delta",), -1e-6)),
    "another composition": ("dp-ight", (("composition",), "epsilon=0.1 at delta=1e-06 by magic")),
    # types
    "epsilon as text": ("dp-ight", (("epsilon",), "1.0")),
    "epsilon as truth": ("dp-ight", (("epsilon",), True), (("claimed_epsilon",), True)),
    "delta as text": ("dp-ight", (("delta",), "1e-6")),
    "rows as text": ("dp-ight", (("n_samples",), "240")),
    "half a row": ("dp-ight", (("n_samples",), 240.5)),
    "columns as truth": ("dp-ight", (("n_features",), True)),
    "columns below one": ("dp-ight", (("n_features",), 0)),
    "an algorithm as a number": ("dp-ight", (("algorithm",), 7)),
    "notes as text": ("dp-ight", (("notes",), "nothing")),
    "notes of numbers": ("dp-ight", (("notes",), [1, 2])),
    "assumptions as text": ("dp-ight", (("assumptions",), "none")),
    "trust as text": ("dp-ight", (("trust",), "central")),
    "randomness as a number": ("dp-ight", (("randomness",), 4)),
    "versions of numbers": ("dp-ight", (("versions", "numpy"), 2)),
    "bounds as a list": ("dp-ight", (("bounds",), [1.0])),
    "a ledger of numbers": ("dp-ight", (("ledger",), {"dataset": 1, "entry": 2, "hash": 3})),
    "a clip as text": ("dp-ight", ((*ANSWER, "clip"), str)),
    "a scale as text": ("dp-ight", ((*ANSWER, "scale"), str)),
    "a multiplier as text": ("dp-ight", ((*RELEASE, "sd_per_sensitivity"), str)),
    "times as truth": ("output-perturbation", ((*RELEASE, "times"), True)),
    "a report's epsilon as truth": ("local, sampled-signs", ((*RELEASE, "epsilon"), True)),
    "a count as truth": ("output-perturbation", ((*ANSWER, "count"), True)),
    # names
    "an unknown field": ("dp-ight", (("comment",), "trust me")),
    "a field less": ("dp-ight", (("bounds",), GONE)),
    "an unknown field of a release": ("dp-ight", ((*FIRST, "comment"), "free of charge")),
    "an unknown field of an answer": ("dp-ight", ((*ANSWER, "comment"), "free of charge")),
    "an unknown kind of release": ("dp-ight", ((*RELEASE, "kind"), "FreeGradient")),
    "an unknown grade": ("dp-ight", (("grade",), "excellent")),
    "an unknown unit": ("dp-ight", (("unit",), "household")),
    "an unknown version": ("dp-ight", (("format",), "thresher-certificate-9")),
    # sums
    "a part's better grade": ("sum", (("grade",), "proved")),
    "a part's assumption left out": ("sum", (("assumptions",), [])),
    "a part's own grade": ("sum", (("settings", "parts", 1, "grade"), "proved")),
    "a part's own epsilon": ("sum", (("settings", "parts", 1, "epsilon"), 0.1)),
    "a part's own bounds": ("sum", (("settings", "parts", 1, "bounds", "row_norm"), 0.1)),
    "a part's own rounds": ("sum", (("settings", "parts", 1, "settings", "stages"), 1)),
    "a sum of other claims": ("sum", (("claimed_epsilon",), 0.5)),
    "a sum of other deltas": ("sum", (("delta",), 0.1)),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_that_contradicts_the_rest_is_refused(edit):
    name, *changes = EDITS[edit]
    record = record_of(name)
    assert verdict(record)
    changed = edited(record, *changes)
    assert json.dumps(changed) != json.dumps(record)  # True equals 1
    assert not verdict(changed)


@pytest.mark.parametrize("name", [*FITS, "sum"])
def test_every_honest_certificate_verifies_without_a_warning(name):
    check = Certificate.from_json(json.dumps(record_of(name))).verify()
    assert (check.ok, check.problems, check.warnings) == (True, (), ())


PRIVATE = [name for name in {**REGISTRY, **DENSE} if name not in ("ight", "storm", "sgd", "lssgd")]
NO_EXACT_SAMPLER = OF_ROWS_ONLY = ("two-stage", "objective-perturbation")
CERTIFIED_FOR_SO_MANY = ("output-perturbation", "dpsl-kt", *OF_ROWS_ONLY)  # rows, which add-remove does not know
COLUMNS = (1.0, 0.5, 2.0, 1.0, 0.25, 1.0)
FEW_ROUNDS = {"rrpsgd": RRPSGD(passes=1.0)}


@pytest.mark.parametrize("hardened", [False, True])
@pytest.mark.parametrize("groups", [None, PEOPLE], ids=["row", "person"])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("kind", ["numbers", "two classes", "three classes"])
@pytest.mark.parametrize("name", PRIVATE)
def test_every_algorithm_certifies_what_it_does(name, kind, adjacency, groups, hardened):
    if groups is not None and name in OF_ROWS_ONLY:
        pytest.skip("refused before a row is read")
    facts = {"adjacency": adjacency, "hardened": hardened, "groups": groups, "row_bound": 2.0, "feature_bound": COLUMNS}
    facts["n_public"] = None if adjacency == "replace-one" else N if groups is None else N // 2
    dense, algorithm = name in DENSE, FEW_ROUNDS.get(name, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "numbers":
            model = numbers(algorithm, DenseRegressor if dense else SparseRegressor, target_bound=(-1.0, 3.0), **facts)
        else:
            model = classes(algorithm, DenseClassifier if dense else SparseClassifier, kind, **facts)
    certificate = Certificate.from_json(model.certificate_.to_json())
    check = certificate.verify()
    assert (check.ok, check.problems, check.warnings) == (True, (), ())
    counted = adjacency == "add-remove" and name in CERTIFIED_FOR_SO_MANY
    proved = hardened and name not in NO_EXACT_SAMPLER and not counted
    assert certificate.grade == ("proved" if proved else "conditional")
    assert certificate.unit == ("row" if groups is None else "person")


def test_a_delta_that_may_publish_a_row_is_warned_of_and_holds():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check = numbers("dp-ight", delta=0.01).certificate_.verify()
    assert check
    assert any("is not below 1/n" in warning for warning in check.warnings)


class Stranger(DPIGHT):
    name = "stranger"


def test_an_algorithm_that_is_not_ours_holds_with_a_word_on_what_is_not_known():
    check = numbers(Stranger()).certificate_.verify()
    assert check
    assert any("'stranger' is not thresher's own" in warning for warning in check.warnings)


@pytest.mark.parametrize("name", ["pursuit", "pursuit of people", "federated dp-ight", "local, priv-unit"])
def test_what_is_protected_follows_from_the_unit(name):
    """A fit of rows must not say that it protects people."""
    certificate = fitted(name).certificate_
    protected = certificate.trust["protected"]
    if certificate.trust["model"] == "local":
        assert "each person, who reports once" in protected
    else:
        assert ("each person" in protected) == (certificate.unit == "person")
        assert ("each row by itself" in protected) == (certificate.unit == "row")
    assert "whole record" not in certificate.to_json()


@pytest.mark.parametrize(
    ("entry", "changed"),
    [(0, {"sd_per_sensitivity": 7e5}), (1, {"sd_per_sensitivity": 3e6}), (0, {"population": 10**30})],
)
def test_batches_of_sizes_far_apart_take_no_memory_to_look_at(entry, changed):
    """The grid of the narrowest loss has billions of points in the range of the widest."""
    record = record_of("dp-srm")
    record["releases"][entry]["release"] |= changed
    tracemalloc.start()
    assert not verdict(record)
    assert tracemalloc.get_traced_memory()[1] < 2**30
    tracemalloc.stop()


def test_picks_without_number_take_no_memory_to_look_at():
    """The exact composition takes a step for each."""
    record = record_of("pursuit")
    for entry in record["releases"]:
        if "picks" in entry["release"]:
            entry["release"]["picks"] = 10**7
    tracemalloc.start()
    assert not verdict(record)
    assert tracemalloc.get_traced_memory()[1] < 2**25
    tracemalloc.stop()
