"""Finished cells are kept, interrupted runs go on, and an edited experiment starts anew."""

import json
from pathlib import Path

import pytest

from thresher_papers.experiments.experiment import Experiment, Verdict
from thresher_papers.experiments.runner import run_experiment


def counted(folder, seed, fail=False):
    if fail:
        raise RuntimeError("stopped here")
    log = Path(folder)
    log.mkdir(exist_ok=True)
    (log / f"{seed}-{runs(log)}").write_text("")
    return [{"seed": seed, "value": seed * 1.5}]


def experiment(run=counted):
    return Experiment("x0", "", "", "", "", lambda quick: [], run, lambda rows: [Verdict("fine", True)])


def cells(folder, *seeds, **more):
    return [{"folder": str(folder), "seed": seed, **more} for seed in seeds]


def runs(folder):
    return len(list(folder.iterdir())) if folder.exists() else 0


def test_rows_come_in_the_order_of_the_cells_whatever_finishes_first(tmp_path):
    rows, seconds = run_experiment(experiment(), cells(tmp_path / "log", 3, 1, 2), tmp_path / "kept", jobs=2)
    assert [row["seed"] for row in rows] == [3, 1, 2]
    assert seconds > 0


def test_processes_that_were_started_in_another_folder_find_the_cells(tmp_path, monkeypatch):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        rows, _ = run_experiment(experiment(), cells(tmp_path / "log", 3, 1), Path("kept"), jobs=2)
        assert [row["seed"] for row in rows] == [3, 1]
        assert len(list(Path("kept").iterdir())) == 2


def test_what_is_finished_is_not_run_again(tmp_path):
    log, kept = tmp_path / "log", tmp_path / "kept"
    first, _ = run_experiment(experiment(), cells(log, 0, 1), kept, jobs=1)
    again, _ = run_experiment(experiment(), cells(log, 0, 1, 2), kept, jobs=1)
    assert runs(log) == 3
    assert again[:2] == first


def test_a_run_that_broke_down_keeps_what_it_had(tmp_path):
    log, kept = tmp_path / "log", tmp_path / "kept"
    broken = [*cells(log, 0, 1), *cells(log, 2, fail=True)]
    with pytest.raises(RuntimeError, match="stopped here"):
        run_experiment(experiment(), broken, kept, jobs=1)
    run_experiment(experiment(), cells(log, 0, 1), kept, jobs=1)
    assert runs(log) == 2
    assert not list(kept.glob("*.part"))


def test_a_cell_with_other_settings_is_another_cell(tmp_path):
    log, kept = tmp_path / "log", tmp_path / "kept"
    run_experiment(experiment(), cells(log, 0), kept, jobs=1)
    run_experiment(experiment(), cells(log, 0, fail=False), kept, jobs=1)
    assert runs(log) == 2


def test_an_edited_experiment_starts_anew(tmp_path, monkeypatch):
    log, kept = tmp_path / "log", tmp_path / "kept"
    source = tmp_path / "source.py"
    monkeypatch.setattr("thresher_papers.experiments.runner.inspect.getfile", lambda run: str(source))
    for text in ("first", "first", "edited"):
        source.write_text(text)
        run_experiment(experiment(), cells(log, 0), kept, jobs=1)
    assert runs(log) == 2


def test_kept_cells_say_what_they_are(tmp_path):
    run_experiment(experiment(), cells(tmp_path / "log", 7), tmp_path / "kept", jobs=1)
    (file,) = (tmp_path / "kept").glob("*.json")
    record = json.loads(file.read_text())
    assert record["cell"]["seed"] == 7
    assert record["rows"] == [{"seed": 7, "value": 10.5}]
