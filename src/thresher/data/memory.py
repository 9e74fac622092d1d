"""Whether a fit has room: what is refused for want of memory is refused before anything is spent."""

from __future__ import annotations

from pathlib import Path

from scipy import sparse

from thresher.data.typing import Table

__all__ = ["check_memory", "free_memory"]

LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))  # of a container


def check_memory(X: Table, copies: int) -> None:
    """Raise if so many copies of the rows, or one if they are sparse, plainly do not fit.

    It is the least that a fit needs, so a fit that would have gone through is not refused. How many rows there are may
    be private: the message does not tell.
    """
    if sparse.issparse(X):
        need = sum(getattr(X, name).nbytes for name in ("data", "indices", "row", "col") if hasattr(X, name))
    else:
        need = copies * int(getattr(X, "nbytes", 0))  # rows on Dask workers take no room here
    free = free_memory()
    if free is not None and need > free:
        raise MemoryError(
            f"X: a fit works on a copy of its rows, which does not fit into the {free / 2**30:.2g} GiB of memory that "
            "are free. Nothing was read or spent; free memory, or give float32, a sparse matrix, fewer columns, or a "
            "Dask collection"
        )


def free_memory() -> int | None:
    """Bytes that this process can still have at most, swap included; None if this system does not say."""
    try:
        system = _sizes(Path("/proc/meminfo"))
        own = _sizes(Path("/proc/self/status"))
        room = [system["MemAvailable"] + system["SwapFree"]]
        for limit in LIMITS:
            if limit.exists() and limit.read_text().strip().isdigit():
                room.append(int(limit.read_text()) + system["SwapTotal"] - own["VmRSS"])
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most != resource.RLIM_INFINITY:
            room.append(most - own["VmSize"])
    except (ImportError, OSError, ValueError, KeyError):
        return None
    return max(0, min(room))


def _sizes(path: Path) -> dict[str, int]:
    """The lines "name: number kB" of a file, in bytes."""
    lines = [line.split() for line in path.read_text().splitlines()]
    return {words[0].rstrip(":"): 1024 * int(words[1]) for words in lines if len(words) == 3 and words[2] == "kB"}
