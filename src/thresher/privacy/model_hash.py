"""Which model a certificate belongs to: a hash of what the model is made of, the same wherever it is computed."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from thresher.privacy.arrays import Floats
from thresher.privacy.strict_json import Record

if TYPE_CHECKING:
    from thresher.privacy.certificate import Certificate

__all__ = ["linear_parts", "model_hash", "problems_of_model"]

DOMAIN = b"thresher model 1\0"  # so that the hash of nothing else is the hash of a model


def model_hash(parts: Mapping[str, ArrayLike | list[str] | list[object] | None]) -> str:
    """SHA-256 over named parts: arrays of numbers by the exact bytes of their doubles, lists of labels one by one.

    Each name, shape and label stands behind its length, so that no two models are written alike.
    """
    digest = sha256(DOMAIN)
    for name, value in parts.items():
        digest.update(_text(name))
        if value is None:
            digest.update(b"-")
        elif isinstance(value, list):
            digest.update(b"l" + _number(len(value)))
            for label in value:
                digest.update(_label(label))
        else:
            numbers = np.asarray(value, dtype="<f8") + 0.0  # files leave out zeros, and with them the sign of -0.0
            digest.update(b"a" + _number(numbers.ndim) + b"".join(map(_number, numbers.shape)))
            digest.update(np.ascontiguousarray(numbers, dtype="<f8").tobytes())
    return digest.hexdigest()


def linear_parts(
    coefficients: ArrayLike, intercepts: ArrayLike, columns: Iterable[str] | None, classes: Iterable[object] | None
) -> dict[str, Floats | list[str] | list[object] | None]:
    """What a linear model is made of: a row of coefficients and an intercept per output, names of columns, labels."""
    return {
        "coefficients": np.atleast_2d(coefficients),
        "intercept": np.ravel(intercepts),
        "columns": None if columns is None else list(columns),
        "classes": None if classes is None else list(classes),
    }


def problems_of_model(record: Record, certificate: Certificate) -> list[str]:
    """Why the certificate is not that of the model in a file, which ``record`` holds."""
    if record["n_features"] != certificate.n_features:
        return [
            f"the model has {record['n_features']} columns, the certificate {certificate.n_features}: it belongs to "
            "another model"
        ]
    if certificate.model is None:
        return (
            []
            if certificate.is_old
            else ["its hash was left out of the certificate, which may belong to another model"]
        )
    values = np.atleast_2d(np.asarray(record["coefficients"], dtype=np.float64))
    coefficients = np.zeros((len(values), record["n_features"]))
    coefficients[:, record["support"]] = values
    intercept = np.asarray(record["intercept"], dtype=np.float64)  # of a long text NumPy would make a huge array
    parts = linear_parts(coefficients, intercept, record["feature_names"], record["classes"])
    if model_hash(parts) != certificate.model:
        return ["the certificate belongs to another model: its hash is not that of these coefficients and names"]
    return []


def _text(text: str) -> bytes:
    encoded = text.encode("utf-8", "surrogatepass")
    return _number(len(encoded)) + encoded


def _number(value: int) -> bytes:
    return struct.pack("<Q", value)


def _label(label: object) -> bytes:
    """A label as JSON gives it back: a truth, a whole number, another number, or text."""
    label = label.item() if hasattr(label, "item") else label
    if isinstance(label, bool):
        return b"b" + _text(str(label))
    if isinstance(label, int):
        return b"i" + _text(str(label))
    return b"f" + struct.pack("<d", label) if isinstance(label, float) else b"s" + _text(str(label))
