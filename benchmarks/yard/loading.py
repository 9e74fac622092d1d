"""How a table of the yard becomes rows: raw cells by a schema, a set that comes as numbers, products, hashed words.

A description (descriptions/NAME.toml) is a schema, written by hand as a sensible person would who knows the code book
and not the rows: bounds rounded outwards, or cut where the code book of such a thing would cut; all categories;
whose rows are; what is left out since it tells the target. The same for every method.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from thresher import Schema
from thresher_papers.datasets import load
from yard.encoded import Encoded, held_back
from yard.frames import Frame, NotHereError, frame_of

__all__ = ["DESCRIPTIONS", "DescribedTable", "ReadyTable", "SquaresTable", "Table", "TextTable"]

DESCRIPTIONS = Path(__file__).parent / "descriptions"


@dataclass(frozen=True)
class Table:
    """One table of the yard.

    Attributes
    ----------
    name : str
        By which it is asked for.
    kind : str
        "numbers", "two classes" or "more classes".
    """

    name: str
    kind: str

    def encoded(self) -> Encoded:
        """Its rows as a fit sees them. Raises ``NotHereError`` where it cannot be loaded."""
        raise NotImplementedError


@dataclass(frozen=True)
class DescribedTable(Table):
    """A raw table with a schema: the front door's own way from cells to rows."""

    source: str

    @property
    def description(self) -> Path:
        return DESCRIPTIONS / f"{self.name}.toml"

    @cached_property
    def schema(self) -> Schema:
        return Schema.read(self.description)

    def frame(self) -> Frame:
        """The raw rows whose target is known: the table is about those who told it."""
        frame = _frame(self.source)
        target = frame[self.schema.target.name]
        known = target.notna()
        if self.schema.target.kind == "category":
            known &= target.map(_as_declared).isin(list(self.schema.target.categories or ()))
        return frame[known].reset_index(drop=True)

    def test(self, frame: Frame) -> Any:
        """Which rows are for scoring."""
        person = self.schema.person
        return held_back(len(frame), None if person is None else _owners(frame[person.name]))

    def encoded(self) -> Encoded:
        frame = self.frame()
        schema, rows = self.schema.rows(frame)
        encoding, target = schema.encoding(), schema.target
        blocks = np.repeat(np.arange(len(encoding.blocks)), [len(block) for block in encoding.blocks])
        groups = None if rows.people is None else _owners(rows.people)
        is_number = target.kind != "category"
        return Encoded(
            self.name, _with_short_indices(rows.X), rows.y, self.test(frame), encoding.row_norm,
            target.span if is_number else None, None if is_number else np.unique(np.array(target.categories)),
            encoding.names, blocks, groups,
        )  # fmt: skip


@dataclass(frozen=True)
class ReadyTable(Table):
    """A set that comes as numbers, from the folder that THRESHER_DATA names; its own rows are for scoring."""

    source: str

    def encoded(self) -> Encoded:
        folder = os.environ.get("THRESHER_DATA")
        if not folder:
            raise NotHereError(f"{self.name} is looked for in the folder of THRESHER_DATA, which is not set")
        try:
            found = load(self.source, folder)
        except (FileNotFoundError, ValueError) as error:
            raise NotHereError(str(error).splitlines()[0]) from None
        n, d = found.X.shape
        stack: Any = sparse.vstack if sparse.issparse(found.X) else np.concatenate
        X = stack([found.X, found.X_test])
        X = _with_short_indices(X.astype(np.float64)) if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
        row_bound = float(found.bounds.get("row_bound", np.sqrt(d)))
        groups = None
        if found.groups is not None:
            after = found.groups_test if found.groups_test is not None else -1 - np.arange(len(found.y_test))
            groups = _owners(np.concatenate([found.groups, after]))
        y, target_bound = np.concatenate([found.y, found.y_test]), _pair(found.bounds.get("target_bound"))
        return Encoded(
            self.name, _clipped(X, row_bound), y if target_bound is None else np.clip(y, *target_bound),
            np.arange(X.shape[0]) >= n, row_bound, target_bound,
            np.array(found.bounds["classes"]) if "classes" in found.bounds else None,
            list(found.names or [f"column {at + 1}" for at in range(d)]), np.arange(d), groups,
        )  # fmt: skip


