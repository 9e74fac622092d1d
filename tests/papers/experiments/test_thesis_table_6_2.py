"""Table 6.2: sums are timed and counted, and the verdicts follow the rows."""

import pytest
from typer.testing import CliRunner

from thresher.cli.app import app
from thresher.federated.spu import VARIABLE
from thresher_papers.command import show_outcome
from thresher_papers.experiments import thesis_table_6_2
from thresher_papers.experiments.experiment import Grid, Note, Verdict
from thresher_papers.experiments.thesis_table_6_2 import ALONE, BACKENDS, EXPERIMENT, FLOOR, MPYC, PRINTED, SPU, run
from thresher_papers.page import Outcome


def test_sums_are_timed_and_their_bytes_counted():
    rows = run([FLOOR, MPYC], times=1)
    assert [(row["back-end"], row["data"]) for row in rows] == [(name, d) for name in (FLOOR, MPYC) for d in PRINTED]
    assert all(row["seconds"] > 0 for row in rows)
    sent = {row["features"]: row["megabytes"] for row in rows if row["back-end"] == MPYC}
    assert 0 < sent[95] < sent[104] < sent[122]
    assert all(row["megabytes"] is None for row in rows if row["back-end"] == FLOOR)


def some_rows(names=(FLOOR, MPYC, ALONE), **changes):
    """A second for sums with noise, a hundredth without it; as many megabytes for each hundred features."""
    return [
        {"back-end": name, "who": "3 parties", "data": data, "features": printed["features"], "coins": 289,
         "seed": seed, "seconds": 0.01 if name == ALONE else 1.0, "cores": 2,
         "megabytes": None if name == FLOOR else printed["features"] / (1e4 if name == ALONE else 1e2),
         **(changes if name == MPYC else {})}
        for name in names for data, printed in PRINTED.items() for seed in range(3)
    ]  # fmt: skip


def verdicts(rows):
    return [part.holds for part in EXPERIMENT.show(rows) if isinstance(part, Verdict)]


@pytest.mark.parametrize(
    ("change", "fails"),
    [
        ({"seconds": 23.0}, {0}),
        ({"megabytes": 1000.0}, {0, 1}),  # whatever the length
        ({"megabytes": 0.1}, {1, 2}),
    ],
)
def test_each_verdict_falls_with_the_number_it_is_about(change, fails):
    assert verdicts(some_rows()) == [True] * 3
    assert verdicts(some_rows(**change)) == [at not in fails for at in range(3)]


def test_the_table_has_every_back_end_and_set_beside_the_printed_ones():
    (grid,) = (part for part in EXPERIMENT.show(some_rows()) if isinstance(part, Grid))
    assert [line[0] for line in grid.rows] == ["Yao's circuits, as printed", "DualEx, as printed", FLOOR, MPYC, ALONE]
    assert {len(line) for line in grid.rows} == {len(grid.columns)} == {3 + len(PRINTED)}


@pytest.mark.parametrize("there", [True, False])
def test_spu_is_run_where_it_is_and_missed_where_it_is_not(monkeypatch, there):
    if there:
        monkeypatch.setenv(VARIABLE, "python")
    else:
        monkeypatch.delenv(VARIABLE, raising=False)
    (cell,) = EXPERIMENT.cells(True)
    assert cell["backends"] == [*BACKENDS, *(SPU if there else ())]
    (note,) = (part for part in EXPERIMENT.show(some_rows(cell["backends"])) if isinstance(part, Note))
    assert ("SPU was not run" in note.text) is not there


def test_the_terminal_names_the_extra_that_it_needs():
    """Brackets are marks of style to the terminal's printer."""
    printed = CliRunner().invoke(app, ["reproduce", "list"]).stdout
    assert "[mpc]" in printed


def test_the_remedy_for_a_missing_package_is_printed_whole(capsys):
    show_outcome(Outcome(EXPERIMENT, missing="run: pip install 'thresher[mpc]'"))
    assert "thresher[mpc]" in capsys.readouterr().out


def test_gates_are_printed_in_proportion_to_features():
    """About 391,600 each, as the text of the thesis says."""
    each = [printed["gates"] / printed["features"] for printed in thesis_table_6_2.PRINTED.values()]
    assert each == pytest.approx([391_600] * 3, rel=1e-3)
