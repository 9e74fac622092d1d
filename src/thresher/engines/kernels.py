"""The compiled loops, if they could be built where thresher was installed; None if not, and SciPy does their work."""

from __future__ import annotations

from typing import Any

__all__ = ["compiled"]

try:
    from thresher.engines import _kernels
except ImportError:
    _kernels = None  # type: ignore[assignment]

_loops: Any = _kernels


def compiled() -> Any:
    """The module of compiled loops, or None."""
    return _loops
