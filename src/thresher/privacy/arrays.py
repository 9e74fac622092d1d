"""Arrays by what is in them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Flags", "Floats", "Indices", "Integers", "Matrix", "Numbers", "Values"]

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Integers = NDArray[np.int64]

Numbers = NDArray[np.floating[Any]]
"""In single or in double precision."""

Values = NDArray[Any]
"""Of any type: numbers, labels or texts."""

Matrix = Any
"""Rows, dense (NumPy), sparse (SciPy, which states no types) or a user's frame: whoever takes them looks first."""
