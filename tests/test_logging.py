"""Nothing that is said tells of a row: not a log line, a warning, an error, or what stands on a terminal.

A planted number appears in its several spellings by a chance far below 1e-6: six digits of it must be met.
"""

from __future__ import annotations

import ast
import logging
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from typer.testing import CliRunner

import thresher
from planted_values import (
    BAD_PEOPLE,
    BAD_ROWS,
    BAD_TARGETS,
    NUMBER,
    ROWS,
    VALUES,
    WORD,
    D,
    N,
    X,
    everything_logged,
    everything_said,
    people,
    two,
    y,
)
from thresher import (
    DenseClassifier,
    DenseRegressor,
    Ledger,
    LocalSparseClassifier,
    LocalSparseRegressor,
    PrivateSearchCV,
    SparseClassifier,
    SparseRegressor,
)
from thresher.algorithms import DENSE, LOCAL, REGISTRY
from thresher.cli.app import app
from thresher.data.tables import without_counts
from thresher.federated import FederatedDenseClassifier, FederatedSparseRegressor
from thresher.federated.run import run_party
from thresher.federated.task import JointTask
from thresher.ledger import repeats
from thresher.models.scaler import PrivateScaler

ROOT = Path(thresher.__file__).parent
BOUNDED = {"feature_bound": 1.0}
NUMBERS = {**BOUNDED, "target_bound": 2.0}
NOT_PRIVATE = {"ight", "storm", "sgd", "lssgd"}
BY_ROWS = {"two-stage", "objective-perturbation"}  # not for people with several rows
labels = np.where(two, WORD, "common")


def epsilon(name):
    return math.inf if name in NOT_PRIVATE else 2.0


# -- the scan finds what it should ------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["{!r}", "{:g}", "{:e}", "{:.3g}", "{:.4g}", "{:,.0f}", "{:.0f}"])
def test_a_planted_number_would_be_noticed_in_any_spelling(form):
    def leak():
        logging.getLogger("somebody.else").debug("a cell: %s", form.format(NUMBER))

    assert VALUES.search(everything_said(leak)[0])


def test_a_value_in_the_arguments_or_the_cause_of_an_error_would_be_noticed():
    def leak():
        try:
            f"{WORD}\xe9".encode("latin-1").decode()
        except UnicodeDecodeError as error:
            raise ValueError("not UTF-8") from error

    assert VALUES.search(everything_said(leak)[0])
    assert ROWS.search(f"(shape=({N}, {D}))")


# -- fits -------------------------------------------------------------------------------------------------------


def all_fits():
    """Every algorithm there is, on rows with planted values."""
    for name in REGISTRY:
        numbers = SparseRegressor(2, epsilon=epsilon(name), algorithm=name, **NUMBERS)
        yield name, lambda m=numbers: m.fit(X, y)
        classes = SparseClassifier(2, epsilon=epsilon(name), algorithm=name, classes=["common", WORD], **BOUNDED)
        yield f"{name}, sparse, classes", lambda m=classes: m.fit(sparse.csr_array(X), labels)
        if name not in BY_ROWS:
            of_people = SparseRegressor(2, epsilon=epsilon(name), algorithm=name, **NUMBERS)
            yield f"{name}, people", lambda m=of_people: m.fit(X, y, groups=people)
    for name in DENSE:
        numbers = DenseRegressor(epsilon(name), algorithm=name, **NUMBERS)
        yield name, lambda m=numbers: m.fit(X, y)
        classes = DenseClassifier(epsilon(name), algorithm=name, **BOUNDED)
        yield f"{name}, classes", lambda m=classes: m.fit(X, labels)
    for name in LOCAL:
        numbers = LocalSparseRegressor(2, algorithm=name, **NUMBERS)
        yield name, lambda m=numbers: m.fit(X, y)
        if name != "label-lasso":
            classes = LocalSparseClassifier(2, algorithm=name, **BOUNDED)
            yield f"{name}, classes", lambda m=classes: m.fit(X, labels)
    parts = [(X[:100], y[:100]), (X[100:], y[100:])]
    yield "parties", lambda: FederatedSparseRegressor(2, **NUMBERS).fit(parts)
    yield (
        "printed",
        lambda: FederatedDenseClassifier(algorithm="rajkumar-agarwal", **BOUNDED).fit(
            [(X[:100], labels[:100]), (X[100:], labels[100:])]
        ),
    )
    search = PrivateSearchCV(SparseRegressor(2, **NUMBERS), {"sparsity": [1, 2]})
    yield "search", lambda: search.fit(X, y)
    yield "search, people", lambda: search.fit(X, y, groups=people)
    yield "scaler", lambda: PrivateScaler(epsilon=8.0, **BOUNDED).fit(X)
    hidden = SparseRegressor(2, adjacency="add-remove", n_public=200, **NUMBERS)
    yield "n_public", lambda: hidden.fit(X, y)


