"""What a vault said: the script that another vault can be handed in place of noise of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["RecordedAnswer"]


@dataclass(frozen=True)
class RecordedAnswer:
    """An answer, the scale of its noise and, for numbers, what these rows would have answered without noise.

    People's reports, and who was in which group, are answers too; their randomisers know the noise.
    """

    answer: Any
    scale: float = 0.0
    value: NDArray[np.float64] | None = None
