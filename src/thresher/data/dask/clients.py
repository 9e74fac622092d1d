"""The Dask client a fit works with: the active one, or one of its own in this process while the fit lasts."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

__all__ = ["client_at_hand"]

HELD = 0.3  # of the memory, rows before Dask spills; products, copies and the rest of the process take theirs on top


@contextmanager
def client_at_hand() -> Iterator[Any]:
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
    with _embedded() if active is None else nullcontext(active) as client:
        yield client


@contextmanager
def _embedded() -> Iterator[Any]:
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
