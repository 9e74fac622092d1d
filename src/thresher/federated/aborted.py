"""The one way in which parties end a computation that cannot go on."""

from __future__ import annotations

__all__ = ["Aborted", "Ended"]


class Aborted(RuntimeError):  # noqa: N818  (what happened, not whose fault it is)
    """A party or server died, hung, left, or said what it may not say.

    Nobody saw a sum without noise. Others may have seen the noisy one, so the round counts as spent; parties with
    journals open the same one again (``thresher.federated.session``).
    """


class Ended(Aborted):
    """The run cannot go on, not even when all are started again: what it spent stays spent."""
