"""Rows in a Dask array or DataFrame: found on the workers, checked there, and handed to the vault as they lie; and the
client a fit works with: the active one, or one of its own in this process while the fit lasts.

Dask logs the arguments of a task that raises. So nothing raises here: what is wrong comes back as a ``Refused``,
and private values travel ``Sealed``.
"""

from __future__ import annotations

import logging
import math
import pickle
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy import sparse

from thresher.data.sparse_structure import check_structure
from thresher.data.tables import reject_text, without_values
from thresher.data.typing import Cells, Table, Values
from thresher.privacy.arrays import Floats

if TYPE_CHECKING:
    from dask.delayed import Delayed
    from distributed import Client, Future

__all__ = [
    "Collection",
    "Partitions",
    "Refused",
    "Sealed",
    "apply_to_rows",
    "fit_inputs",
    "is_dask",
    "map_rows",
    "reject_infinite",
    "zero_row_like",
]

DaskTable: TypeAlias = Any
"""A Dask array or DataFrame."""

Matrix: TypeAlias = Floats | sparse.sparray | sparse.spmatrix

Dtypes: TypeAlias = str | Sequence[type]

HELD = 0.3  # of the memory, rows before Dask spills; products, copies and the rest of the process take theirs on top


class Sealed:
    """A private value: what is printed of it says nothing, and its size tells Dask when to spill it to disk."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "<sealed>"

    def __sizeof__(self) -> int:
        buffers: list[pickle.PickleBuffer] = []
        rest = pickle.dumps(self.value, protocol=5, buffer_callback=buffers.append)
        return len(rest) + sum(buffer.raw().nbytes for buffer in buffers)


@dataclass(frozen=True)
class Refused:
    """Why a task has no answer; names columns and files, never values."""

    message: str


@dataclass(frozen=True)
class Partitions:
    """Checked rows on the workers of ``client``, and what is to be done to each partition before it is used."""

    client: Client
    parts: list[Future]
    """Futures of sealed matrices. Whoever uses them empties the list, or the workers would hold all rows twice."""
    rows: list[int]
    sizes: list[int]
    dimension: int
    steps: tuple[tuple[Callable[..., Matrix], tuple[object, ...]], ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of all together."""
        return sum(self.rows), self.dimension


def apply_to_rows(function: Callable[..., Matrix], X: Matrix | Partitions, *arguments: object) -> Matrix | Partitions:
    """function(X, *arguments); for partitions later, on each of them where it lies."""
    if isinstance(X, Partitions):
        return replace(X, steps=(*X.steps, (function, arguments)))
    return function(X, *arguments)


# -- in front of the workers --------------------------------------------------------------------------------------


def is_dask(X: Table) -> bool:
    """Whether X is a collection of Dask itself: others (xarray) have its methods but not those that are needed here."""
    return hasattr(X, "__dask_graph__") and type(X).__module__.partition(".")[0] == "dask"


@contextmanager
def fit_inputs(X: Table, y: Cells) -> Iterator[tuple[Table, Cells]]:
    """X and y for a fit: as they are; if X is a Dask collection, it beside the client that works on it, y in memory."""
    if not is_dask(X):
        yield X, y
        return
    with dask_client() as client:
        yield Collection(X, client), client.compute(y, sync=True) if is_dask(y) else y


@dataclass(frozen=True)
class Collection:
    """A Dask array or DataFrame that nobody has looked into yet, and the client that can."""

    X: DaskTable
    client: Client

    def partitions(self, dtypes: Dtypes) -> Partitions:
        """Its rows on the workers, all of them numbers. An error names a column."""
        from dask import delayed

        columns = len(_columns(self.X))
        parts = self.client.compute([delayed(check_partition)(block, columns, dtypes) for block in _row_blocks(self.X)])
        facts = self.client.gather(self.client.map(_partition_facts, parts, pure=False))
        for fact in facts:
            if isinstance(fact, Refused):
                parts.clear()  # or the traceback would keep the rows on the workers
                raise ValueError(fact.message)
        filled = [at for at, (rows, _) in enumerate(facts) if rows > 0] or [0]  # an empty table is a table, too
        rows, sizes = ([facts[at][of] for at in filled] for of in (0, 1))
        return Partitions(self.client, [parts[at] for at in filled], rows, sizes, columns)


def zero_row_like(X: DaskTable) -> Table:
    """One row of zeros with as many columns as X has, and their names: what can be checked without looking."""
    columns = _columns(X)
    row = np.zeros((1, len(columns)))
    if not hasattr(X, "columns"):
        return row
    import pandas

    return pandas.DataFrame(row, columns=columns)


def map_rows(function: Callable[[Table], Values], X: DaskTable) -> DaskTable:
    """A Dask array of what ``function`` answers for the rows of X, computed when it is asked for."""
    from dask import array, delayed

    blocks = _row_blocks(X)
    rows = [math.nan] * len(blocks) if hasattr(X, "columns") else X.chunks[0]
    like, task = function(zero_row_like(X)), delayed(function)
    shapes = [(count, *like.shape[1:]) for count in rows]
    answers = [array.from_delayed(task(b), shape, meta=like[:0]) for b, shape in zip(blocks, shapes, strict=True)]
    return array.concatenate(answers, allow_unknown_chunksizes=True)


