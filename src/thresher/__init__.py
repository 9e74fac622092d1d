"""Differentially private sparse learning.

Names are imported when they are first used, so that what needs few of them, such as the command line, starts at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # type checkers and editors read this; NAMES_OF says the same to Python
    from thresher.data.schema import Schema
    from thresher.ledger import Ledger
    from thresher.local.estimators import LocalSparseClassifier, LocalSparseRegressor
    from thresher.models.dense import DenseClassifier, DenseRegressor
    from thresher.models.files import load_model
    from thresher.models.scaler import PrivateScaler
    from thresher.models.search import PrivateSearchCV
    from thresher.models.sparse import SparseClassifier, SparseRegressor
    from thresher.privacy.budget import Budget, BudgetExceeded
    from thresher.privacy.certificate import Certificate, combine
    from thresher.privacy.warnings import (
        FittedBefore,
        LargeDelta,
        NoiseDrowns,
        PrintedNoise,
        PrivacyOff,
        PrivacyWarning,
        ThresherWarning,
        Unsettled,
        UtilityWarning,
        WideRanges,
    )

    __version__: str

__all__ = [
    "Budget",
    "BudgetExceeded",
    "Certificate",
    "DenseClassifier",
    "DenseRegressor",
    "FittedBefore",
    "LargeDelta",
    "Ledger",
    "LocalSparseClassifier",
    "LocalSparseRegressor",
    "NoiseDrowns",
    "PrintedNoise",
    "PrivacyOff",
    "PrivacyWarning",
    "PrivateScaler",
    "PrivateSearchCV",
    "Schema",
    "SparseClassifier",
    "SparseRegressor",
    "ThresherWarning",
    "Unsettled",
    "UtilityWarning",
    "WideRanges",
    "__version__",
    "combine",
    "load_model",
]

NAMES_OF = {
    "data.schema": ("Schema",),
    "ledger": ("Ledger",),
    "local.estimators": ("LocalSparseClassifier", "LocalSparseRegressor"),
    "models.dense": ("DenseClassifier", "DenseRegressor"),
    "models.files": ("load_model",),
    "models.scaler": ("PrivateScaler",),
    "models.search": ("PrivateSearchCV",),
    "models.sparse": ("SparseClassifier", "SparseRegressor"),
    "privacy.budget": ("Budget", "BudgetExceeded"),
    "privacy.certificate": ("Certificate", "combine"),
    "privacy.warnings": (
        "FittedBefore", "LargeDelta", "NoiseDrowns", "PrintedNoise", "PrivacyOff", "PrivacyWarning", "ThresherWarning",
        "Unsettled", "UtilityWarning", "WideRanges",
    ),
}  # fmt: skip
"""The public names by the module that defines them."""

ROOMS = ("accounting", "algorithms", "audit", "federated", "local", "planning")
"""Those that ``import thresher`` is enough for."""


if not TYPE_CHECKING:  # which would take every name for one of ours

    def __getattr__(name: str) -> Any:
        if name in ROOMS:
            return import_module(f"thresher.{name}")
        found = _installed_version() if name == "__version__" else _import_name(name)
        globals()[name] = found  # not asked again
        return found


def __dir__() -> list[str]:
    return [*__all__, *ROOMS]


def _import_name(name: str) -> Any:
    for module, names in NAMES_OF.items():
        if name in names:
            return getattr(import_module(f"thresher.{module}"), name)
    raise AttributeError(f"module 'thresher' has no attribute {name!r}")


def _installed_version() -> str:
    from importlib import metadata  # takes as long as all the rest

    return metadata.version("thresher")
