"""Rows on the workers of a Dask cluster; vectors as long as the table, and everything that is noised, stay here.

Neighbouring partitions share a block, so that a question costs few tasks; each partition still gets an answer of its
own, and answers are added up in the order of the partitions. So a sum does not depend on which worker computed what,
how the partitions were shared out, or whether a lost block had to be computed again.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from thresher.engines import engine_for
from thresher.partitions import Partitions, Refused, Sealed

__all__ = ["DaskEngine"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Question = Callable[..., Any]

BLOCK = 2**25  # bytes of rows in a block at most, unless a partition has more: a block is read from disk as a whole
ANSWERS = 2**28  # bytes of answers fetched at a time at most, unless one has more


class DaskEngine:
    """Blocks of local engines, one for each partition, as futures that Dask can compute again."""

    def __init__(self, client: Any, blocks: list[Any], slices: list[list[slice]], dimension: int) -> None:
        self._client, self._blocks, self._slices, self._dimension = client, blocks, slices, dimension

    @classmethod
    def of(cls, X: Partitions, constant: float) -> DaskEngine:
        edges = [0, *itertools.accumulate(X.rows)]
        runs = _runs(X.sizes, sum(X.client.nthreads().values()))
        recipe = (*X.steps, (engine_for, (constant,)))
        blocks = [X.client.submit(_built, [X.parts[p] for p in run], recipe, pure=False) for run in runs]
        X.parts.clear()  # what the blocks are made of goes as soon as they are made
        slices = [[slice(edges[p], edges[p + 1]) for p in run] for run in runs]
        return cls(X.client, blocks, slices, X.dimension + (constant != 0))

    def product(self, theta: Floats) -> Floats:
        support = np.flatnonzero(theta if theta.ndim == 1 else theta.any(axis=1))
        return self._stacked(_product, support, theta[support], theta.shape)

    def transposed_product(self, r: Floats) -> Floats:
        return self._summed(_transposed_product, rows=r, size=self._dimension * r[:1].size)

    @property
    def dimension(self) -> int:
        return self._dimension

    def mean_squares(self, n: int) -> Floats:
        return self._summed(_mean_squares, n, size=self._dimension)

    def gram(self, limits: Floats) -> Floats:
        return self._summed(_gram, rows=limits, size=self._dimension**2)

    def row_norms(self) -> Floats:
        return self._stacked(_row_norms)

    def columns(self, support: Indices, factors: Floats | float = 1.0) -> DaskEngine:
        return DaskEngine(self._client, self._asked(_columns, support, factors), self._slices, len(support))

    def parts(self, labels: Indices, count: int) -> Iterator[Any]:
        return (self._stacked(_labelled, rows=labels == part) for part in range(count))

    # -- asking the workers -------------------------------------------------------------------------------------

    def _stacked(self, question: Question, *shared: Any, rows: NDArray[Any] | None = None) -> Any:
        answers = list(itertools.chain.from_iterable(self._fetched(self._asked(question, *shared, rows=rows))))
        return sparse.vstack(answers, format="csc") if sparse.issparse(answers[0]) else np.concatenate(answers)

    def _summed(self, question: Question, *shared: Any, rows: NDArray[Any] | None = None, size: int) -> Floats:
        """The sum of the answers, each of ``size`` numbers, in the order of the partitions."""
        futures = self._asked(question, *shared, rows=rows)
        together = max(1, ANSWERS // max(1, 8 * size * max(map(len, self._slices))))
        batches = (self._fetched(futures[first : first + together]) for first in range(0, len(futures), together))
        answers = itertools.chain.from_iterable(itertools.chain.from_iterable(batches))
        total: Floats = functools.reduce(operator.iadd, answers)
        return total

    def _asked(self, question: Question, *shared: Any, rows: NDArray[Any] | None = None) -> list[Any]:
        """The futures of one answer for each partition of each block; ``rows`` has a value for each row.

        The values travel inside the tasks: what is put on a worker by itself is lost with the worker.
        """
        arguments = [
            Sealed([shared if rows is None else (rows[own], *shared) for own in slices]) for slices in self._slices
        ]
        asked = [question] * len(self._blocks)
        futures: list[Any] = self._client.map(_answered, self._blocks, asked, arguments, pure=False)
        return futures

    def _fetched(self, futures: list[Any]) -> Iterator[list[Any]]:
        for answers in self._client.gather(futures):
            if isinstance(answers, Refused):
                raise RuntimeError(answers.message)
            yield answers.value


def _runs(sizes: list[int], threads: int) -> list[list[int]]:
    """Neighbouring partitions that share a block: about a block for each thread, or more if that is too large."""
    ends = np.cumsum(sizes)
    limit = min(BLOCK, float(ends[-1]) / threads)
    at = ((ends - np.asarray(sizes) / 2) // limit).tolist()
    return [list(run) for _, run in itertools.groupby(range(len(sizes)), key=at.__getitem__)]


# -- on the workers ---------------------------------------------------------------------------------------------


def _quietly(task: Callable[..., Any]) -> Callable[..., Sealed | Refused]:
    """What a task answers, sealed. It never raises: Dask would log its arguments, which are people's rows."""

    @functools.wraps(task)
    def quiet(*arguments: Any) -> Sealed | Refused:
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # as around products in the vault
                return Sealed(task(*arguments))
        except Exception as error:
            return Refused(f"a Dask worker could not compute its part of an answer: {type(error).__name__}")

    return quiet


@_quietly
def _built(parts: list[Sealed], recipe: tuple[tuple[Callable[..., Any], tuple[Any, ...]], ...]) -> list[Any]:
    """The local engines of a block."""
    engines = []
    for part in parts:
        rows = part.value
        for step, arguments in recipe:
            rows = step(rows, *arguments)
        engines.append(rows)
    return engines


@_quietly
def _answered(block: Sealed, question: Question, arguments: Sealed) -> list[Any]:
    return [question(engine, *own) for engine, own in zip(block.value, arguments.value, strict=True)]


def _product(engine: Any, support: Indices, values: Floats, shape: tuple[int, ...]) -> Floats:
    theta = np.zeros(shape)
    theta[support] = values
    return engine.product(theta)


def _transposed_product(engine: Any, r: Floats) -> Floats:
    return engine.transposed_product(r)


def _mean_squares(engine: Any, n: int) -> Floats:
    return engine.mean_squares(n)


def _gram(engine: Any, limits: Floats) -> Floats:
    return engine.gram(limits)


def _row_norms(engine: Any) -> Floats:
    return engine.row_norms()


def _columns(engine: Any, support: Indices, factors: Floats | float) -> Any:
    return engine.columns(support, factors)


def _labelled(engine: Any, chosen: NDArray[np.bool_]) -> Any:
    """The rows that are chosen, as a matrix."""
    (rows,) = engine.parts(np.where(chosen, 0, 1), 1)
    return rows
