"""Differentially private sparse learning."""

from thresher.budget import Budget, BudgetExceeded
from thresher.certificate import Certificate
from thresher.erm_estimators import ERMClassifier, ERMRegressor
from thresher.estimators import SparseClassifier, SparseRegressor
from thresher.ledger import Ledger
from thresher.loading import load_model
from thresher.local_estimators import LocalSparseClassifier, LocalSparseRegressor
from thresher.schema import Schema
from thresher.tuning import PrivateSearchCV
from thresher.warnings import (
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

__all__ = [
    "Budget",
    "BudgetExceeded",
    "Certificate",
    "ERMClassifier",
    "ERMRegressor",
    "LargeDelta",
    "Ledger",
    "LocalSparseClassifier",
    "LocalSparseRegressor",
    "NoiseDrowns",
    "PrintedNoise",
    "PrivacyOff",
    "PrivacyWarning",
    "PrivateSearchCV",
    "Schema",
    "SparseClassifier",
    "SparseRegressor",
    "ThresherWarning",
    "Unsettled",
    "UtilityWarning",
    "WideRanges",
    "load_model",
]
