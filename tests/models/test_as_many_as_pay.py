"""sparsity=None: as many columns as pay for their noise, found for nothing, within a public cap."""

import json
import math

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from typer.testing import CliRunner

from thresher import SparseClassifier, SparseRegressor, load_model
from thresher.algorithms import REGISTRY
from thresher.algorithms.newton_path import NewtonPath
from thresher.cli.app import app
from thresher.planning import forecast

pytestmark = pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")

N, D = 20_000, 40


def regressor(sparsity=None, **options):
    facts = {"epsilon": 2.0, "feature_bound": 1.0, "target_bound": 8.0, "random_state": 0}
    return SparseRegressor(sparsity, **(facts | options))


def table(columns, n=N, d=D, seed=0):
    """Equally strong columns, the first ones."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, X[:, :columns].sum(axis=1) + rng.normal(0, 0.3, n)


def test_the_number_follows_from_the_answers_and_the_plan_does_not():
    """Whatever number of columns there is to find, as many and few more are kept, at one price."""
    plans, counts = [], []
    for columns in (2, 12, 30):
        X, y = table(columns)
        model = regressor().fit(X, y)
        assert set(range(columns)) <= set(model.support_)
        plans.append(model.plan_)
        counts.append(len(model.support_))
    assert plans[0] == plans[1] == plans[2] == regressor().plan(N, D)
    assert counts[0] < counts[1] < counts[2]
    assert counts[0] < 2 + 0.5 * (D - 2)  # of columns of noise, at most half


@pytest.mark.parametrize("columns", [3, 25])
def test_the_noise_that_columns_are_said_to_have_is_about_that_of_the_last_steps(columns, monkeypatch):
    """Before they are made: of the plan and the number of columns; what clips come out is not known yet."""
    found = {}

    def keep(values, hessian, free, most, noise, noise_of):
        found["said"] = noise_of(columns)
        return columns

    def shrink(path):
        found["is"] = 1 / math.fsum(step.weight for step in path.known)
        whole(path)

    whole = NewtonPath.shrink
    monkeypatch.setattr("thresher.algorithms.newton_path.as_many_as_pay", keep)
    monkeypatch.setattr("thresher.algorithms.newton_path.NewtonPath.shrink", shrink)
    model = regressor().fit(*table(columns))
    assert len(model.plan_.settings["stages"]) == 2
    assert 0.5 < found["said"] / found["is"] < 2


def test_more_columns_than_ten_are_worth_having():
    X, y = table(20)
    held = table(20, seed=1)
    assert regressor().fit(X, y).score(*held) > regressor(10).fit(X, y).score(*held) + 0.2


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_both_neighbours_and_both_kinds_of_rows(adjacency, form):
    X, y = table(3, n=3000)
    options = {"n_public": 3000} if adjacency == "add-remove" else {}
    model = regressor(adjacency=adjacency, **options).fit(form(X), y)
    assert {0, 1, 2} <= set(model.support_)
    assert model.certificate_.verify().ok


@pytest.mark.parametrize("classes", [2, 3])
def test_classes(classes):
    X, y = table(3, n=10_000)
    labels = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    model = SparseClassifier(None, epsilon=4.0, feature_bound=1.0, classes=range(classes), random_state=0)
    model.fit(X, labels)
    assert {0, 1, 2} <= set(model.support_)
    assert len(model.support_) < D
    assert model.score(X, labels) > 0.75


def test_the_certificate_and_the_plan_say_how_many_there_may_be():
    plan = regressor().plan(N, 80)
    assert "at most 50 columns are kept, as many as pay for their noise" in plan.notes
    model = regressor().fit(*table(3))
    assert f"at most {D} columns are kept, as many as pay for their noise" in model.certificate_.notes
    wide = regressor().plan(500, 5000)
    assert wide.algorithm == "newton"
    assert "at most 15 columns are kept, as many as pay for their noise" in wide.notes
    assert not any("as many as pay" in note for note in regressor(10).plan(N, 80).notes)


def test_it_is_a_parameter_like_others(tmp_path):
    model = clone(regressor())
    assert model.get_params()["sparsity"] is None
    assert SparseRegressor().get_params()["sparsity"] == 10
    X, y = table(3)
    model.fit(X, y).save(tmp_path / "model.json")
    read = load_model(tmp_path / "model.json")
    assert read.get_params()["sparsity"] is None
    np.testing.assert_array_equal(read.predict(X[:50]), model.predict(X[:50]))
    assert clone(read).fit(X, y).certificate_.verify().ok
    model.report(tmp_path / "report.html")
    assert "as many as pay for their noise" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("name", sorted(set(REGISTRY) - {"newton", "ight"}))
def test_who_cannot_tell_what_pays_refuses_and_names_the_remedy(name):
    with pytest.raises(
        ValueError, match=r"sparsity=None: .* give a number, such as sparsity=10, or take algorithm='newt"
    ):
        regressor(algorithm=name, epsilon=1.0).plan(N, D)


def test_predictions_need_a_number():
    with pytest.raises(ValueError, match=r"sparsity=None: .* set_params\(sparsity=10\)"):
        forecast(regressor(), 1000, 10, draws=3)


def test_a_table_with_one_column_and_one_without_anything_to_find():
    X, y = table(1, n=2000, d=1)
    assert regressor().fit(X, y).support_.tolist() == [0]
    X, _ = table(1, n=2000, d=5)
    model = regressor(epsilon=0.1).fit(X, np.zeros(2000))
    assert len(model.support_) <= 5
    assert np.abs(model.predict(X)).max() < 4


def thresher(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_the_command_line_calls_it_auto(tmp_path):
    X, y = table(3, n=2000, d=6)
    np.savetxt(tmp_path / "table.csv", np.column_stack([X, y]), delimiter=",", header="a,b,c,d,e,f,y", comments="")
    bounds = ["--feature-bound", 1, "--target-bound", 8, "--sparsity", "auto"]
    fitted = thresher("fit", tmp_path / "table.csv", "--target", "y", *bounds, "--out", tmp_path / "model.json")
    assert fitted.exit_code == 0, fitted.stderr
    assert json.loads((tmp_path / "model.json").read_text())["params"]["sparsity"] is None
    planned = thresher("plan", "--n", 2000, "--d", 6, *bounds, "--json")
    (record,) = json.loads(planned.stdout)
    assert record["algorithm"] == "newton"
    assert "at most 6 columns are kept, as many as pay for their noise" in record["notes"]
    assert "Not simulated: predictions are for a number" in " ".join(
        thresher("plan", "--n", 2000, "--d", 6, *bounds).stdout.split()
    )
    refused = thresher("fit", tmp_path / "table.csv", "--target", "y", *bounds, "--algorithm", "pursuit")
    assert (refused.exit_code, "cannot tell how many features pay" in refused.stderr) == (2, True)
    assert thresher("plan", "--n", 2000, "--d", 6, "--sparsity", "many").exit_code == 2
    assert thresher("plan", "--n", 2000, "--d", 6, "--sparsity", "3", "--no-simulate").exit_code == 0
