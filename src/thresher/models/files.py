"""Models read back from files."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from thresher.algorithms.uncertainty import Uncertainty
from thresher.data.schema import Schema
from thresher.data.schema.schema import READ_BY
from thresher.data.tables import MOST_COLUMNS
from thresher.models.classifier import ClassifierModel
from thresher.models.linear import KINDS, LinearModel, restore
from thresher.privacy.budget import is_whole
from thresher.privacy.certificate import Certificate, Verification
from thresher.privacy.model_hash import problems_of_model
from thresher.privacy.strict_json import read_record
from thresher.privacy.verification.statements import problems_of_fields

__all__ = ["load_model", "verify_file"]

Record = dict[str, Any]
"""A model as its file holds it."""

FRONT_DOORS = (
    "thresher.models.sparse", "thresher.models.dense", "thresher.local.estimators", "thresher.federated.estimators",
)  # fmt: skip
"""The modules that define models. Each takes its time to import, so none is before a file names a model of it."""

DAMAGED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""What reading fields raises that hold what none of ours holds; the last is of numbers beyond the largest float."""


def load_model(path: str | Path) -> LinearModel:
    """A model written by ``SparseRegressor.save``, ready to predict, with its certificate.

    A certificate that belongs to another model is refused, not warned of: what comes with it has none.

    Parameters
    ----------
    path : str or path
        The file. It is JSON, read strictly; nothing in it is run.

    Returns
    -------
    LinearModel
        Of the class that was saved, fitted: ``predict``, ``summary``, ``certificate_`` are there.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import SparseRegressor, load_model
    >>> X = np.random.default_rng(0).uniform(-1, 1, (1000, 5))
    >>> SparseRegressor(1, feature_bound=1.0, target_bound=1.0).fit(X, X[:, 0]).save("model.json")
    >>> model = load_model("model.json")
    >>> model.predict(X).shape, model.certificate_.verify().ok
    ((1000,), True)
    """
    try:
        model = read_record(path)
    except ValueError as error:
        raise ValueError(f"{path} is not a model file written by thresher's save(): {error}") from None
    if not isinstance(model, dict) or model.get("format") != "thresher-model-1":
        raise ValueError(f"{path} is not a model file written by thresher's save(); its 'format' is missing or unknown")
    if isinstance(model.get("class"), str) and not _is_defined(model["class"]):
        raise ValueError(
            f"{path} holds a model of the class {model['class']!r}, which nothing here defines: import its module "
            "first, if it is your own, or take a later version of thresher"
        )
    try:
        estimator = _read(model)
        problems = problems_of_fields(estimator.certificate_) or _problems_of(model, estimator.certificate_)
    except DAMAGED as error:
        raise ValueError(
            f"{path} is a damaged model file, or one of a later version: {type(error).__name__} {error}; take it from "
            "its source again"
        ) from None
    if problems:
        raise ValueError(f"{path}: {problems[0]}; take model and certificate from their source again")
    return estimator


def verify_file(path: str | Path) -> tuple[Certificate, Verification]:
    """The certificate in the file of a model, or in one of its own, and whether it holds, and for that model."""
    record = read_record(path)
    certificate = Certificate.of_record(record, path)
    check = certificate.verify()
    if "certificate" not in record:
        return certificate, check
    try:
        problems = _problems_of(record, certificate)
    except DAMAGED as error:
        problems = [f"the model beside the certificate is damaged: {type(error).__name__} {error}"]
    return certificate, replace(check, ok=check.ok and not problems, problems=(*check.problems, *problems))


def _read(model: Record) -> LinearModel:
    _check_params(model["params"], model["n_features"])
    estimator: Any = _kind(model["class"])(**{**model["params"], "epsilon": float(model["params"]["epsilon"])})
    values = np.atleast_2d(np.asarray(model["coefficients"], dtype=np.float64))
    coefficients = np.zeros((len(values), model["n_features"]))
    coefficients[:, model["support"]] = values
    intercepts = np.atleast_1d(np.asarray(model["intercept"], dtype=np.float64))
    told = model.get("uncertainty")  # absent from files of earlier versions
    published: dict[str, object] = {"uncertainty_": None if told is None else Uncertainty.from_dict(told)}
    published["why_no_intervals_"] = model.get("why_no_intervals")
    restore(estimator, coefficients, intercepts, {name: each for name, each in published.items() if each is not None})
    if estimator.schema is None and model["feature_names"]:
        estimator.feature_names_in_ = np.array(model["feature_names"], dtype=object)
    if isinstance(estimator, ClassifierModel):
        estimator.classes_ = np.array(model["classes"])
        if estimator.classes_.shape != (max(2, len(values)),):
            raise ValueError("classes are not one label for each class")
    estimator.certificate_ = Certificate.from_dict(model["certificate"])
    estimator.algorithm_ = model["params"]["algorithm"]
    return estimator  # type: ignore[no-any-return]


def _is_defined(name: str) -> bool:
    for module in FRONT_DOORS:
        if name in KINDS:
            break
        import_module(module)
    return name in KINDS


def _kind(name: str) -> type[LinearModel]:
    if not _is_defined(name):
        raise LookupError(f"no class here has the name {name!r}")
    return KINDS[name]


def _problems_of(model: Record, certificate: Certificate) -> list[str]:
    """Why the certificate is not that of the model in a file: its numbers, or what is made of them, are others."""
    return [*problems_of_model(model, certificate), *_problems_of_task(model), *_problems_of_schema(model, certificate)]


def _problems_of_task(model: Record) -> list[str]:
    if issubclass(_kind(model["class"]), ClassifierModel) == bool(model["classes"]):
        return []
    return [f"class {model['class']!r} and its classes are of two models: one predicts numbers, one predicts labels"]


def _problems_of_schema(model: Record, certificate: Certificate) -> list[str]:
    """By its schema a model reads a table: with another it would take other columns, or other numbers in them."""
    _check_params(model["params"], model["n_features"])
    given = model["params"].get("schema")
    if given is None:
        told = [note for note in certificate.notes if note.startswith(READ_BY)]
        return ["its schema was left out"] if told else []
    schema = Schema.of(given)
    names = schema.encoding(centred=bool(model["params"]["fit_intercept"])).names
    if schema.read_by not in certificate.notes or list(names) != model["feature_names"]:
        return ["its schema is not the one that the certificate tells of"]
    return []


def _check_params(params: Record, columns: int) -> None:
    """A file of a stranger opens no other file, and takes no more room than a model needs."""
    if not isinstance(params.get("schema"), dict | None):
        raise ValueError("its schema is no table but something else, such as the name of a file")
    if not is_whole(columns) or not 1 <= columns <= MOST_COLUMNS:
        raise ValueError(f"n_features is not a whole number from 1 to {MOST_COLUMNS}")
