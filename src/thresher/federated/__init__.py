"""Parties that cannot share rows, one model, one copy of noise."""

from thresher.federated.estimators import (
    FederatedERMClassifier,
    FederatedERMRegressor,
    FederatedSparseClassifier,
    FederatedSparseRegressor,
)

__all__ = [
    "FederatedERMClassifier",
    "FederatedERMRegressor",
    "FederatedSparseClassifier",
    "FederatedSparseRegressor",
]
