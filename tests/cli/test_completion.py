"""Shells complete commands, options and the values that are enumerated; files are left to the shell."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys

import pytest
import typer.main
from click.shell_completion import ShellComplete

from thresher.algorithms import DENSE, REGISTRY
from thresher.cli.app import app
from thresher_papers.experiments import NAMES

PROGRAM = [sys.executable, "-c", "import sys; sys.argv[0] = 'thresher'; from thresher.cli.app import main; main()"]


def completed(words):
    """What may stand in place of the last word."""
    *arguments, incomplete = words.split(" ")[1:]
    shell = ShellComplete(typer.main.get_command(app), {}, "thresher", "_THRESHER_COMPLETE")
    return [item.value for item in shell.get_completions(arguments, incomplete)]


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("thresher le", ["ledger"]),
        ("thresher --ver", ["--verbose", "--version"]),
        ("thresher fit --feature", ["--feature-bound"]),
        ("thresher fit --algorithm ", list(dict.fromkeys(("auto", *REGISTRY, *DENSE)))),
        ("thresher fit --algorithm dpsl", ["dpsl-kt"]),
        ("thresher fit --task c", ["classification"]),
        ("thresher fit --adjacency ", ["replace-one", "add-remove"]),
        ("thresher plan --algorithm peeling,pur", ["peeling,pursuit"]),
        ("thresher audit pursuit", ["pursuit"]),
        ("thresher audit gradient-q", ["gradient-quiet"]),
        ("thresher reproduce ", ["list", *NAMES]),
        ("thresher reproduce x5 x2", [name for name in NAMES if name.startswith("x2")]),
        ("thresher ledger ver", ["verify"]),
        ("thresher ledger grant budget.db patients --unit ", ["row", "person"]),
        ("thresher federate certificates --f", ["--folder"]),
    ],
)
def test_names_are_completed(words, values):
    assert completed(words) == values


@pytest.mark.parametrize(
    "words", ["thresher fit ", "thresher fit pat", "thresher predict model.json ", "thresher fit --out "]
)
def test_files_are_left_to_the_shell(words):
    assert completed(words) == []


def run(arguments=(), command=PROGRAM, **environment):
    environment = {**os.environ, **environment}
    return subprocess.run([*command, *arguments], env=environment, capture_output=True, text=True, check=False)


def test_bash_asks_by_the_environment():
    asked = run(_THRESHER_COMPLETE="complete_bash", COMP_WORDS="thresher fit --algorithm pu", COMP_CWORD="3")
    assert asked.stdout.split() == ["pursuit"]


def test_zsh_asks_by_the_environment():
    asked = run(_THRESHER_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS="thresher ledger hi")
    assert asked.stdout.startswith("_arguments")
    assert '"history"' in asked.stdout
    assert run(_THRESHER_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS="thresher fit ").stdout.strip() == "_files"


def test_fish_asks_by_the_environment():
    asked = {"_THRESHER_COMPLETE": "complete_fish", "_TYPER_COMPLETE_ARGS": "thresher fit --adjacency add"}
    assert run(**asked, _TYPER_COMPLETE_FISH_ACTION="get-args").stdout.strip() == "add-remove"
    assert run(**asked, _TYPER_COMPLETE_FISH_ACTION="is-args").returncode == 0


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("bash", "complete -o default -F _thresher_completion thresher"),
        ("zsh", "compdef _thresher_completion thresher"),
        ("fish", "complete --command thresher"),
    ],
)
def test_each_shell_has_its_script(shell, line):
    """Typer finds out by itself which shell it is started from; here it is told."""
    shown = run(["--show-completion", shell], _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert line in shown.stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_a_bash_that_read_its_script_completes(tmp_path):
    program = tmp_path / "thresher"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(PROGRAM)} "$@"\n')
    program.chmod(0o755)
    script = (
        "source <(thresher --show-completion)\n"
        "COMP_WORDS=(thresher fit --algorithm pu); COMP_CWORD=3\n"
        '_thresher_completion thresher; echo "${COMPREPLY[@]}"\n'
    )
    done = run(["-c", script], ["bash"], PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert done.stdout.split() == ["pursuit"], done.stderr
