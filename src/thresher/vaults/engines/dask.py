"""Rows on the workers of a Dask cluster; vectors as long as the table, and everything that is noised, stay here.

Neighbouring partitions are put together into pieces, by their sizes alone, and pieces into blocks, by the number of
threads: a question costs a task for each block. Each piece has an answer of its own, and answers are added up in
order. So a sum does not depend on which worker computed what, on how many there are, or on blocks that were lost with
a worker and computed again.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import dask
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from thresher.data.dask import Partitions, Refused, Sealed
from thresher.data.sparse_structure import by_rows
from thresher.privacy.arrays import Floats, Indices
from thresher.vaults.engines import Engine, engine_for
from thresher.vaults.engines.batches import ByRows
from thresher.vaults.kernels.rows import add_up

__all__ = ["DaskEngine"]

Question = Callable[..., Any]

PIECES, PIECE = 64, 2**25  # as many pieces as this, or more of so many bytes: there should be some for every worker
ANSWER = 4 * 8  # bytes of rows in a piece at least, per column: its answers, eight bytes per column, travel each round
BLOCK, SHARE = 2**27, 1 / 32  # bytes in a block at most, and of a thread's memory: clipping and products need copies
BATCH = 2**28  # bytes of answers fetched at a time at most, unless a block's are more
NO_ADVICE = {"distributed.admin.large-graph-warning-threshold": "1 TB"}  # to put large arguments on the workers first


class DaskEngine:
    """Blocks of local engines, one for each piece, as futures that Dask can compute again."""

    def __init__(self, client: Any, blocks: list[Any], slices: list[list[slice]], dimension: int) -> None:
        self._client, self.blocks, self.slices, self._dimension = client, blocks, slices, dimension
        # Dask sends a message every 10 ms: that the latest answers may go is said along with the next question
        self._latest: list[Any] = []

    @classmethod
    def of(cls, X: Partitions, constant: float) -> DaskEngine:
        pieces = runs_of(X.sizes, max(min(PIECE, sum(X.sizes) / PIECES), ANSWER * X.dimension))
        sizes = [sum(X.sizes[part] for part in piece) for piece in pieces]
        threads, room = _room(X.client)
        runs = [[pieces[at] for at in run] for run in runs_of(sizes, min(room, sum(sizes) / threads))]
        recipe = (*X.steps, (engine_for, (constant,)))
        parts = [[[X.parts[part] for part in piece] for piece in run] for run in runs]
        blocks = [X.client.submit(_built, block, recipe, pure=False) for block in parts]
        X.parts.clear()  # what the blocks are made of goes as soon as they are made
        edges = [0, *itertools.accumulate(X.rows)]
        slices = [[slice(edges[piece[0]], edges[piece[-1] + 1]) for piece in run] for run in runs]
        return cls(X.client, blocks, slices, X.dimension + (constant != 0))

    def product(self, theta: Floats) -> Floats:
        support = np.flatnonzero(theta if theta.ndim == 1 else theta.any(axis=1))
        products: Floats = self._stack(_product, support, theta[support], theta.shape)
        return products

    def transposed_product(self, r: Floats) -> Floats:
        return self._add(_transposed_product, rows=r, size=self._dimension * r[:1].size)

    @property
    def dimension(self) -> int:
        return self._dimension

    def mean_squares(self, n: int, weights: Floats | None = None) -> Floats:
        if weights is None:
            return self._add(_mean_squares, n, size=self._dimension)
        return self._add(_weighted_squares, n, rows=weights, size=self._dimension)

    def gram(self, factors: Floats) -> Floats:
        return self._add(_gram, rows=factors, size=self._dimension**2)

    def row_norms(self) -> Floats:
        norms: Floats = self._stack(_row_norms)
        return norms

    def columns(self, support: Indices, factors: Floats | float = 1.0) -> DaskEngine:
        chosen = self._ask(_columns, support, factors, together=Sealed)
        return DaskEngine(self._client, chosen, self.slices, len(support))

    def projected(self, support: Indices, weights: Floats) -> DaskEngine:
        projected = self._ask(_projected, support, weights, together=Sealed)
        return DaskEngine(self._client, projected, self.slices, weights.shape[1])

    def by_rows(self) -> ByRows:
        raise TypeError("random batches need the rows in memory; use dp-gd or dp-agd, or give X.compute()")

    def parts(self, labels: Indices, count: int) -> Iterator[Any]:
        return (self._stack(_chosen_rows, rows=labels == part) for part in range(count))

    # -- asking the workers -------------------------------------------------------------------------------------

    def _stack(self, question: Question, *shared: Any, rows: NDArray[Any] | None = None) -> Any:
        """The answers below each other."""
        self._latest = self._ask(question, *shared, rows=rows, together=stacked)
        return stacked(self._fetch(self._latest))

    def _add(self, question: Question, *shared: Any, rows: NDArray[Any] | None = None, size: int) -> Floats:
        """The sum of the answers, each of ``size`` numbers, in order."""
        self._latest = futures = self._ask(question, *shared, rows=rows, together=np.stack)
        step = max(1, BATCH // max(1, 8 * size * max(map(len, self.slices))))
        batches = (self._fetch(futures[first : first + step]) for first in range(0, len(futures), step))
        answers = itertools.chain.from_iterable(itertools.chain.from_iterable(batches))
        return add_up(answers)

    def _ask(
        self, question: Question, *shared: Any, rows: NDArray[Any] | None = None, together: Callable[[list[Any]], Any]
    ) -> list[Any]:
        """For each block the future of its pieces' answers; ``rows`` has a value for each row.

        The values travel inside the tasks: what is put on a worker by itself is lost with the worker.
        """
        arguments = [
            Sealed([shared if rows is None else (rows[own], *shared) for own in slices]) for slices in self.slices
        ]
        asked = functools.partial(_answer_blocks, question, together)
        with dask.config.set(NO_ADVICE):
            futures: list[Any] = self._client.map(asked, self.blocks, arguments, pure=False)
        return futures

    def _fetch(self, futures: list[Any]) -> list[Any]:
        answers: list[Any] = self._client.gather(futures)
        for answer in answers:
            if isinstance(answer, Refused):
                raise RuntimeError(answer.message)
        return answers


def _room(client: Any) -> tuple[int, float]:
    """The number of threads of all workers, and how large a block they can work on."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    shares = [SHARE * worker["memory_limit"] / worker["nthreads"] for worker in workers if worker["memory_limit"]]
    return max(1, sum(worker["nthreads"] for worker in workers)), min([BLOCK, *shares])


