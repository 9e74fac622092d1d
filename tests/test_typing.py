"""What a user's strict mypy knows of the public names."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import thresher
from thresher import algorithms
from thresher.algorithms import DENSE, LOCAL, REGISTRY, DenseName, LocalName, SparseName
from thresher.models.options import AdjacencyName
from thresher.privacy.budget import Adjacency

pytest.importorskip("mypy")

SCRIPT = """
import numpy as np

from thresher import PrivateScaler, PrivateSearchCV, SparseRegressor, __version__, combine, load_model

X, y = np.zeros((10, 2)), np.zeros(10)
model = SparseRegressor(2, epsilon=1.0, feature_bound=1.0, target_bound=2.0).fit(X, y)
"""
KNOWN = {
    "model": "thresher.models.sparse.SparseRegressor",
    "model.summary()": "thresher.report.summary.Summary",
    "model.summary().to_dict()": "dict[str, object]",
    "model.certificate_": "thresher.privacy.certificate.Certificate",
    "model.certificate_.verify().epsilon": "float",
    "model.plan(10, 2)": "thresher.privacy.plan.Plan",
    "model.plan_": "thresher.privacy.plan.Plan",
    "model.algorithm_": "str",
    "model.uncertainty_": "thresher.algorithms.uncertainty.Uncertainty | None",
    "load_model('model.json')": "thresher.models.linear.LinearModel",
    "load_model('model.json').predict(X)": "Any",
    "load_model('model.json').summary()": "thresher.report.summary.Summary",
    "load_model('model.json').certificate_": "thresher.privacy.certificate.Certificate",
    "PrivateSearchCV(model, {}).fit(X, y)": "thresher.models.search.PrivateSearchCV",
    "PrivateScaler().fit(X)": "thresher.models.scaler.PrivateScaler",
    "combine(model)": "thresher.privacy.certificate.Certificate",
    "__version__": "str",
}


def test_strict_mypy_knows_the_public_names_and_takes_no_wrong_argument(tmp_path):
    """Predictions are Any: arrays of NumPy for rows in memory, of Dask for rows that are not."""
    wrong = [
        'SparseRegressor(sparsity="ten")',
        'SparseRegressor(algorithm="purssuit")',
        "from thresher import SparseRegresor",
    ]
    lines = [*(f"reveal_type({expression})" for expression in KNOWN), *wrong]
    (tmp_path / "script.py").write_text(SCRIPT + "\n".join(lines) + "\n")
    source = Path(thresher.__file__).parents[1]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", "cache", "script.py"],
        cwd=tmp_path, env={**os.environ, "MYPYPATH": str(source)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    revealed = re.findall(r'note: Revealed type is "(.*)"', checked.stdout)
    assert dict(zip(KNOWN, revealed, strict=True)) == KNOWN
    argument, algorithm, name = re.findall(r"error: (.*)", checked.stdout)
    assert name.startswith('Module "thresher" has no attribute "SparseRegresor"')
    assert argument.startswith('Argument "sparsity" to "SparseRegressor" has incompatible type "str"')
    assert 'expected "int | None"' in argument
    assert algorithm.startswith('Argument "algorithm" to "SparseRegressor" has incompatible type')
    assert (source / "thresher" / "py.typed").exists()


def test_the_names_that_type_checkers_know_are_those_of_the_registries():
    assert (*REGISTRY,) == get_args(SparseName)[1:]
    assert (*DENSE,) == get_args(DenseName)[1:]
    assert (*LOCAL,) == get_args(LocalName)
    named = {kind.name for kinds in algorithms.FILES.values() for kind in map(vars(algorithms).get, kinds)}
    assert named - {*REGISTRY, *DENSE, *LOCAL} == {"rajkumar-agarwal"}  # it has no sound price, and so no name
    assert set(get_args(AdjacencyName)) == set(Adjacency)


USER = """
from pathlib import Path

import numpy as np
import numpy.typing as npt

