"""The command line. It lists its commands without importing them: a command loads what it needs when it is called."""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import cache
from importlib import import_module, metadata
from typing import Annotated, Any, cast

import click
import typer
import typer.core
from typer.main import get_command

from thresher.cli.errors import call_or_complain, log_to_stderr

typer.core.HAS_RICH = False  # help is plain text; for rich, typer would put a backslash before every [default: ...]

COMMANDS = {
    "fit": "Fit a private sparse model to DATA and write it with its certificate.",
    "predict": "Predict every row of DATA.",
    "plan": "Show what every algorithm would release, with what noise, and what would come of it on such a table.",
    "verify": "Recompute the privacy cost of a model from its listed releases alone; exit status 1 if the claim fails, "
    "if the certificate contradicts itself, or if it belongs to another model.",
    "audit": "Try to disprove a privacy claim: run the mechanism on neighbouring data sets and guess which one it was.",
    "reproduce": "The tables and figures of the papers: what they print, what the printed formulas give, what sound "
    "noise gives.",
    "demo": "The main job on synthetic data: plan, fit, coefficients, certificate.",
    "federate": "Fit one model over the rows of several parties, each on a machine of its own (extra: thresher[mpc]).",
    "ledger": "What may be spent on data sets, and what was: fits with --ledger count, across processes and crashes.",
    "schema": "Public facts about a table, in a small TOML file: roles, bounds, categories, what fills gaps.",
}
"""What the program can do, in the order of its list, each with the first sentence of its own help."""

ELSEWHERE = {"reproduce": "reproduce needs one more package; run, in a clone of the repository: pip install ./papers"}
"""Commands that other distributions bring, by the entry point group thresher.commands, and where those are."""


class LazyGroup(typer.core.TyperGroup):
    """Knows commands by a line of help each, and loads the one that is called."""

    def __init__(self, **settings: Any) -> None:
        listed = {name: click.Command(name, help=told) for name, told in COMMANDS.items()}
        super().__init__(**{**settings, "commands": listed})

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else load_command(name), rest

    def invoke(self, ctx: click.Context) -> Any:
        return call_or_complain(super().invoke, ctx)


@cache
def load_command(name: str) -> click.Command:
    """The command itself, from its module or from another distribution."""
    if name not in ELSEWHERE:
        return _command_of(name, getattr(import_module(f"thresher.cli.commands.{name}"), name))
    found = metadata.entry_points(group="thresher.commands", name=name)
    return _command_of(name, next(iter(found)).load()) if found else _explain_absence(name)


def _command_of(name: str, found: typer.Typer | Callable[..., None]) -> click.Command:
    """Of a function, or of a Typer with commands of its own."""
    if isinstance(found, typer.Typer):
        return get_command(found)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name)(found)
    return get_command(alone)


def _explain_absence(name: str) -> click.Command:
    """Says what to install, whatever it is called with."""

    def explain() -> None:
        raise ValueError(ELSEWHERE[name])

    anything = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(name, callback=explain, context_settings=anything, add_help_option=False)


app = typer.Typer(
    cls=LazyGroup,
    help="Differentially private sparse learning: a small model you may publish, with a certificate of what it cost.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(metadata.version("thresher"))
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            show_default=False,
            help="Log the steps of a fit to standard error; -vv: each release and answer as well.",
        ),
    ] = 0,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options of thresher itself."""
    if verbose:
        context.call_on_close(log_to_stderr(verbose))


def whole_program() -> click.Group:
    """With every command loaded, for whoever lists their options."""
    group = cast(click.Group, get_command(app))
    group.commands = {name: load_command(name) for name in COMMANDS}
    return group


def main() -> None:
    """The program."""
    if hasattr(signal, "SIGPIPE"):  # a reader that has seen enough, such as head, is not an error
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    app()
