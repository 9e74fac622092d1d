"""A progress bar; silent unless asked for and on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress_bar"]


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
