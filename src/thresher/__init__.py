"""Differentially private sparse learning."""

from thresher.budget import Budget, BudgetExceeded, PrivacyWarning
from thresher.certificate import Certificate
from thresher.erm_estimators import ERMClassifier, ERMRegressor
from thresher.estimators import SparseClassifier, SparseRegressor
from thresher.ledger import Ledger
from thresher.loading import load_model
from thresher.local_estimators import LocalSparseClassifier, LocalSparseRegressor
from thresher.schema import Schema
from thresher.tuning import PrivateSearchCV

__all__ = [
    "Budget",
    "BudgetExceeded",
    "Certificate",
    "ERMClassifier",
    "ERMRegressor",
    "Ledger",
    "LocalSparseClassifier",
    "LocalSparseRegressor",
    "PrivacyWarning",
    "PrivateSearchCV",
    "Schema",
    "SparseClassifier",
    "SparseRegressor",
    "load_model",
]
