"""What is possible without privacy on the same columns: an l1 model with a cross-validated penalty, and one without.

Beside them, what few columns can do at all, so that it can be told what sparsity costs and what privacy does: the best
of the rest one after the other, by their correlation with what is left (orthogonal matching pursuit), refitted.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import Lasso, LassoCV, LinearRegression, LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, KFold
from sklearn.multiclass import OneVsRestClassifier

from yard.encoded import Encoded
from yard.scores import score

__all__ = ["SPARSITY", "best_scores"]

SPARSITY = 10  # columns, or fewer where a table has fewer

CHOSEN_ON = 20_000  # rows: with more, the penalty is chosen on so many of them
STRENGTHS = tuple(10.0**k for k in np.arange(-1.5, 2.1, 0.5))  # of logistic regression: 1/penalty, for CHOSEN_ON rows
FOLDS = 3


def best_scores(encoded: Encoded) -> dict[str, float]:
    """The scores of the models; without a penalty only where there are twice as many rows as columns. Also the
    processor's seconds of the first with its search."""
    n, d = int((~encoded.test).sum()), encoded.X.shape[1]
    penalised = _lasso if encoded.kind == "numbers" else _l1_logistic
    start = time.process_time()
    found = {"l1": score(encoded, penalised(encoded)), "seconds": time.process_time() - start}
    if n >= 2 * d:
        plain = _least_squares if encoded.kind == "numbers" else _logistic
        found["no penalty"] = score(encoded, plain(encoded))
    found["few columns"] = score(encoded, _few_columns(encoded))
    return found


def _parts(encoded: Encoded) -> tuple[Any, Any, Any]:
    fitted, held = np.flatnonzero(~encoded.test), np.flatnonzero(encoded.test)
    return encoded.X[fitted], encoded.y[fitted], encoded.X[held]


def _folds(encoded: Encoded, chosen: Any) -> list[tuple[Any, Any]]:
    if encoded.groups is None:
        return list(KFold(FOLDS, shuffle=True, random_state=0).split(chosen))
    return list(GroupKFold(FOLDS).split(chosen, groups=encoded.groups[~encoded.test][chosen]))


def _some(n: int) -> Any:
    return np.sort(np.random.default_rng(0).permutation(n)[:CHOSEN_ON])


def _lasso(encoded: Encoded) -> Any:
    X, y, X_test = _parts(encoded)
    chosen = _some(len(y))
    search = LassoCV(alphas=40, cv=_folds(encoded, chosen), max_iter=2000, tol=1e-3, selection="random", random_state=0)
    alpha = search.fit(X[chosen], y[chosen]).alpha_ * np.sqrt(len(chosen) / len(y))
    return Lasso(alpha, max_iter=2000, selection="random", random_state=0).fit(X, y).predict(X_test)


def _least_squares(encoded: Encoded) -> Any:
    """By the normal equations, which sparse rows allow; columns that say the same share what they say."""
    X, y, X_test = _parts(encoded)
    if sparse.issparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
        gram = (X.T @ X).toarray() / len(y) - np.outer(mean, mean)
        slope = np.linalg.lstsq(gram, X.T @ (y - y.mean()) / len(y), rcond=1e-10)[0]
        return X_test @ slope + (y.mean() - mean @ slope)
    return LinearRegression().fit(X, y).predict(X_test)


def _l1_logistic(encoded: Encoded) -> Any:
    X, y, X_test = _parts(encoded)
    chosen = _some(len(y))
    folds = _folds(encoded, chosen)

    def loss(strength: float) -> float:
        return float(np.mean([_loss_of_fold(X[chosen], y[chosen], strength, *fold) for fold in folds]))

    best = min(STRENGTHS, key=loss)
    return _margins(_fit_l1(X, y, best * np.sqrt(len(y) / len(chosen))), X_test)


def _loss_of_fold(X: Any, y: Any, strength: float, fitted: Any, held: Any) -> float:
    model = _fit_l1(X[fitted], y[fitted], strength)
    known = held[np.isin(y[held], model.classes_)]  # a rare class may be in one fold only
    return float(log_loss(y[known], model.predict_proba(X[known]), labels=model.classes_))


def _fit_l1(X: Any, y: Any, strength: float) -> Any:
    """Of several classes, a model for each of them against the rest, since liblinear fits two."""
    model = LogisticRegression(l1_ratio=1, solver="liblinear", C=strength, max_iter=100, tol=1e-3, intercept_scaling=10)
    return (model if len(np.unique(y)) == 2 else OneVsRestClassifier(model)).fit(X, y)


def _logistic(encoded: Encoded) -> Any:
    X, y, X_test = _parts(encoded)
    return _margins(LogisticRegression(C=1e6, max_iter=500).fit(X, y), X_test)


def _few_columns(encoded: Encoded) -> Any:
    X, y, X_test = _parts(encoded)
    is_number = encoded.kind == "numbers"
    labels = None if is_number else np.unique(y)
    targets = y[:, None] if labels is None else np.equal.outer(y, labels).astype(np.float64)
    residuals, spread, chosen = targets - targets.mean(axis=0), _spreads(X), np.zeros(0, dtype=np.intp)
    for _ in range(min(SPARSITY, X.shape[1])):
        worth = np.linalg.norm(X.T @ residuals, axis=1) / spread
        worth[chosen] = -1
        chosen = np.append(chosen, np.argmax(worth))
        few = _of_columns(X, chosen)
        model: Any = LinearRegression() if is_number else LogisticRegression(C=1e6, max_iter=300)
        model.fit(few, y)
        residuals = targets - (model.predict(few)[:, None] if is_number else model.predict_proba(few))
    return model.predict(_of_columns(X_test, chosen)) if is_number else _margins(model, _of_columns(X_test, chosen))


def _of_columns(X: Any, chosen: Any) -> Any:
    return X[:, chosen].toarray() if sparse.issparse(X) else X[:, chosen]


def _spreads(X: Any) -> Any:
    """The standard deviation of each column; of one that never varies, so much that it is not worth anything."""
    squares = X.multiply(X) if sparse.issparse(X) else X**2
    mean, square = (np.asarray(each.mean(axis=0)).ravel() for each in (X, squares))
    spread = np.sqrt(np.maximum(square - mean**2, 0))
    return np.where(spread > 1e-9, spread, 1e9)


def _margins(model: Any, X: Any) -> Any:
    """Of two classes the margins, of more the labels."""
    return model.decision_function(X) if len(model.classes_) == 2 else model.predict(X)
