"""A table as a fit sees it: numbers within public bounds, a target, which rows are for scoring. One file of NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

__all__ = ["Encoded", "held_back"]


@dataclass(frozen=True, eq=False)
class Encoded:
    """Rows of one table.

    Attributes
    ----------
    name : str
        Of the table.
    X : array or CSR, rows by columns
        Every entry within [-1, 1] and every row's l2 norm at most ``row_bound``, by public facts or by a clip.
    y : array
        Numbers within ``target_bound``, or labels among ``classes``.
    test : array of bool
        The third of the rows (of the people) that is for scoring.
    row_bound : float
        The l2 norm that no row exceeds.
    target_bound : pair of floats or None
        The least and the largest target, of numbers.
    classes : array or None
        All labels, of classes.
    names : list of str
        Of the columns.
    blocks : array of int
        By column: which feature of the table it comes from. Of a block of several columns few are set.
    groups : array of int or None
        Whose each row is, where people have several.
    """

    name: str
    X: Any
    y: NDArray[Any]
    test: NDArray[np.bool_]
    row_bound: float
    target_bound: tuple[float, float] | None
    classes: NDArray[Any] | None
    names: list[str]
    blocks: NDArray[np.intp]
    groups: NDArray[np.intp] | None

    @property
    def kind(self) -> str:
        """What is predicted."""
        return "classes" if self.target_bound is None else "numbers"

    @property
    def size(self) -> int:
        """Rows to fit, or people where they have several: what delta is chosen by."""
        fitted = ~self.test
        return int(fitted.sum()) if self.groups is None else len(np.unique(self.groups[fitted]))

    def save(self, path: Path) -> None:
        """Write to a file that NumPy alone reads; sparse rows as ``data, indices, indptr, shape``."""
        X = self.X
        facts: dict[str, Any] = {
            "y": self.y, "test": self.test, "row_bound": self.row_bound, "names": np.array(self.names),
            "blocks": self.blocks, "kind": self.kind, "target_bound": self.target_bound, "classes": self.classes,
            "groups": self.groups, "name": self.name,
        }  # fmt: skip
        if sparse.issparse(X):
            facts |= {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape}
        else:
            facts["X"] = X
        np.savez_compressed(path, **{key: value for key, value in facts.items() if value is not None})

    @classmethod
    def load(cls, path: Path) -> Encoded:
        """What ``save`` wrote."""
        with np.load(path, allow_pickle=False) as z:
            facts = dict(z)
        X = facts.get("X")
        if X is None:
            parts = (facts["data"], facts["indices"], facts["indptr"])
            X = sparse.csr_array(parts, shape=tuple(facts["shape"]))
        low_high = tuple(facts["target_bound"].tolist()) if "target_bound" in facts else None
        return cls(
            str(facts["name"]), X, facts["y"], facts["test"], float(facts["row_bound"]), low_high,
            facts.get("classes"), facts["names"].tolist(), facts["blocks"], facts.get("groups"),
        )  # fmt: skip


def held_back(n: int, groups: NDArray[np.intp] | None) -> NDArray[np.bool_]:
    """A third of the rows, or all rows of a third of the people; always the same ones."""
    owners = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
    people = int(owners.max()) + 1
    chosen = np.zeros(people, dtype=bool)
    chosen[np.random.default_rng(2026).permutation(people)[: people // 3]] = True
    return chosen[owners]
