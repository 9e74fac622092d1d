"""What a user's strict mypy knows of the public names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import thresher
from thresher.algorithms import DENSE, REGISTRY
from thresher.models.options import AdjacencyName, DenseName, SparseName
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
    assert argument.startswith('Argument "sparsity" to "SparseRegressor" has incompatible type "str"; expected "int"')
    assert algorithm.startswith('Argument "algorithm" to "SparseRegressor" has incompatible type')
    assert (source / "thresher" / "py.typed").exists()


def test_the_names_that_type_checkers_know_are_those_of_the_registries():
    assert set(get_args(SparseName)) == {"auto", *REGISTRY}
    assert set(get_args(DenseName)) == set(DENSE)
    assert set(get_args(AdjacencyName)) == set(Adjacency)
