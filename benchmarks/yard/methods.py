"""What is compared: the library's front doors by name, and methods of the literature; each gives one score a fit."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from thresher import DenseClassifier, DenseRegressor, SparseClassifier, SparseRegressor
from thresher.algorithms import DENSE, REGISTRY, resolve
from yard.competitors import COMPETITORS, margins_of
from yard.encoded import Encoded
from yard.loading import DescribedTable
from yard.references import SPARSITY
from yard.scores import score
from yard.tables import TABLES

__all__ = ["DEFAULT", "METHODS", "OURS", "PAYING", "encoded_table", "fitted", "module_of", "one_score", "rows_of"]

DEFAULT = "auto"
PAYING = "as many as pay"
"""The default with sparsity=None."""
NOT_PRIVATE = {"ight", "storm", "sgd", "lssgd"}
TOO_SLOW = {"rrpsgd"}  # a round is one row, and there are as many rounds as rows
LEFT_OUT = NOT_PRIVATE | TOO_SLOW
SPARSE = (DEFAULT, *(name for name in REGISTRY if name not in LEFT_OUT))
DENSE_MODELS = {f"dense {name}": name for name in DENSE if name not in LEFT_OUT}

OURS = (*SPARSE, *DENSE_MODELS)
METHODS = (*OURS, *COMPETITORS, PAYING)
"""All that is compared, by name."""


def module_of(method: str) -> str:
    """The file that a front door's algorithm is in."""
    made = DENSE[DENSE_MODELS[method]]() if method in DENSE_MODELS else resolve(DEFAULT if method == PAYING else method)
    return type(made).__module__.rpartition(".")[2]


@lru_cache(maxsize=1)
def encoded_table(name: str) -> Encoded:
    """A table's rows, kept until another one is asked for."""
    return TABLES[name].encoded()


@lru_cache(maxsize=1)
def _frames(name: str) -> tuple[Any, Any]:
    """A described table's raw rows to fit, and those for scoring."""
    table = TABLES[name]
    assert isinstance(table, DescribedTable)
    frame = table.frame()
    test = table.test(frame)
    return frame[~test], frame[test]


def one_score(name: str, method: str, epsilon: float, seed: int) -> float:
    """The score of one private fit. Raises ValueError where the method does not take the table."""
    encoded = encoded_table(name)
    if method in COMPETITORS:
        return score(encoded, margins_of(COMPETITORS[method], encoded, epsilon, seed))
    model = fitted(name, method, epsilon, seed)
    _, held = rows_of(name)
    return score(encoded, _answer(model, encoded)(held))


def fitted(name: str, method: str, epsilon: float, seed: int) -> Any:
    """A front door's model of a table: of raw cells by its schema, or of the rows that it comes as."""
    table, encoded = TABLES[name], encoded_table(name)
    kind, options = _door(encoded, method)
    options |= {"epsilon": epsilon, "random_state": seed}
    rows, _ = rows_of(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of random_state, which makes a cell the same every time
        if isinstance(table, DescribedTable):
            return kind.from_schema(table.schema, **options).fit(rows)
        facts: dict[str, Any] = {"feature_bound": 1.0, "row_bound": encoded.row_bound}
        facts |= {"target_bound": encoded.target_bound} if encoded.kind == "numbers" else {"classes": encoded.classes}
        owners = None if encoded.groups is None else encoded.groups[~encoded.test]
        return kind(**options, **facts).fit(rows, encoded.y[~encoded.test], groups=owners)


def _door(encoded: Encoded, method: str) -> tuple[Any, dict[str, Any]]:
    is_number = encoded.kind == "numbers"
    if method in DENSE_MODELS:
        return (DenseRegressor if is_number else DenseClassifier), {"algorithm": DENSE_MODELS[method]}
    kind = SparseRegressor if is_number else SparseClassifier
    if method == PAYING:
        return kind, {"algorithm": DEFAULT, "sparsity": None}
    return kind, {"algorithm": method, "sparsity": min(SPARSITY, encoded.X.shape[1])}


def rows_of(name: str) -> tuple[Any, Any]:
    """Rows to fit and rows for scoring, as the front door takes them."""
    if isinstance(TABLES[name], DescribedTable):
        return _frames(name)
    encoded = encoded_table(name)
    return encoded.X[np.flatnonzero(~encoded.test)], encoded.X[np.flatnonzero(encoded.test)]


def _answer(model: Any, encoded: Encoded) -> Callable[[Any], Any]:
    """Margins of two classes, otherwise what the model predicts."""
    two = encoded.classes is not None and len(encoded.classes) == 2
    return model.decision_function if two else model.predict  # type: ignore[no-any-return]
