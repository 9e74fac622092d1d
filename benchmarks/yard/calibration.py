"""Whether chances that a private model gives come true: their mean beside the rate, and their log-loss beside its."""

from __future__ import annotations

from typing import Any

import numpy as np

from yard.methods import encoded_table, fitted, rows_of

__all__ = ["calibration_of"]

LEAST = 1e-6  # a chance: what is said to be impossible and happens costs 14, not infinitely much


def calibration_of(name: str, method: str, epsilon: float, seed: int) -> dict[str, float]:
    """Of one fit, on the rows for scoring: the mean chance of the rarest class over its rate, and by what part the
    log-loss is below that of somebody who knows the rates of the rows that were fitted alone."""
    encoded = encoded_table(name)
    if encoded.classes is None:
        raise ValueError("numbers have no chances")
    model = fitted(name, method, epsilon, seed)
    chances = np.clip(model.predict_proba(rows_of(name)[1]), LEAST, 1)
    chances /= chances.sum(axis=1, keepdims=True)
    fitted_rates, held = (_members(encoded, which) for which in (~encoded.test, encoded.test))
    rates = np.clip(fitted_rates.mean(axis=0), LEAST, 1)
    rarest = int(np.argmin(np.where(held.sum(axis=0) > 0, rates, 1)))
    loss, trivial = (-float(np.mean(np.sum(held * np.log(each), axis=1))) for each in (chances, rates[None, :]))
    rate = float(chances[:, rarest].mean() / held[:, rarest].mean())
    return {"rate": rate, "gain": 1 - loss / trivial}


def _members(encoded: Any, rows: Any) -> Any:
    return np.equal.outer(encoded.y[rows], encoded.classes)
