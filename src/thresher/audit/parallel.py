"""Many independent runs over the cores, with one progress bar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from joblib import Parallel, delayed
from sklearn.base import clone

from thresher.audit.cases import Estimator
from thresher.privacy.progress import progress_bar

__all__ = ["fresh_clone", "run_in_parallel"]

Result = TypeVar("Result")


def run_in_parallel(
    task: Callable[..., Result], arguments: Sequence[tuple[Any, ...]], *, title: str, n_jobs: int | None, verbose: int
) -> list[Result]:
    """task(*a) for each a of ``arguments``, in their order, whatever the number of processes."""
    with progress_bar(title, len(arguments), enabled=verbose > 0) as advance:
        results = []
        for result in Parallel(n_jobs=n_jobs, return_as="generator")(delayed(task)(*a) for a in arguments):
            results.append(result)
            advance()
    return results


def fresh_clone(estimator: Estimator, seed: int) -> Estimator:
    """An unfitted copy for one run, with noise of its own if it takes a ``random_state``."""
    model: Estimator = clone(estimator)
    if "random_state" in model.get_params():
        model.set_params(random_state=seed)
    return model