from thresher import (
    Budget, DenseClassifier, DenseRegressor, Ledger, LocalSparseRegressor, PrivateScaler, PrivateSearchCV, Schema,
    SparseClassifier, SparseRegressor, combine, load_model,
)
from thresher.accounting import gaussian_mu, zcdp_rho
from thresher.algorithms import DPIGHT, DPSGD
from thresher.audit import audit, pairs
from thresher.federated import FederatedSparseRegressor
from thresher.planning import forecast


def table(rows: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    X: npt.NDArray[np.float64] = np.random.default_rng(0).uniform(-1, 1, (rows, 5))
    return X, X[:, 0]


X, y = table(1000)
ledger = Ledger("budget.db")
ledger.grant("patients", epsilon=10.0, delta=1e-5)
model = SparseRegressor(2, epsilon=1.0, feature_bound=1.0, target_bound=1.0, ledger=ledger, dataset="patients")
model.fit(X, y)
print(model.coef_.shape, model.intercept_, model.support_.tolist(), model.predict(X)[:3], model.score(X, y))
print(model.intervals(0.9), model.summary(), model.certificate_.verify().ok, model.plan_.epsilon, model.algorithm_)
print(model.plan(800, 5).releases)
model.report(Path("report.html"))
again = load_model("model.json")
print(again.predict(X), combine(model, again).epsilon)
classifier = SparseClassifier(2, feature_bound=1.0, classes=[0, 1], algorithm="peeling").fit(X, y > 0)
print(classifier.predict_proba(X), classifier.classes_, classifier.decision_function(X))
DenseRegressor(1.0, 1e-6, row_bound=1.0, target_bound=1.0, algorithm="dp-sgd").fit(X, y)
DenseClassifier(1.0, row_bound=1.0, classes=[0, 1], algorithm=DPSGD(passes=3))
SparseRegressor(2, feature_bound=[1.0, 2.0], target_bound=(0.0, 1.0), algorithm=DPIGHT(iterations=3))
print(PrivateScaler(1.0, 1e-6, feature_bound=4.0).fit(X).transform(X))
search = PrivateSearchCV(model, {"sparsity": [1, 2]}, epsilon=2.0).fit(X, y)
print(search.best_params_, search.best_score_, search.best_estimator_.coef_)
print(LocalSparseRegressor(2, 2.0, feature_bound=1.0, target_bound=1.0).fit(X, y).coef_)
SparseRegressor.from_schema(Schema.read("table.toml"), sparsity=3).fit("table.csv")
print(FederatedSparseRegressor(2, epsilon=3.0, feature_bound=1.0, target_bound=1.0).fit([(X, y), (X, y)]).coef_)
print(audit(DPIGHT(), pairs.one_rises(), claimed=(2.0, 0.01), runs=100).epsilon_lower)
print(ledger.spent("patients"), [entry.kind for entry in ledger.history("patients")])
print(gaussian_mu(1.0, 1e-5) + zcdp_rho(1.0, 1e-5), forecast(model, 1000, 5).predictions[0].error, Budget(1.0, 0.1))
"""


def test_strict_pyright_finds_nothing_to_say_of_a_users_script(tmp_path):
    """But for a name that no algorithm has, which it refuses."""
    pytest.importorskip("pyright")
    if shutil.which("node") is None:
        pytest.skip("pyright runs on Node.js, which is not installed")
    wrong = 'SparseRegressor(2, feature_bound=1.0, algorithm="purssuit")'
    (tmp_path / "script.py").write_text(USER)
    (tmp_path / "wrong.py").write_text(f"{USER}{wrong}\n")
    source = str(Path(thresher.__file__).parents[1])
    settings = {"typeCheckingMode": "strict", "extraPaths": [source], "pythonVersion": "3.11"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    checked = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    (found,) = json.loads(checked.stdout)["generalDiagnostics"]
    assert Path(found["file"]).name == "wrong.py"
    assert "purssuit" in found["message"]
