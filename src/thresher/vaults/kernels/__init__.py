"""The compiled loops, if they could be built where thresher was installed; None if not, and NumPy does their work."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["compiled"]

try:
    _loops: Any = import_module("thresher.vaults.kernels._kernels")
except ImportError:
    _loops = None


def compiled() -> Any:
    """The module of compiled loops, or None."""
    return _loops
