"""Differentially private sparse learning."""

from thresher.budget import Budget, BudgetExceeded, PrivacyWarning
from thresher.certificate import Certificate
from thresher.estimators import SparseClassifier, SparseRegressor, load_model

__all__ = [
    "Budget",
    "BudgetExceeded",
    "Certificate",
    "PrivacyWarning",
    "SparseClassifier",
    "SparseRegressor",
    "load_model",
]
