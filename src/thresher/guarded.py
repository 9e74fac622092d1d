"""What commands share: bad input ends in one line on stderr and exit status 2, never in a traceback."""

from __future__ import annotations

import functools
import logging
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from thresher.budget import BudgetExceeded
from thresher.warnings import ThresherWarning

__all__ = ["check_folder", "guarded", "log_to_stderr"]


def guarded(function: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(function)
    def command(*args: Any, **kwargs: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("always", ThresherWarning)
            warnings.showwarning = _one_line_warning  # type: ignore[assignment]
            try:
                function(*args, **kwargs)
            except (ValueError, TypeError, ArithmeticError, BudgetExceeded, OSError) as error:
                typer.echo(f"thresher: {' '.join(str(error).split())}", err=True)
                raise typer.Exit(2) from None

    return command


def check_folder(path: Path) -> None:
    """Nothing may be spent on a model that cannot be written."""
    if not os.access(path.parent, os.W_OK) or path.is_dir():
        raise ValueError(f"--out={str(path)!r} cannot be written; give a file in a folder that exists and is writable")


def log_to_stderr(verbosity: int) -> Callable[[], None]:
    """Show what the library logs, and nobody else's lines; what is returned ends it."""
    log, handler = logging.getLogger("thresher"), _ToStderr()
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s: %(message)s", "%H:%M:%S"))
    log.addHandler(handler)
    log.setLevel(logging.INFO if verbosity == 1 else logging.DEBUG)

    def end() -> None:
        log.removeHandler(handler)
        log.setLevel(logging.NOTSET)

    return end


class _ToStderr(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        typer.echo(self.format(record), err=True)


def _one_line_warning(message: Warning | str, *_: Any) -> None:
    typer.echo(f"thresher: warning: {' '.join(str(message).split())}", err=True)
