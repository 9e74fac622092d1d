"""A progress bar; silent unless asked for and on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["parts_bar", "progress_bar"]

STEPS = 1000


@contextmanager
def progress_bar(title: str, total: int, *, enabled: bool) -> Iterator[Callable[[], None]]:
    """A callable to be called once for each of ``total`` steps."""
    if not enabled:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=total)
        yield lambda: bar.advance(task)


@contextmanager
def parts_bar(title: str, *, enabled: bool) -> Iterator[Callable[[float], None]]:
    """A callable to be called with the part of the work that is done, from 0 to 1."""
    with progress_bar(title, STEPS, enabled=enabled) as step:
        told = 0

        def tell(part: float) -> None:
            nonlocal told
            now = min(int(part * STEPS), STEPS)
            for _ in range(told, now):
                step()
            told = max(told, now)

        yield tell
