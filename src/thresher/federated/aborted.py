"""The one way in which parties end a computation that cannot go on."""

from __future__ import annotations

__all__ = ["Aborted"]


class Aborted(RuntimeError):  # noqa: N818  (what happened, not whose fault it is)
    """A party or server died, hung, left, or said what it may not say. The sum under way was shown to nobody."""
