"""What the program says on stderr: bad input ends in one line and exit status 2, never in a traceback."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import ParamSpec, TypeVar

import typer

from thresher.privacy.budget import BudgetExceeded
from thresher.privacy.warnings import ThresherWarning
from thresher.report.words import displayable

__all__ = ["call_or_complain", "check_outputs", "complain", "log_to_stderr"]

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


def call_or_complain(function: Callable[Given, Answer], *args: Given.args, **kwargs: Given.kwargs) -> Answer:
    """What ``function`` returns; bad input ends in one line, every warning is one."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", ThresherWarning)
        warnings.showwarning = _one_line_warning  # type: ignore[assignment]
        try:
            return function(*args, **kwargs)
        except RecursionError:
            complain("a file is nested too deeply to be one of ours; take it from its source again")
        except MemoryError as error:
            complain(f"there is not enough memory for what a file says, or for so much data: {error}")
        except (ValueError, TypeError, ArithmeticError, BudgetExceeded, OSError, ImportError) as error:
            complain(str(error))
        raise typer.Exit(2)  # alone: what was wrong may have quoted a cell


def complain(text: str) -> None:
    """One line on standard error."""
    typer.echo(displayable(f"thresher: {' '.join(text.split())}"), err=True)


def check_outputs(force: bool, *, inputs: Iterable[Path | None] = (), **paths: Path | None) -> None:
    """Nothing may be spent on what cannot be written, or what would overwrite a file unasked. Names are options.

    What a command reads, or a ledger keeps, is never overwritten: nobody means that by --force.
    """
    taken: set[Path] = set()
    read = {
        _place(file) for path in inputs if path is not None for file in (path.iterdir() if path.is_dir() else [path])
    }
    for name, path in paths.items():
        if path is None:
            continue
        given, place = f"--{name}={str(path)!r}", _place(path)
        if not os.access(place.parent, os.W_OK) or place.is_dir() or place.is_symlink():
            raise ValueError(f"{given} cannot be written; give a file in a folder that exists and is writable")
        if place in read:
            raise ValueError(f"{given} is a file that this command reads, or that the ledger keeps; give another name")
        if path.is_file() and not force:
            raise ValueError(f"{given} exists; give another name, or --force to overwrite it")
        if place in taken:
            raise ValueError(f"{given} is the place of another output, too; give another file")
        taken.add(place)


def _place(path: Path) -> Path:
    """Where a link leads, there it is written; of a circle of links, itself."""
    return Path(os.path.realpath(path))


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
        typer.echo(displayable(self.format(record)), err=True)


def _one_line_warning(message: Warning | str, *_: object) -> None:
    complain(f"warning: {message}")
