"""Parties that cannot share rows, one model, one copy of noise."""

from thresher.federated.estimators import (
    FederatedDenseClassifier,
    FederatedDenseRegressor,
    FederatedSparseClassifier,
    FederatedSparseRegressor,
)

__all__ = [
    "FederatedDenseClassifier",
    "FederatedDenseRegressor",
    "FederatedSparseClassifier",
    "FederatedSparseRegressor",
]
