"""The program and the package start at once: nothing is imported before it is needed, and everything is found then."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from importlib import import_module, metadata
from pathlib import Path

import click
import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

import thresher
from thresher import Budget, LocalSparseRegressor, SparseRegressor
from thresher.algorithms import DENSE, REGISTRY
from thresher.cli import options
from thresher.cli.app import COMMANDS, ELSEWHERE, app, load_command, whole_program
from thresher.cli.commands import plan, schema
from thresher.cli.errors import call_or_complain
from thresher.estimates import draft
from thresher.federated import FederatedSparseRegressor
from thresher.models.files import FRONT_DOORS
from thresher.models.linear import KINDS
from thresher.planning.forecast import DRAWS, NOT_PRIVATE, PRIVATE, SIGNAL

SLOW = {"numpy", "scipy", "sklearn", "rich", "joblib", "matplotlib", "thresher_papers"}


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


# -- the package ----------------------------------------------------------------------------------------------------

PUBLIC = {
    "SparseRegressor", "SparseClassifier", "DenseRegressor", "DenseClassifier", "LocalSparseRegressor",
    "LocalSparseClassifier", "PrivateScaler", "PrivateSearchCV", "Schema", "Budget", "BudgetExceeded", "Ledger",
    "Certificate", "combine", "load_model", "__version__", "ThresherWarning", "PrivacyWarning", "PrivacyOff",
    "PrintedNoise", "LargeDelta", "FittedBefore", "Unsettled", "UtilityWarning", "NoiseDrowns", "WideRanges",
}  # fmt: skip


def test_the_public_names_are_these_and_all_are_found():
    assert set(thresher.__all__) == PUBLIC == set(dir(thresher)) - set(thresher.ROOMS)
    names: dict[str, object] = {}
    exec("from thresher import *", names)  # noqa: S102
    assert set(names) >= PUBLIC
    assert thresher.Budget is Budget
    assert thresher.__version__ == metadata.version("thresher")


def test_type_checkers_read_what_python_finds():
    """The imports that only they see, against the table that only Python reads."""
    tree = ast.parse(Path(thresher.__file__).read_text())
    read = {
        (node.module.removeprefix("thresher."), alias.name)
        for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module.startswith("thresher.")
        for alias in node.names
    }  # fmt: skip
    assert read == {(module, name) for module, names in thresher.NAMES_OF.items() for name in names}


def test_rooms_are_there_without_an_import_of_their_own():
    ended = run("import thresher; print(thresher.algorithms.Pursuit(), thresher.accounting.zcdp_rho(1.0, 1e-6) > 0)")
    assert ended.stdout.endswith("True\n"), ended.stderr


def test_a_name_that_is_not_there_is_said_to_be():
    with pytest.raises(AttributeError, match="module 'thresher' has no attribute 'SparseRegresor'"):
        thresher.SparseRegresor  # noqa: B018


def test_importing_the_package_imports_nothing_slow():
    loaded = run("import sys, thresher; print(*{name.split('.')[0] for name in sys.modules})").stdout.split()
    assert "thresher" in loaded
    assert not SLOW & set(loaded)


def test_models_of_every_room_are_read_back_in_a_process_that_knows_none(tmp_path):
    for front_door in FRONT_DOORS:
        import_module(front_door)
    assert {kind.__module__ for kind in KINDS.values() if kind.__module__.startswith("thresher.")} == set(FRONT_DOORS)
    X, y = [[0.1 * (at % 10), 0.5] for at in range(40)], [0.1 * (at % 10) for at in range(40)]
    settings = {"delta": 1e-6, "feature_bound": 1.0, "target_bound": 1.0}
    models = [
        SparseRegressor(1, **settings).fit(X, y),
        LocalSparseRegressor(1, **settings).fit(X, y),
        FederatedSparseRegressor(1, **settings).fit([(X, y), (X, y), (X, y)]),
    ]
    for model in reversed(models):  # the last room first
        path = tmp_path / f"{type(model).__name__}.json"
        model.save(path)
        ended = run(f"from thresher import load_model; print(type(load_model({str(path)!r})).__name__)")
        assert ended.stdout.split() == [type(model).__name__], ended.stderr


# -- the program ----------------------------------------------------------------------------------------------------


def lines_of_program(words, **environment):
    """What the program prints, and last the packages it imported for that."""
    code = f"import sys; sys.argv = {['thresher', *words]!r}\nfrom thresher.cli.app import main\n"
    code += "try:\n    main()\nfinally:\n    print(); print(*{name.split('.')[0] for name in sys.modules})"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def helps():
    """The program's own --help, that of each command, and of each command that is in another."""
    yield ["--help"]
    for name in COMMANDS:
        yield [name, "--help"]
        yield from ([name, inner, "--help"] for inner in getattr(load_command(name), "commands", ()))


@pytest.mark.parametrize("words", [["--version"], *helps()], ids=" ".join)
def test_help_and_version_import_nothing_slow(words):
    *said, loaded = lines_of_program(words)
    own = {"thresher_papers"} if words[0] in ELSEWHERE else set()
    assert any(said)
    assert not SLOW & set(loaded.split()) - own


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("thresher pre", "predict"),
        ("thresher fit --feat", "--feature-bound"),
        ("thresher fit --algorithm two", "two-stage"),
        ("thresher plan --algorithm auto,peel", "auto,peeling"),
        ("thresher ledger gr", "grant"),
        ("thresher ledger grant --unit p", "person"),
        ("thresher schema d", "draft"),
        ("thresher federate c", "certificates"),
    ],
)
def test_a_shell_completes_words_without_anything_slow(typed, offered):
    asked = {"_THRESHER_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    *said, loaded = lines_of_program([], **asked)
    assert offered in said
    assert not SLOW & set(loaded.split())


def test_what_help_says_without_an_import_is_what_the_library_does():
    assert (("auto", *REGISTRY), ("auto", *DENSE)) == (options.SPARSE, options.DENSE)
    assert (plan.NOT_PRIVATE, plan.SIGNAL, plan.DRAWS, plan.PRIVATE) == (NOT_PRIVATE, SIGNAL, DRAWS, PRIVATE)
    assert schema.LARGEST == draft.LARGEST


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("width", [30, 60, 300])
def test_the_list_of_commands_says_what_each_says_of_itself(name, width):
    listed = get_command(app).commands[name]
    assert listed.get_short_help_str(width) == load_command(name).get_short_help_str(width)


def test_every_module_of_commands_is_in_the_list():
    folder = Path(thresher.__file__).parent / "cli" / "commands"
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert {*modules, "reproduce"} == set(COMMANDS)
    assert all(isinstance(command, click.Command) for command in whole_program().commands.values())


@pytest.mark.parametrize("words", ["reproduce", "reproduce list", "reproduce x5 --quick", "reproduce --help"])
def test_where_the_papers_are_not_installed_their_command_says_how(words, monkeypatch):
    monkeypatch.setattr(metadata, "entry_points", lambda **wanted: ())
    load_command.cache_clear()
    ended = CliRunner().invoke(app, words.split())
    load_command.cache_clear()
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert ended.stderr.splitlines() == [
        "thresher: reproduce needs one more package; run, in a clone of the repository: pip install ./papers"
    ]


def test_a_package_that_is_missing_is_one_line(capsys):
    with pytest.raises(typer.Exit) as ended:
        call_or_complain(import_module, "thresher.no_such_room")
    assert ended.value.exit_code == 2
    assert capsys.readouterr().err == "thresher: No module named 'thresher.no_such_room'\n"
