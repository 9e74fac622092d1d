"""Models read back from files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from thresher.certificate import Certificate
from thresher.erm_estimators import ERMClassifier, ERMRegressor
from thresher.estimators import SparseClassifier, SparseRegressor
from thresher.federated import (
    FederatedERMClassifier,
    FederatedERMRegressor,
    FederatedSparseClassifier,
    FederatedSparseRegressor,
)
from thresher.local_estimators import LocalSparseClassifier, LocalSparseRegressor
from thresher.models import LinearModel
from thresher.schema import Schema
from thresher.uncertainty import Uncertainty

__all__ = ["load_model"]

KINDS = {
    cls.__name__: cls
    for cls in (
        SparseRegressor, SparseClassifier, ERMRegressor, ERMClassifier, LocalSparseRegressor, LocalSparseClassifier,
        FederatedSparseRegressor, FederatedSparseClassifier, FederatedERMRegressor, FederatedERMClassifier,
    )
}  # fmt: skip


def load_model(path: str | Path) -> LinearModel:
    """A model written by ``SparseRegressor.save``, ready to predict, with its certificate."""
    try:
        model = json.loads(Path(path).read_text())
    except (json.JSONDecodeError, UnicodeDecodeError):
        model = None
    if not isinstance(model, dict) or model.get("format") != "thresher-model-1":
        raise ValueError(f"{path} is not a model file written by thresher's save(); its 'format' is missing or unknown")
    try:
        return _read(model)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"{path} is a damaged model file, or one of a later version: {type(error).__name__} {error}; take it from "
            "its source again"
        ) from None


def _read(model: dict[str, Any]) -> LinearModel:
    estimator: Any = KINDS[model["class"]](**{**model["params"], "epsilon": float(model["params"]["epsilon"])})
    values = np.atleast_2d(np.asarray(model["coefficients"], dtype=np.float64))
    coefficients = np.zeros((len(values), model["n_features"]))
    coefficients[:, model["support"]] = values
    estimator._store(coefficients, np.atleast_1d(np.asarray(model["intercept"], dtype=np.float64)))
    estimator.n_features_in_ = model["n_features"]
    if estimator.schema is not None:
        estimator.schema_ = Schema.of(estimator.schema)
        estimator._name_columns()
    elif model["feature_names"]:
        estimator.feature_names_in_ = np.array(model["feature_names"], dtype=object)
    if model["classes"]:
        estimator.classes_ = np.array(model["classes"])
    estimator.certificate_ = Certificate.from_dict(model["certificate"])
    if model.get("uncertainty") is not None:  # absent from files of earlier versions
        estimator.uncertainty_, estimator._published = Uncertainty.from_dict(model["uncertainty"]), ["uncertainty_"]
    estimator.algorithm_ = model["params"]["algorithm"]
    return estimator  # type: ignore[no-any-return]