def runs_of(sizes: list[int], size: float) -> list[list[int]]:
    """Neighbours that go together, about so much in each run."""
    middles = np.cumsum(sizes) - np.asarray(sizes) / 2
    at = (middles // size).tolist()
    return [list(run) for _, run in itertools.groupby(range(len(sizes)), key=at.__getitem__)]


# -- on the workers ---------------------------------------------------------------------------------------------


def _quietly(task: Callable[..., Any]) -> Callable[..., Any]:
    """A task that never raises: Dask would log its arguments, which are people's rows."""

    @functools.wraps(task)
    def quiet(*arguments: Any) -> Any:
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # as around products in the vault
                return task(*arguments)
        except Exception as error:
            return Refused(f"a Dask worker could not compute its part of an answer: {type(error).__name__}")

    return quiet


@_quietly
def _built(pieces: list[list[Sealed]], recipe: tuple[tuple[Callable[..., Any], tuple[Any, ...]], ...]) -> Sealed:
    """The local engines of a block."""
    engines = []
    for piece in pieces:
        rows = stacked([part.value for part in piece], "csr")
        for step, arguments in recipe:
            rows = step(rows, *arguments)
        engines.append(rows)
    return Sealed(engines)


@_quietly
def _answer_blocks(question: Question, together: Callable[[list[Any]], Any], block: Sealed, arguments: Sealed) -> Any:
    return together([question(engine, *own) for engine, own in zip(block.value, arguments.value, strict=True)])


def stacked(matrices: list[Any], form: str = "csc") -> Any:
    """Matrices or vectors below each other; sparse, in this form, if one of them is."""
    if len(matrices) == 1:
        return matrices[0]
    if any(map(sparse.issparse, matrices)):
        return sparse.vstack([by_rows(matrix) for matrix in matrices] if form == "csr" else matrices, format=form)
    return np.concatenate(matrices)


def _product(engine: Engine, support: Indices, values: Floats, shape: tuple[int, ...]) -> Floats:
    theta = np.zeros(shape)
    theta[support] = values
    return engine.product(theta)


def _transposed_product(engine: Engine, r: Floats) -> Floats:
    return engine.transposed_product(r)


def _mean_squares(engine: Engine, n: int) -> Floats:
    return engine.mean_squares(n)


def _weighted_squares(engine: Engine, weights: Floats, n: int) -> Floats:
    return engine.mean_squares(n, weights)


def _gram(engine: Engine, factors: Floats) -> Floats:
    return engine.gram(factors)


def _row_norms(engine: Engine) -> Floats:
    return engine.row_norms()


def _columns(engine: Engine, support: Indices, factors: Floats | float) -> Any:
    return engine.columns(support, factors)


def _projected(engine: Engine, support: Indices, weights: Floats) -> Any:
    return engine.projected(support, weights)


def _chosen_rows(engine: Engine, chosen: NDArray[np.bool_]) -> Any:
    """The rows that are chosen, as a matrix."""
    (rows,) = engine.parts(np.where(chosen, 0, 1), 1)
    return rows
