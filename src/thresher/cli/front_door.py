"""Options of the command line that are fields of a front door: name, help and default are written there alone."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import Field, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any

import typer

__all__ = ["takes_fields"]

PLAIN = (bool, int, float, str)
KINDS = {kind.__name__: kind for kind in PLAIN} | {f"{kind.__name__} | None": kind | None for kind in PLAIN}
"""What a field's type is on the command line; a field of another type states its kind."""

Command = Callable[..., None]


def takes_fields(options: type, leave_out: Collection[str] = ()) -> Callable[[Command], Command]:
    """A command takes as options the fields that have a help text, too, where ``params`` stands.

    It gets their values by the fields' names.
    """
    taken: dict[str, Field[Any]] = {
        each.metadata.get("flag", each.name): each
        for each in fields(options)
        if "help" in each.metadata and each.name not in leave_out
    }

    def widen(command: Command) -> Command:
        @wraps(command)
        def call(**values: Any) -> None:
            params = {each.name: values.pop(flag) for flag, each in taken.items()}
            command(**values, params=params)

        own = list(signature(command, eval_str=True).parameters.values())
        at = next(at for at, each in enumerate(own) if each.name == "params")
        own[at : at + 1] = [_option(flag, each) for flag, each in taken.items()]
        call.__signature__ = Signature(own)  # type: ignore[attr-defined]  # which typer reads
        return call

    return widen


def _option(flag: str, of: Field[Any]) -> Parameter:
    kind = of.metadata.get("kind") or KINDS[str(of.type)]
    option = typer.Option(help=of.metadata["help"], parser=of.metadata.get("parse"))
    described = Annotated[kind, option]  # type: ignore[valid-type]
    return Parameter(flag, Parameter.KEYWORD_ONLY, default=of.default, annotation=described)
