"""X14 and X18: a tiny training, and what rows show."""

from __future__ import annotations

import pytest

from thresher_papers.experiments import mnist_networks, thesis_figure_4_2, thesis_figure_5_5
from thresher_papers.experiments.experiment import Grid, Note, Verdict


def verdicts(parts):
    return [part.holds for part in parts if isinstance(part, Verdict)]


@pytest.fixture
def digits(monkeypatch):
    torch = pytest.importorskip("torch")
    pytest.importorskip("opacus")
    torch.manual_seed(0)
    X, y = torch.randn(300, 1, 28, 28), torch.randint(0, 10, (300,))
    found = {"X": X, "y": y, "X_test": X[:100], "y_test": y[:100]}
    monkeypatch.setattr(mnist_networks, "_digits", lambda: found)
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")
@pytest.mark.parametrize("method", thesis_figure_4_2.ALGORITHMS)
def test_a_training_keeps_its_budget_and_is_repeatable(digits, method):
    (row,) = thesis_figure_4_2.run(method, 3.0, 200, 0)
    assert 0 <= row["error"] <= 100
    assert 0 < row["real epsilon"] <= 3.0
    assert [row] == thesis_figure_4_2.run(method, 3.0, 200, 0)


def made_up_errors(quick, srm, sgd):
    errors = {"dp-srm": srm, "dp-sgd": sgd}
    return [
        {**cell, "error": errors[cell["method"]] + 0.001 * cell["seed"], "real epsilon": cell["epsilon"]}
        for cell in thesis_figure_4_2.cells(quick)
    ]


def test_verdicts_of_x14_follow_the_errors():
    assert verdicts(thesis_figure_4_2.show(made_up_errors(False, 2.0, 2.5))) == [True, True, True]
    assert verdicts(thesis_figure_4_2.show(made_up_errors(False, 2.5, 2.0))) == [True, False, True]
    assert verdicts(thesis_figure_4_2.show(made_up_errors(False, 4.0, 4.5))) == [False, True, True]


def test_a_quick_run_on_few_rows_is_not_held_against_the_print():
    parts = thesis_figure_4_2.show(made_up_errors(True, 9.0, 10.0))
    assert verdicts(parts) == [True, True]
    (note,) = [part for part in parts if isinstance(part, Note)]
    assert "6,000" in note.text


def made_up_accuracies(quick, **gains):
    return [
        {**cell, "accuracy": 80 + gains.get(cell["method"].replace("-", "_"), 0), "real epsilon": cell["epsilon"]}
        for cell in thesis_figure_5_5.cells(quick)
    ]


@pytest.mark.parametrize("quick", [True, False])
def test_verdicts_of_x18_follow_the_accuracies(quick):
    printed = made_up_accuracies(quick, dp_lssgd=3, dp_adam=4, dp_lsadam=5)
    assert verdicts(thesis_figure_5_5.show(printed)) == [True, True, True, True]
    other = made_up_accuracies(quick, dp_lssgd=-3, dp_adam=4, dp_lsadam=3)
    assert verdicts(thesis_figure_5_5.show(other)) == [False, False, False, True]
    (table,) = [part for part in thesis_figure_5_5.show(printed) if isinstance(part, Grid)]
    assert [row[0] for row in table.rows[:4]] == list(thesis_figure_5_5.METHODS)
