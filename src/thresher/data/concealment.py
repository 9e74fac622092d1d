"""Doors behind which cells are read: what they raise quotes none, and carries nothing along that does.

``raise ... from None`` hides an exception from what a traceback prints, and keeps it all the same: as ``__context__``,
where a reporter of errors, a debugger or a log finds it, with the cell that NumPy or a parser quoted. What lies in the
local variables of a traceback's frames is not touched.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

__all__ = ["concealed_comparison", "without_causes"]

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


def without_causes(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """A door whose exceptions come alone, without those behind them."""

    @functools.wraps(function)
    def door(*args: Given.args, **kwargs: Given.kwargs) -> Answer:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            error.__cause__ = error.__context__ = None
            raise

    return door


@contextmanager
def concealed_comparison(wanted: str) -> Iterator[None]:
    """What others' code says of targets that it cannot compare may quote them: only its kind is told."""
    try:
        yield
    except Exception as error:
        raise ValueError(
            f"y cannot be compared with the predictions ({type(error).__name__}); give {wanted} for each row of X"
        ) from None
