"""A progress bar over a plan's answers; silent unless asked for and on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from thresher.plan import Plan

__all__ = ["answers_bar"]


@contextmanager
def answers_bar(plan: Plan, *, enabled: bool) -> Iterator[Callable[[], None]]:
    """A callable to be called once per answer."""
    if not enabled:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(plan.algorithm, total=sum(release.times for release in plan.releases))
        yield lambda: bar.advance(task)
