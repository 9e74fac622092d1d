"""What a prediction is worth, and what part of the possible a private model reaches."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score

from yard.encoded import Encoded

__all__ = ["NAMES", "score", "share", "trivial"]

NAMES = {"numbers": "R2", "two classes": "AUC", "more classes": "accuracy"}
"""How scores are called, by kind of table."""


def score(encoded: Encoded, predicted: Any) -> float:
    """Of the rows for scoring: R2 of numbers, clipped to their public bounds; AUC of margins; accuracy of labels."""
    y = encoded.y[encoded.test]
    if encoded.target_bound is not None:
        return float(r2_score(y, np.clip(predicted, *encoded.target_bound)))
    assert encoded.classes is not None
    if len(encoded.classes) == 2:
        return float(roc_auc_score(y == encoded.classes[1], predicted))
    return float(accuracy_score(y, predicted))


def trivial(encoded: Encoded) -> float:
    """The score of who knows no column: of the mean, of one margin for all, of the most common label."""
    fitted = encoded.y[~encoded.test]
    rows = int(encoded.test.sum())
    if encoded.kind == "numbers":
        return score(encoded, np.full(rows, fitted.mean()))
    labels, counts = np.unique(fitted, return_counts=True)
    return score(encoded, np.zeros(rows) if len(labels) == 2 else np.full(rows, labels[np.argmax(counts)]))


def share(found: Any, least: float, best: float) -> Any:
    """The part of the way from the trivial score to the best one."""
    return (np.asarray(found) - least) / (best - least)