@dataclass(frozen=True)
class SquaresTable(Table):
    """All columns of another table and the products of any two of them: public bounds of products are products."""

    of: DescribedTable

    def encoded(self) -> Encoded:
        base = self.of.encoded()
        columns, names, blocks = [base.X], list(base.names), [base.blocks]
        numbers = np.flatnonzero(np.bincount(base.blocks)[base.blocks] == 1)  # of one-hot blocks most products are 0
        for place, at in enumerate(numbers):
            for other in numbers[place:]:
                columns.append(base.X[:, [at]] * base.X[:, [other]])
                names.append(f"{base.names[at]} * {base.names[other]}")
        if base.X.shape[1] < 50:
            categories = np.setdiff1d(np.arange(base.X.shape[1]), numbers)
            columns += [base.X[:, [at]] * base.X[:, categories] for at in numbers]
            names += [f"{base.names[at]} * {base.names[other]}" for at in numbers for other in categories]
        X = np.hstack(columns)
        blocks.append(np.arange(X.shape[1] - base.X.shape[1]) + base.blocks.max() + 1)
        row_bound = float(np.sqrt(base.row_bound**2 + base.row_bound**4))  # all products of two entries together
        return replace(base, name=self.name, X=X, names=names, blocks=np.concatenate(blocks), row_bound=row_bound)


@dataclass(frozen=True)
class TextTable(Table):
    """Words of a text, hashed into columns by a public rule; rows of norm 1."""

    source: str
    text: str = "review"
    target: str = "score"
    positive: str = "great"
    columns: int = 4096

    def encoded(self) -> Encoded:
        from sklearn.feature_extraction.text import HashingVectorizer

        frame = _frame(self.source)
        words = HashingVectorizer(n_features=self.columns, alternate_sign=False, norm="l2")
        X = _with_short_indices(words.transform(frame[self.text].astype(str)))
        y = np.where(frame[self.target] == self.positive, 1, 0)
        names = [f"words {at}" for at in range(self.columns)]
        blocks = np.arange(self.columns)
        return Encoded(self.name, X, y, held_back(len(y), None), 1.0, None, np.array([0, 1]), names, blocks, None)


@lru_cache(maxsize=2)
def _frame(source: str) -> Frame:
    return frame_of(source)


def _as_declared(cell: Any) -> Any:
    return cell.strip() if isinstance(cell, str) else cell


def _owners(people: Any) -> Any:
    """Ids as numbers from 0."""
    return np.unique(np.asarray([str(person) for person in people]), return_inverse=True)[1]


def _pair(bound: Any) -> tuple[float, float] | None:
    if bound is None:
        return None
    return (float(bound[0]), float(bound[1])) if np.ndim(bound) else (-float(bound), float(bound))


def _with_short_indices(X: Any) -> Any:
    """Sparse rows whose indices have 32 bits, as some of scikit-learn's solvers need them."""
    if not sparse.issparse(X):
        return X
    rows = X.tocsr()
    return sparse.csr_array((rows.data, rows.indices.astype(np.int32), rows.indptr.astype(np.int32)), shape=rows.shape)


def _clipped(X: Any, row_bound: float) -> Any:
    """Entries within [-1, 1], then each row's norm within its bound: as a vault clips."""
    if sparse.issparse(X):
        X.data = np.clip(X.data, -1, 1)
        norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
        X.data *= np.repeat(np.minimum(1, row_bound / np.maximum(norms, 1e-300)), np.diff(X.indptr))
        return X
    X = np.clip(X, -1, 1)
    norms = np.sqrt(np.einsum("ij,ij->i", X, X))
    return X * np.minimum(1, row_bound / np.maximum(norms, 1e-300))[:, None]
