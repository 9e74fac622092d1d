"""What a user's strict mypy knows of the public names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import thresher

pytest.importorskip("mypy")

SCRIPT = """
import numpy as np

from thresher import PrivateSearchCV, SparseRegressor, load_model
from thresher.certificate import combine
from thresher.preprocessing import PrivateScaler

X, y = np.zeros((10, 2)), np.zeros(10)
model = SparseRegressor(2, epsilon=1.0, feature_bound=1.0, target_bound=2.0).fit(X, y)
"""
KNOWN = {
    "model": "thresher.estimators.SparseRegressor",
    "model.summary()": "thresher.summary.Summary",
    "model.summary().to_dict()": "dict[str, Any]",
    "model.certificate_": "thresher.certificate.Certificate",
    "model.certificate_.verify().epsilon": "float",
    "model.plan(10, 2)": "thresher.plan.Plan",
    "model.plan_": "thresher.plan.Plan",
    "model.algorithm_": "str",
    "model.uncertainty_": "thresher.uncertainty.Uncertainty | None",
    "load_model('model.json')": "thresher.models.LinearModel",
    "load_model('model.json').summary()": "thresher.summary.Summary",
    "load_model('model.json').certificate_": "thresher.certificate.Certificate",
    "PrivateSearchCV(model, {}).fit(X, y)": "thresher.tuning.PrivateSearchCV",
    "PrivateScaler().fit(X)": "thresher.preprocessing.PrivateScaler",
    "combine(model)": "thresher.certificate.Certificate",
}


def test_strict_mypy_knows_the_public_names_and_takes_no_wrong_argument(tmp_path):
    """Predictions are Any: arrays of NumPy for rows in memory, of Dask for rows that are not."""
    lines = [*(f"reveal_type({expression})" for expression in KNOWN), 'SparseRegressor(sparsity="ten")']
    (tmp_path / "script.py").write_text(SCRIPT + "\n".join(lines) + "\n")
    source = Path(thresher.__file__).parents[1]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", "cache", "script.py"],
        cwd=tmp_path, env={**os.environ, "MYPYPATH": str(source)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    revealed = re.findall(r'note: Revealed type is "(.*)"', checked.stdout)
    assert dict(zip(KNOWN, revealed, strict=True)) == KNOWN
    (error,) = re.findall(r"error: (.*)", checked.stdout)
    assert error.startswith('Argument "sparsity" to "SparseRegressor" has incompatible type "str"; expected "int"')
    assert (source / "thresher" / "py.typed").exists()
