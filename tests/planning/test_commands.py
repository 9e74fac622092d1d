"""thresher plan, run as a user runs it."""

import json
import sys

import pytest
from typer.testing import CliRunner

from thresher.algorithms import REGISTRY
from thresher.cli.app import app
from thresher.planning.forecast import PRIVATE

SMALL = ["--n", "400", "--d", "20", "--sparsity", "2", "--epsilon", "2", "--draws", "3"]


def plan(*arguments):
    return CliRunner().invoke(app, ["plan", *map(str, arguments)])


def shown(*arguments):
    ended = plan(*arguments)
    assert ended.exit_code == 0, ended.output
    return " ".join(ended.stdout.split())


def test_the_plain_call_shows_releases_predictions_and_a_verdict():
    text = shown(*SMALL)
    for name in PRIVATE[:3]:
        assert text.count(f" {name} ") >= 2  # its releases, and what they give
    assert "ight (not private)" in text
    assert "predicted from 3 synthetic tables of this shape" in text
    assert "Signal 0.8 (R^2 of the truth), in 2 features" in text
    assert "a single future run falls into it with a chance of 50% or more" in text
    assert "auto chose newton" in text
    assert "Noise over signal" in text
    assert "Yes, this can work, with" in text


def test_classes_show_accuracy_and_direction():
    text = shown(*SMALL, "--task", "classification", "--algorithm", "pursuit")
    assert "direction" in text
    assert "accuracy" in text
    assert "the best rule is right in 86% of rows" in text


def test_no_simulate_is_the_old_quick_output(monkeypatch):
    monkeypatch.setattr("thresher.planning.simulate.Simulation.run", None)
    text = shown("--n", 800, "--d", 1000, "--no-simulate")
    assert "auto chose pursuit" in text
    assert "predicted" not in text
    (first, *_) = json.loads(plan("--n", 800, "--d", 1000, "--no-simulate", "--json").stdout)
    assert "forecast" not in first


def test_json_has_everything():
    ended = plan(*SMALL, "--json", "--epsilons", "1,4", "--reach", "0.5", "--algorithm", "pursuit,peeling")
    records = json.loads(ended.stdout)
    assert [each["algorithm"] for each in records] == ["pursuit", "peeling"]
    for each in records:
        predictions = each["forecast"]["predictions"]
        assert [at["epsilon"] for at in predictions if at["algorithm"] == each["algorithm"]] == [2.0, 1.0, 4.0]
        assert [need["over"] for need in each["reach"]] == ["epsilon", "rows"]
        assert each["verdict"]["answer"] in ("yes", "perhaps")
        assert each["releases"]


def test_sweeps_are_tables():
    text = shown(*SMALL, "--epsilons", "0.5,8", "--rows", "100,1600", "--algorithm", "auto")
    assert "mean error (features found) on 400 rows, by epsilon" in text
    assert "mean error (features found) at epsilon 2, by rows" in text
    assert "1600" in text


def test_reach_says_how_much_epsilon_and_how_many_rows():
    text = shown(*SMALL, "--reach", "0.5", "--algorithm", "pursuit")
    assert "needed for a mean error of 0.5" in text
    assert "epsilon on 400 rows" in text
    assert "rows at epsilon 2" in text


def test_where_nothing_works_it_says_so_and_what_would_help():
    text = shown("--n", 100, "--d", 50, "--sparsity", 3, "--epsilon", 0.2, "--draws", 5)
    assert "No: no private method can work here" in text
    assert "pursuit needs, in rows at this epsilon:" in text
    assert "pursuit needs, in epsilon on so many rows:" in text


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_the_plot_is_written(ending, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / f"plan.{ending}"
    assert f"Drawn: {path}" in " ".join(plan(*SMALL, "--plot", path, "--algorithm", "pursuit").stdout.split("\n"))
    assert path.stat().st_size > 5000


def test_a_large_table_is_not_simulated_and_it_says_why():
    text = shown("--n", 100_000, "--d", 2000)
    assert "Not simulated: 100000 x 2000 cells are more than the 25,000,000" in text
    assert "Noise over signal" in text


def test_many_classes_are_not_simulated_and_it_says_why():
    text = shown("--n", 1000, "--d", 20, "--task", "classification", "--classes", 5)
    assert "Not simulated: predictions are made for numbers and for two classes, not for 5." in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--signal", "1.2"], ("signal=1.2", "strictly between 0 and 1")),
        (["--reach", "1"], ("--reach=1", "strictly between 0 and 1")),
        (["--epsilons", "1,x"], ("--epsilons='1,x'", "positive numbers")),
        (["--epsilons", "0"], ("--epsilons='0'", "positive numbers")),
        (["--rows", "1.5"], ("--rows='1.5'", "positive whole numbers")),
        (["--rows", "1000,1000000000"], ("n=1000000000", "ask for fewer")),
        (["--draws", "2"], ("draws=2", "at least 3")),
        (["--algorithm", "magic"], ("--algorithm='magic'", "'pursuit'")),
        (["--algorithm", "ight"], ("--algorithm='ight'", "'pursuit'")),
        (["--algorithm", "dp-sgd"], ("--algorithm='dp-sgd'", "'pursuit'")),
        (["--plot", "plan.txt"], ("--plot='plan.txt'", ".svg")),
        (["--plot", "/nowhere/plan.svg"], ("--plot='/nowhere/plan.svg'", "cannot be written")),
        (["--plot", "plan.svg", "--rows", "100", "--epsilons", "1"], ("--plot draws one sweep", "not both")),
        (["--no-simulate", "--reach", "0.2"], ("--reach=0.2", "leave it out")),
        (["--task", "classification", "--classes", "4", "--rows", "9"], ("--rows=9", "two classes")),
        (["--sparsity", "21"], ("sparsity=21", "at most 20")),
        (["--epsilon", "-1"], ("epsilon=-1.0", "above 0")),
        (["--target-bound", "3", "--task", "classification"], ("--target-bound=3", "leave it out")),
    ],
)
def test_bad_input_is_one_line_before_anything_is_simulated(arguments, words, monkeypatch):
    monkeypatch.setattr("thresher.planning.simulate.Simulation._draw", None)
    ended = plan(*SMALL, *arguments)
    assert ended.exit_code == 2, ended.output
    assert len(ended.stderr.strip().splitlines()) == 1
    assert ended.stdout == ""
    for word in words:
        assert word in ended.stderr


def test_a_plot_without_matplotlib_is_one_clear_line(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    ended = plan(*SMALL, "--plot", tmp_path / "plan.svg")
    assert ended.exit_code == 2
    assert "needs matplotlib; run: pip install 'thresher[report]'" in ended.stderr


def test_every_algorithm_but_the_yardstick_is_planned():
    assert set(PRIVATE) == set(REGISTRY) - {"ight"}