def _columns(X: DaskTable) -> Sequence[str | int]:
    """The names of the columns of X, or their numbers if they have none."""
    ndim = getattr(X, "ndim", None)
    if not (isinstance(ndim, int) and ndim == 2):  # a Delayed has every attribute, but no number
        found = f"{type(X).__name__} with {ndim} dimension(s)" if isinstance(ndim, int) else type(X).__name__
        raise ValueError(
            f"X: expected a Dask array or DataFrame with rows and columns, got {found}; make it one, for example by "
            "X.reshape(-1, 1) or dask.array.from_delayed"
        )
    if hasattr(X, "columns"):
        names: Sequence[str] = X.columns
        return names
    if math.isnan(X.shape[1]):
        raise ValueError("X: the number of columns of this Dask array is unknown; call X.compute_chunk_sizes() first")
    return range(X.shape[1])


def _row_blocks(X: DaskTable) -> list[Delayed]:
    """The partitions of X, as delayed matrices or frames of whole rows."""
    delayed: list[Delayed] = X.to_delayed() if hasattr(X, "columns") else X.rechunk({1: -1}).to_delayed()[:, 0].tolist()
    return delayed


# -- the client -----------------------------------------------------------------------------------------------------


@contextmanager
def dask_client() -> Iterator[Client]:
    """The active ``distributed.Client``; where there is none, an embedded one that is closed in the end."""
    try:
        import distributed
    except ImportError:
        raise ImportError(
            "X is a Dask collection: fitting it needs one more package; run: pip install 'thresher[dask]'"
        ) from None
    try:
        active = distributed.default_client()
    except ValueError:
        active = None
    with _embedded_client() if active is None else nullcontext(active) as client:
        yield client


@contextmanager
def _embedded_client() -> Iterator[Client]:
    """Threads of this process, nothing but memory between them. What is spilled only the user can read, and it goes.

    Dask would open its status pages to the whole network, dashboard or not: they are emptied and bound to this machine.
    """
    import dask
    from dask.system import CPU_COUNT
    from distributed import Client, Scheduler, SpecCluster, Worker
    from distributed.system import MEMORY_LIMIT

    settings = {
        "distributed.scheduler.http.routes": [],
        "distributed.worker.http.routes": [],
        "distributed.worker.memory.target": HELD,
        # not by the memory of the whole process, which is also the caller's: a worker that paused would never go on
        "distributed.worker.memory.spill": False,
        "distributed.worker.memory.pause": False,
    }
    with tempfile.TemporaryDirectory(prefix="thresher-") as folder:  # which has mode 700
        local = {
            "protocol": "inproc://",
            "dashboard": False,
            "dashboard_address": "127.0.0.1:0",
            "local_directory": folder,
        }
        worker = {**local, "nthreads": CPU_COUNT, "memory_limit": MEMORY_LIMIT}
        with dask.config.set(settings):
            cluster = SpecCluster(
                scheduler={"cls": Scheduler, "options": local},
                workers={0: {"cls": Worker, "options": worker}},
                silence_logs=logging.ERROR,
            )
        with cluster, Client(cluster, set_as_default=False) as client:
            yield client


# -- on the workers -----------------------------------------------------------------------------------------------


def check_partition(part: Table | Refused, columns: int, dtypes: Dtypes) -> Sealed | Refused:
    """The partition as a matrix of finite numbers."""
    from sklearn.utils import check_array

    if isinstance(part, Refused):  # a reader of ours that could not read
        return part
    try:
        reject_text(part)
        check_structure(part)
        kinds = np.float64 if hasattr(part, "columns") else dtypes  # of a frame, one cell may decide about a column's
        X = check_array(
            part, accept_sparse=("csc", "csr", "coo"), dtype=kinds, ensure_all_finite=False, ensure_min_samples=0,
            ensure_min_features=0,
        )  # fmt: skip
        if X.shape[1] != columns:
            return Refused(f"X: a partition has {X.shape[1]} columns where X has {columns}; make them the same")
        reject_infinite(X, getattr(part, "columns", None))
    except ValueError as error:
        return Refused(without_values(str(error)))
    except Exception as error:
        return Refused(f"X: a partition cannot be read as numbers ({type(error).__name__}); correct it first")
    return Sealed(X)


def reject_infinite(X: Matrix, names: Sequence[str] | None = None) -> None:
    """Raise if a number of the matrix is not finite; says in which column, by its name or number."""
    if np.all(np.isfinite(X.data if sparse.issparse(X) else X)):
        return
    cells = sparse.coo_array(X)
    column = int(cells.col[~np.isfinite(cells.data)].min())
    name = column if names is None else repr(str(names[column]))
    raise ValueError(
        f"X: column {name} has missing or infinite values; fill them with a public constant or leave it out"
    )


def _partition_facts(part: Sealed | Refused) -> tuple[int, int] | Refused:
    """A partition's number of rows, and its size in bytes."""
    return part if isinstance(part, Refused) else (part.value.shape[0], part.__sizeof__())
