"""One folder with page, figures and rows; what is missing is said; the page is built from the files."""

import json
import re

import pytest
from typer.testing import CliRunner

from thresher.cli.app import app
from thresher.report.charts import Chart, Series
from thresher_papers.experiments import NAMES, find_experiments, reproduce
from thresher_papers.experiments.errata import ERRATA
from thresher_papers.experiments.experiment import Experiment, Grid, Note, Verdict

pytest.importorskip("matplotlib")


def run(seed, factor):
    return [{"seed": seed, "value": factor * seed}]


def show(rows):
    values = [row["value"] for row in rows]
    return [
        Verdict(f"the largest is {max(values)}", max(values) > 1, ("E-5",)),
        Chart("values", "seed", "value", {"auto": Series(range(len(values)), values)}),
        Grid("all of them", ("seed", "value"), [(row["seed"], row["value"]) for row in rows]),
        Note("a <note> & more"),
    ]


def cells(quick):
    return [{"seed": 0, "factor": 0.1}] if quick else [{"seed": s, "factor": 0.7} for s in range(3)]


def experiment(**facts):
    facts = {"name": "x0", "title": "A title", "source": "A paper", "claim": "A claim.", "about": "A law.", **facts}
    return Experiment(**facts, cells=cells, run=run, show=show)


@pytest.fixture(autouse=True)
def found(monkeypatch):
    """What the names of a folder's record mean here: ``experiment`` for the made-up one."""
    monkeypatch.setattr(reproduce, "find_experiments", lambda names: [experiment()])


def test_the_folder_holds_page_figures_and_rows(tmp_path):
    told = []
    (outcome,) = reproduce.reproduce([experiment()], tmp_path, quick=False, jobs=1, tell=told.append)
    assert told == [outcome]
    assert reproduce.outcomes_in(tmp_path)[0] == [outcome]
    assert {"index.html", "results.md", "run.json", "x0.csv", "figures", "cells"} <= {
        p.name for p in tmp_path.iterdir()
    }
    html, markdown = ((tmp_path / name).read_text() for name in ("index.html", "results.md"))
    assert "a &lt;note&gt; &amp; more" in html
    for text in (html, markdown):
        assert "the largest is 1.4" in text
        assert "A claim." in text
        assert ERRATA["E-5"][:40] in text
    assert (tmp_path / "figures" / "x0-1.svg").read_text().startswith("<svg")
    assert "](figures/x0-1.svg)" in markdown
    assert html.count("<svg") == 1
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["experiments"]["x0"]["seeds"] == [0, 1, 2]


def test_a_second_run_reads_what_is_kept_and_writes_the_same_page(tmp_path):
    for _ in range(2):
        reproduce.reproduce([experiment()], tmp_path, quick=False, jobs=1)
        pages = (tmp_path / "index.html").read_text(), (tmp_path / "results.md").read_text()
    reproduce.reproduce([experiment()], tmp_path, quick=False, jobs=1)
    assert pages == ((tmp_path / "index.html").read_text(), (tmp_path / "results.md").read_text())


def test_quick_asks_for_less_and_its_verdict_is_its_own(tmp_path):
    (outcome,) = reproduce.reproduce([experiment()], tmp_path, quick=True, jobs=1)
    assert len(outcome.rows) == 1
    assert "Does not hold" in (tmp_path / "index.html").read_text()


@pytest.mark.parametrize(
    ("facts", "said"),
    [({"needs": ("e2006",)}, "put E2006.train and E2006.test"), ({"extra": "torch"}, "pip install 'thresher[torch]'")],
)
def test_what_is_missing_is_said_and_left_out(tmp_path, monkeypatch, facts, said):
    monkeypatch.setattr(reproduce.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("THRESHER_DATA", str(tmp_path))
    (outcome,) = reproduce.reproduce([experiment(**facts)], tmp_path, quick=True, jobs=1)
    assert said in outcome.missing
    assert not outcome.rows
    assert "Not run" in (tmp_path / "index.html").read_text()
    assert "Not run" in (tmp_path / "results.md").read_text()


# -- all experiments ------------------------------------------------------------------------------------------------

REQUIRED = [*range(1, 15), 17, 18, *range(20, 26)]


def test_every_table_and_figure_is_there():
    assert list(NAMES) == [f"x{number}" for number in REQUIRED]
    assert [each.name for each in find_experiments([])] == list(NAMES)


@pytest.mark.parametrize("each", find_experiments([]), ids=lambda each: each.name)
def test_experiments_say_where_they_stand_and_what_the_paper_claims(each):
    assert all((each.title, each.source, each.claim, each.about))
    assert re.search(r"(Figure|Table|section|appendix)", each.source)


def test_names_are_taken_in_any_case_and_unknown_ones_refused():
    assert [each.name for each in find_experiments(["X5", "x1"])] == ["x5", "x1"]
    with pytest.raises(ValueError, match=r"ID='x99' is no experiment; it must be one of x1, "):
        find_experiments(["x99"])


def test_errata_are_numbered_as_verdicts_cite_them():
    assert list(ERRATA) == [f"E-{number}" for number in range(1, 31)]


# -- the command ----------------------------------------------------------------------------------------------------


def test_the_command_lists_runs_and_refuses(tmp_path, monkeypatch):
    listed = CliRunner().invoke(app, ["reproduce", "list"])
    assert listed.exit_code == 0
    assert "x5" in listed.stdout
    monkeypatch.setattr("thresher_papers.experiments.find_experiments", lambda names: [experiment()])
    ran = CliRunner().invoke(app, ["reproduce", "x0", "--quick", "--jobs", "1", "--out", str(tmp_path / "new")])
    assert ran.exit_code == 0, ran.output
    assert "does not hold: the largest is 0" in ran.stdout
    assert (tmp_path / "new" / "index.html").exists()
    (tmp_path / "file").write_text("")
    refused = CliRunner().invoke(app, ["reproduce", "x0", "--out", str(tmp_path / "file")])
    assert refused.exit_code == 2
    assert "is a file; give a folder" in refused.output
