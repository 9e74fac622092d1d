"""The examples of a training: tensors, NumPy arrays or a map-style Dataset, taken a few at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import default_collate

__all__ = ["ArrayExamples", "DatasetExamples", "Examples", "examples_of", "moved_beside"]

Indices = NDArray[np.int64]

Arrays: TypeAlias = torch.Tensor | NDArray[Any] | Sequence[object]


class MapDataset(Protocol):
    """A map-style Dataset of pairs (input, target)."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> tuple[Any, Any]: ...


class ArrayExamples:
    """Inputs and targets side by side, as many of the one as of the other."""

    def __init__(self, X: Arrays, y: Arrays) -> None:
        self._inputs, self._targets = _tensor("X", X), _tensor("y", y)
        if len(self._inputs) != len(self._targets):
            raise ValueError(f"X has {len(self._inputs)} examples, y has {len(self._targets)}; give as many of both")

    def __len__(self) -> int:
        return len(self._inputs)

    def take(self, rows: Indices) -> tuple[torch.Tensor, torch.Tensor]:
        at = torch.from_numpy(rows)
        return self._inputs[at], self._targets[at]


class DatasetExamples:
    """Pairs (input, target) that a Dataset makes when asked."""

    def __init__(self, dataset: MapDataset) -> None:
        self._dataset = dataset

    def __len__(self) -> int:
        return len(self._dataset)

    def take(self, rows: Indices) -> tuple[torch.Tensor, torch.Tensor]:
        inputs, targets = default_collate([self._dataset[int(row)] for row in rows])
        return inputs, targets


Examples = ArrayExamples | DatasetExamples


def examples_of(X: Arrays | MapDataset, y: Arrays | None) -> Examples:
    """``X`` and ``y``, or a Dataset of pairs as ``X``; refused if there is nothing in it, or what is no number."""
    if y is None and not (hasattr(X, "__getitem__") and hasattr(X, "__len__")):
        raise TypeError(f"X is a {type(X).__name__}; give arrays X and y, or a map-style Dataset of (input, target)")
    if y is None and isinstance(X, (np.ndarray, torch.Tensor)):
        raise ValueError("y is missing: X is an array, so its targets are needed, too")
    examples: Examples = DatasetExamples(cast(MapDataset, X)) if y is None else ArrayExamples(X, y)
    if len(examples) < 2:
        raise ValueError(f"there are {len(examples)} examples; at least 2 are needed")
    return examples


def moved_beside(values: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """The same where ``like`` is and, if it is no whole number or class, in its precision."""
    return values.to(like.device, like.dtype if values.is_floating_point() else values.dtype)


def _tensor(name: str, values: Arrays) -> torch.Tensor:
    tensor = values if isinstance(values, torch.Tensor) else torch.as_tensor(np.asarray(values))
    if tensor.ndim == 0:
        raise ValueError(f"{name} is a single number; give one entry per example")
    if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
        raise ValueError(f"{name} holds values that are not finite (NaN or infinity); remove or replace them")
    return tensor.detach()
