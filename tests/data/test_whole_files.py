"""Files are written as a whole or not at all, and commands overwrite none that they were not told to."""

import os
import resource
import stat
from contextlib import contextmanager

import numpy as np
import pytest
from typer.testing import CliRunner

from thresher import Ledger, SparseClassifier, SparseRegressor
from thresher.cli.app import app
from thresher.data.atomic_files import atomic_file, write_atomically

BOUNDS = ["--target", "stay", "--epsilon", "50", "--sparsity", "2", "--feature-bound", "1", "--target-bound", "0,1"]


@contextmanager
def full_disk(room):
    """No file may grow beyond ``room`` bytes, as on a disk that has no more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 3))
    return SparseRegressor(sparsity=1, epsilon=50.0, feature_bound=1.0, target_bound=1.0).fit(X, X[:, 0])


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).uniform(0, 1, (60, 3))
    lines = [",".join(map(str, row)) for row in X]
    (tmp_path / "t.csv").write_text("\n".join(["age,dose,stay", *lines]))
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.parametrize("write", ["save", "report"])
def test_a_full_disk_leaves_the_old_file(model, tmp_path, write):
    path = tmp_path / "model"
    path.write_text("the old one")
    with full_disk(1000), pytest.raises(OSError, match="large"):
        getattr(model, write)(path)
    assert path.read_text() == "the old one"
    assert os.listdir(tmp_path) == ["model"]


def test_what_fails_half_way_leaves_no_file(tmp_path):
    def stopped():
        with atomic_file(tmp_path / "new") as file:
            file.write("half of it")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert os.listdir(tmp_path) == []


def test_whoever_may_read_a_file_stays_and_links_are_followed(tmp_path):
    path, link = tmp_path / "private", tmp_path / "link"
    path.write_text("old")
    path.chmod(0o600)
    link.symlink_to(path)
    write_atomically(link, "new")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_device_is_written_to(model):
    model.save("/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["fit", "t.csv", *BOUNDS, "--out", "there"], "--out"),
        (["fit", "t.csv", *BOUNDS, "--out", "m.json", "--report", "there"], "--report"),
        (["fit", "t.csv", "--schema", "t.toml", "--out", "there"], "--out"),
        (["predict", "no.json", "t.csv", "--out", "there"], "--out"),
        (["demo", "--out", "there"], "--out"),
        (["demo", "--report", "there"], "--report"),
        (["audit", "pursuit", "--report", "there"], "--report"),
        (["plan", "--n", "100", "--d", "5", "--plot", "there.svg"], "--plot"),
        (["schema", "draft", "t.csv", "--target", "stay", "--out", "there"], "--out"),
        (["schema", "draft", "t.csv", "--target", "stay", "--epsilon", "1", "--out", "paid.toml"], "--out"),
        (["federate", "run", "no.toml", "t.csv", "--me", "a", "--folder", "f", "--out", "there"], "--out"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else None,
)
def test_nothing_is_overwritten_or_paid_unless_forced(table, monkeypatch, arguments, option):
    for door in (SparseRegressor, SparseClassifier):
        monkeypatch.setattr(door, "fit", None)  # whoever calls it is paying
    monkeypatch.setattr("thresher.estimates.draft.estimate", None)
    for name in ("there", "there.svg", "paid.certificate.json"):
        (table / name).write_text("mine")
    before = sorted(os.listdir(table))
    ended = run(*arguments)
    assert ended.exit_code == 2
    assert option in ended.stderr
    assert "exists" in ended.stderr
    assert "--force" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert sorted(os.listdir(table)) == before
    assert {(table / name).read_text() for name in ("there", "there.svg", "paid.certificate.json")} == {"mine"}


def test_force_overwrites(table):
    for name in ("m.json", "p.csv", "t.toml"):
        (table / name).write_text("mine")
    for arguments in (
        ["fit", "t.csv", *BOUNDS, "--out", "m.json", "--force"],
        ["predict", "m.json", "t.csv", "--out", "p.csv", "--force"],
        ["schema", "draft", "t.csv", "--target", "stay", "--force"],
    ):
        ended = run(*arguments)
        assert ended.exit_code == 0, ended.stderr
    assert (table / "p.csv").read_text().startswith("prediction")
    assert "[columns" in (table / "t.toml").read_text()


PAID = ["--epsilon", "0.5", "--delta", "1e-7", "--ledger", "b.db", "--dataset", "stays"]


@pytest.mark.parametrize("option", ["--out", "--report"])
@pytest.mark.parametrize(
    "place", ["t.csv", "t.toml", "b.db", "b.db.key", "b.db-journal", "b.db-wal", "link", "other.key"]
)
def test_what_a_fit_reads_or_pays_with_is_no_output_even_if_forced(table, monkeypatch, place, option):
    """A model in the place of the ledger would make all that was spent forgotten; of its key, unreadable."""
    if place == "other.key":
        monkeypatch.setenv("THRESHER_LEDGER_KEY", "other.key")
    ledger = Ledger("b.db")
    ledger.grant("stays", 1.0, 1e-6)
    (table / "t.toml").write_text("[columns]\n")
    (table / "link").symlink_to("b.db")
    before = {name: (table / name).read_bytes() for name in os.listdir(table)}
    reads = ["--schema", "t.toml"] if place == "t.toml" else BOUNDS
    outputs = [option, place] if option == "--out" else ["--out", "new.json", option, place]
    ended = run("fit", "t.csv", *reads, *PAID, *outputs, "--force")
    assert ended.exit_code == 2
    assert "reads, or that the ledger keeps" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert {name: (table / name).read_bytes() for name in os.listdir(table)} == before
    assert [entry.status for entry in ledger.history("stays")] == ["granted"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "m.json", "t.csv", "--out", "t.csv"],
        ["predict", "m.json", "t.csv", "--out", "m.json"],
        ["predict", "m.json", "parts", "--out", "parts/a.svm"],
        ["schema", "draft", "t.csv", "--target", "stay", "--out", "t.csv"],
        ["federate", "run", "m.json", "t.csv", "--me", "a", "--folder", "f", "--out", "t.csv"],
    ],
    ids=" ".join,
)
def test_no_command_overwrites_what_it_reads(table, model, arguments):
    model.save("m.json")
    (table / "parts").mkdir()
    (table / "parts" / "a.svm").write_text("1 1:1\n")
    before = {path: path.read_bytes() for path in table.rglob("*") if path.is_file()}
    ended = run(*arguments, "--force")
    assert ended.exit_code == 2
    assert "is a file that this command reads" in ended.stderr
    assert {path: path.read_bytes() for path in table.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("arguments", [["fit", "t.csv", *BOUNDS], ["predict", "m.json", "t.csv"], ["demo"]])
def test_a_circle_of_links_is_no_place_for_an_output(table, model, arguments):
    model.save("m.json")
    (table / "circle").symlink_to("circle")
    ended = run(*arguments, "--out", "circle", "--force")
    assert ended.exit_code == 2
    assert "cannot be written" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_two_outputs_have_two_places(table):
    ended = run("fit", "t.csv", *BOUNDS, "--out", "one", "--report", table / "one")
    assert ended.exit_code == 2
    assert "another file" in ended.stderr
    assert not (table / "one").exists()


def test_predictions_that_fail_half_way_leave_the_old_file(table, model, monkeypatch):
    model.save("m.json")
    (table / "p.csv").write_text("mine")
    monkeypatch.setattr("thresher.cli.commands.predict.write_csv", lambda file, pieces: file.write("half") and 1 / 0)
    assert run("predict", "m.json", "t.csv", "--out", "p.csv", "--force").exit_code == 2
    assert (table / "p.csv").read_text() == "mine"
