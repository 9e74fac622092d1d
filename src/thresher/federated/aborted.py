"""What every secure aggregation raises when it cannot finish."""

from __future__ import annotations

__all__ = ["Aborted"]


class Aborted(RuntimeError):  # noqa: N818  (the public name says what it is)
    """A secure aggregation stopped before its answer arrived: somebody died, hung, or sent nonsense.

    Nobody learnt a sum without noise. Some of those who took part may have learnt the noisy one before it stopped, so
    the round counts as spent; another try has fresh noise and a price of its own.
    """