@pytest.mark.parametrize("fit", [pytest.param(fit, id=name) for name, fit in all_fits()])
def test_a_fit_says_nothing_about_its_rows(fit, request):
    said, failed = everything_said(fit)
    assert not failed
    assert "thresher.plan" in said
    assert "thresher.vault opened for " in said
    assert "thresher.certificate" in said
    assert not VALUES.search(said)
    if "people" in request.node.name or "n_public" in request.node.name:
        assert not ROWS.search(said)


def test_models_that_are_saved_paid_for_and_used_say_nothing_either(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.grant(WORD, 8.0, 1e-4)
    frame = pd.DataFrame(X, columns=list("abcd"))

    def work():
        model = SparseRegressor(2, ledger=ledger, dataset=WORD, **NUMBERS).fit(frame, y)
        model.save(tmp_path / "model.json")
        again = thresher.load_model(tmp_path / "model.json")
        again.predict(frame)
        again.summary()

    said, failed = everything_said(work)
    assert not failed
    assert re.search("thresher.ledger entry [0-9a-f]{32} reserved", said)
    assert re.search("thresher.ledger entry [0-9a-f]{32} settled", said)
    assert "thresher.model saved as model.json" in said
    assert str(tmp_path) not in said
    assert not VALUES.search(said)


# -- what is logged ---------------------------------------------------------------------------------------------


def logged(fit):
    with everything_logged() as log:
        fit()
    return [record for record in log.records if record.name.startswith("thresher")]


def test_the_steps_of_a_fit_are_logged_and_each_answer_at_debug():
    model = SparseRegressor(2, algorithm="dp-ight", epsilon=2.0, delta=1e-6, **NUMBERS)
    records = logged(lambda: model.fit(X, y))
    steps = [record.getMessage() for record in records if record.levelno == logging.INFO]
    releases = sum(release.times for release in model.plan_.releases)
    assert steps == [
        f"dp-ight, {releases} releases, epsilon {model.plan_.epsilon:.6g} of 2 at delta 1e-06, replace-one",
        f"opened for {N} rows with {D} columns",
        "dp-ight, epsilon 2.0 at delta 1e-06, grade proved",
    ]
    details = [record.getMessage() for record in records if record.levelno == logging.DEBUG]
    (release,) = model.plan_.releases
    noise = f"{releases} x gradient, gaussian noise of {release.multiplier:.6g} times the sensitivity"
    assert details == [noise, *(f"answer {at}: gradient" for at in range(1, releases + 1))]


def test_a_search_does_not_log_how_many_trials_it_made(monkeypatch):
    """One trial or five: the lines are the same."""
    from thresher.vaults.randomness import NoiseSource

    lines = []
    for trials in (1, 5):
        monkeypatch.setattr(NoiseSource, "trials", lambda self, expected, trials=trials: trials)
        search = PrivateSearchCV(SparseRegressor(2, **NUMBERS), {"sparsity": [1, 2]})
        lines.append([record.getMessage() for record in logged(lambda search=search: search.fit(X, y))])
    assert lines[0] == lines[1]
    assert len(lines[0]) == 4


def test_nothing_is_shown_unless_somebody_asks(capfd):
    """Not even by the handler of last resort, which shows warnings."""
    SparseRegressor(2, **NUMBERS).fit(X, y)
    assert capfd.readouterr() == ("", "")
    assert any(isinstance(handler, logging.NullHandler) for handler in logging.getLogger("thresher").handlers)


def test_one_file_logs_for_all():
    """clients.py sets the level of Dask's loggers, cli/errors.py shows the log, and a Flower party's own log, on its
    own machine, says why it has no answer."""

    def imports_logging(path):
        nodes = ast.walk(ast.parse(path.read_text()))
        modules = {getattr(node, "module", None) for node in nodes if isinstance(node, ast.ImportFrom)}
        nodes = ast.walk(ast.parse(path.read_text()))
        return "logging" in modules | {a.name for node in nodes if isinstance(node, ast.Import) for a in node.names}

    assert {str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py") if imports_logging(path)} == {
        "privacy/logs.py", "cli/errors.py", "data/dask.py", "federated/flower.py",
    }  # fmt: skip


# -- errors -----------------------------------------------------------------------------------------------------

MODELS = {
    "numbers": (lambda: SparseRegressor(2, **NUMBERS), y),
    "classes": (lambda: SparseClassifier(2, **BOUNDED), two),
    "declared classes": (lambda: SparseClassifier(2, classes=["0", "1"], **BOUNDED), two.astype(str)),
    "dense": (lambda: DenseRegressor(**NUMBERS), y),
    "local": (lambda: LocalSparseRegressor(2, **NUMBERS), y),
    "labels": (lambda: LocalSparseClassifier(2, algorithm="label-ldp-iht"), two),
    "search": (lambda: PrivateSearchCV(SparseRegressor(2, **NUMBERS), {"sparsity": [1]}), y),
}


@pytest.mark.parametrize("bad", BAD_ROWS)
def test_no_bad_row_is_quoted(bad):
    """By a fit, by a fit of people, which tells no number of rows either, by predictions, and among parties."""
    rows = BAD_ROWS[bad]
    for make, target in MODELS.values():
        said, _ = everything_said(lambda make=make, target=target: make().fit(rows(), target))
        assert not VALUES.search(said)
    for make in (MODELS["numbers"][0], MODELS["search"][0]):
        said, _ = everything_said(lambda make=make: make().fit(rows(), y, groups=people))
        assert not VALUES.search(said)
        assert not ROWS.search(said)
    hidden = SparseRegressor(2, adjacency="add-remove", n_public=200, **NUMBERS)
    assert not ROWS.search(everything_said(lambda: hidden.fit(rows(), y))[0])
    scaler = PrivateScaler(epsilon=8.0, **BOUNDED).fit(X)
    model = MODELS["numbers"][0]().fit(X, y)
    for call in (
        lambda: scaler.transform(rows()),
        lambda: model.predict(rows()),
        lambda: FederatedSparseRegressor(2, **NUMBERS).fit([(X, y), (rows(), y)]),
    ):
        assert not VALUES.search(everything_said(call)[0])
    said, _ = everything_said(lambda: PrivateScaler(epsilon=8.0, **BOUNDED).fit(rows(), groups=people))
    assert not VALUES.search(said)
    assert not ROWS.search(said)


@pytest.mark.parametrize("bad", BAD_TARGETS)
def test_no_bad_target_is_quoted(bad):
    for name, (make, _) in MODELS.items():
        said, _ = everything_said(lambda make=make: make().fit(X, BAD_TARGETS[bad]()))
        assert not VALUES.search(said)
        if name in ("numbers", "classes", "declared classes", "search"):
            said, _ = everything_said(lambda make=make: make().fit(X, BAD_TARGETS[bad](), groups=people))
            assert not VALUES.search(said)
            assert not ROWS.search(said)


@pytest.mark.parametrize("bad", BAD_PEOPLE)
def test_no_bad_id_is_quoted_and_all_are_refused(bad):
    for make in (MODELS["numbers"][0], MODELS["search"][0]):
        said, refused = everything_said(lambda make=make: make().fit(X, y, groups=BAD_PEOPLE[bad]()))
        assert "ValueError: groups" in refused
        assert not VALUES.search(said)
        assert not ROWS.search(said)


def test_most_of_the_bad_input_is_refused():
    """So that the scans above have something to scan."""

    def refused(fits):
        return sum(everything_said(fit)[1] != "" for fit in fits)

    numbers, classes = SparseRegressor(2, **NUMBERS), SparseClassifier(2, classes=[0, 1], **BOUNDED)
    assert refused(lambda of=of: numbers.fit(of(), y) for of in BAD_ROWS.values()) >= len(BAD_ROWS) - 2
    assert refused(lambda of=of: classes.fit(X, of()) for of in BAD_TARGETS.values()) == len(BAD_TARGETS)


@pytest.mark.parametrize(
    ("message", "left"),
    [
        ("y should be a 1d array, got an array of shape (217, 2) instead.", "got an array of shape (rows, 2) instead."),
        (
            "Found array with 1 sample(s) (shape=(1, 3)) while a minimum of 2",
            "with too few sample(s) (shape=(rows, 3))",
        ),
        ("Found input variables with inconsistent numbers of samples: [217, 212]", "samples; give a target for each"),
        ("The detected shape was (217,) + inhomogeneous part.", "shape was (rows,) + inhomogeneous"),
    ],
)
def test_counts_of_rows_are_taken_out_of_a_message(message, left):
    assert left in without_counts(message)


# -- files ------------------------------------------------------------------------------------------------------

GOOD = ["a,b,c,y", *(f"{at / 300},{at * 7 % 300 / 300},{at * 13 % 300 / 300},{at % 3}" for at in range(N))]


def csv_with(line, encoding="utf-8"):
    return "\n".join([*GOOD[:50], line, *GOOD[50:]]).encode(encoding)


def parquet_with(values):
    return lambda path: pd.DataFrame({"a": np.arange(N) / N, "b": values, "y": np.arange(N) / N}).to_parquet(path)


def arrays(**of):
    return lambda path: np.savez(path, **of)


def written(content):
    return lambda path: path.write_bytes(content)


FILES = {
    "text.csv": written(csv_with(f"{NUMBER},{WORD},1,2")),
    "long.csv": written(csv_with(f"{NUMBER},2,1,2,{WORD}")),
    "latin.csv": written(csv_with(f"{NUMBER},{WORD}\xe9\xff,1,2", "latin-1")),
    "far_latin.csv": written(csv_with("1,1,1,1\n" * 5000 + f"{NUMBER},{WORD}\xe9\xff,1,2", "latin-1")),
    "utf16.csv": written(csv_with(f"{NUMBER},{WORD},1,2", "utf-16")),
    "quote.csv": written(csv_with(f'{NUMBER},"{WORD},1,2')),
    "huge.csv": written(b"a,b,c," + b"y" * 200_000 + b"\n1,2,3,4"),
    "header.csv": written("\n".join(GOOD[1:]).encode()),
    "target.csv": written(csv_with(f"1,1,1,{WORD}")),
    "missing.csv": written(csv_with(f"{NUMBER},,1,2")),
    "no_rows.csv": written(b"a,b,c,y\n"),
    "text.parquet": parquet_with([WORD] * N),
    "lists.parquet": parquet_with([[NUMBER]] * N),
    "bad.parquet": written(b"PAR1" + f"{NUMBER}{WORD}".encode() * 50 + b"PAR1"),
    "text.svm": written(f"1 1:{NUMBER} 2:{WORD}\n".encode() * 20),
    "label.svm": written(f"{WORD} 1:{NUMBER}\n".encode() * 20),
    "index.svm": written(f"1 99999999999999999999:3 2:{NUMBER}\n".encode() * 20),
    "objects.npz": arrays(X=np.array([[WORD, NUMBER]] * N, dtype=object), y=np.arange(N)),
    "text.npz": arrays(X=np.array([[WORD] * 2] * N), y=np.arange(N)),
    "column.npz": arrays(X=np.full(N, NUMBER), y=np.ones(N)),
    "bad.npz": written(b"PK\x03\x04" + f"{WORD}{NUMBER}".encode() * 9),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_no_bad_file_is_quoted_and_all_end_in_one_line(name, tmp_path, monkeypatch):
    """Nor is a byte of it: what a decoder says holds one, and its arguments hold thousands."""
    monkeypatch.chdir(tmp_path)
    FILES[name](tmp_path / name)
    target = ["--target", "y"] if name.endswith(("csv", "parquet")) else []
    bounds = ["--feature-bound", "1", "--target-bound", "4", "--sparsity", "2"]
    ended = CliRunner().invoke(app, ["-vv", "fit", name, *target, *bounds])
    assert ended.exit_code == 2
    assert isinstance(ended.exception, SystemExit)
    (line,) = ended.stderr.splitlines()
    assert line.startswith("thresher: ")
    assert not VALUES.search(ended.output)
    assert "0x" not in ended.output
    said, _ = everything_said(lambda: thresher.data.reading.table.read_table(name, "y" if target else None))
    assert not VALUES.search(said)


TASK = """
task = "regression"
target = "y"
features = ["a", "b", "c"]
sparsity = 2
epsilon = 1.0
delta = 1e-6
feature_bound = 1.0
target_bound = 2.0
"""
TASK += "".join(f'[[party]]\nname = "p{at}"\naddress = "127.0.0.1:{5000 + at}"\nrows = 6000\n' for at in range(3))


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith("csv")])
def test_no_bad_file_of_a_party_is_quoted(name, tmp_path):
    """It is read before anybody sits down with the others."""
    FILES[name](tmp_path / name)
    (tmp_path / "task.toml").write_text(TASK)
    task = JointTask.read(tmp_path / "task.toml")
    said, refused = everything_said(lambda: run_party(task, "p0", tmp_path / name, tmp_path / "run", join=None))
    assert "ValueError" in refused
    assert not VALUES.search(said)


# -- the command line -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("option", "shown"), [([], 0), (["-v"], 4), (["--verbose"], 4), (["-vv"], 24)])
def test_the_command_line_shows_the_log_on_request(option, shown, tmp_path, monkeypatch):
    (tmp_path / "table.csv").write_text("\n".join(GOOD))
    options = ["--target", "y", "--feature-bound", "1", "--target-bound", "4", "--sparsity", "2", "--json"]
    for _ in range(2):  # and not twice the second time
        monkeypatch.setattr(repeats, "MEMORY", repeats.FitMemory())  # a command is a process of its own
        ended = CliRunner().invoke(
            app,
            [*option, "fit", str(tmp_path / "table.csv"), *options, "--force", "--out", str(tmp_path / "model.json")],
        )
        assert ended.exit_code == 0, ended.output
        lines = ended.stderr.splitlines()
        assert all(re.match(r"\d\d:\d\d:\d\d thresher\.(plan|vault|certificate|model): ", line) for line in lines)
        assert len(lines) == shown if shown < 10 else len(lines) > 20
        assert ended.stdout.startswith("{")
