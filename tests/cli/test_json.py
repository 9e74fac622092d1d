"""Every command speaks JSON: on standard output, valid for any reader, and nothing else there."""

from __future__ import annotations

import csv
import json
import os
from types import SimpleNamespace

import numpy as np
import pytest
from click import Group
from typer.testing import CliRunner

from thresher.cli.app import app, whole_program
from thresher.cli.display import out, quiet_output

TASK = """
task = "regression"
target = "y"
features = ["a", "b", "c", "d"]
sparsity = 2
epsilon = 1.0
delta = 1e-6
feature_bound = 1.0
target_bound = 2.0
"""
TASK += "".join(f'[[party]]\nname = "p{at}"\naddress = "127.0.0.1:{5000 + at}"\nrows = 300\n' for at in range(3))


def leaves(command, path=()):
    """Every command that does something, with the words that call it."""
    if isinstance(command, Group):
        for name, each in command.commands.items():
            yield from leaves(each, (*path, name))
    else:
        yield path, command


COMMANDS = dict(leaves(whole_program()))


def thresher(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def strictly(text):
    """JSON has no NaN and no Infinity, though Python would read them."""

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_has_json_in_its_help(path):
    (option,) = [each for each in COMMANDS[path].params if "--json" in each.opts]
    assert option.help == "Print JSON instead of tables."
    assert "--json" in thresher(*path, "--help").stdout


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A table, a task of parties, a ledger and a model, in the working directory."""
    folder, before = tmp_path_factory.mktemp("json"), os.getcwd()
    os.chdir(folder)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 4))
    table = np.column_stack([X, X[:, 0] + 0.1 * rng.normal(size=300)])
    np.savetxt("t.csv", table, delimiter=",", header="a,b,c,d,y", comments="")
    (folder / "task.toml").write_text(TASK)
    (folder / "t.toml").write_text('[columns.y]\nrole = "target"\nbounds = [-2, 2]\n[others]\nbounds = [-1, 1]\n')
    for words in (
        "ledger create made.db",
        "ledger grant made.db people --epsilon 3 --delta 1e-6",
        "fit t.csv --target y --sparsity 2 --delta 1e-6 --feature-bound 1 --target-bound 2 --out made.json"
        " --ledger made.db --dataset people",
        "fit t.csv --target y --sparsity 2 --feature-bound 1 --target-bound 2 --out free.json --epsilon inf"
        " --algorithm ight",
    ):
        ended = thresher(*words.split())
        assert ended.exit_code == 0, ended.output
    yield folder
    os.chdir(before)


BOUNDS = "--target y --sparsity 2 --delta 1e-6 --feature-bound 1 --target-bound 2"
CASES = {
    f"fit t.csv {BOUNDS} --out model.json": lambda r: r["format"] == "thresher-model-1",
    f"fit t.csv {BOUNDS} --algorithm dp-sgd --out d.json --report page.html": lambda r: r["class"] == "DenseRegressor",
    "predict made.json t.csv": lambda r: len(r) == 300 and set(r[0]) == {"prediction"},
    "predict made.json t.csv --out p.csv": lambda r: r == {"out": "p.csv", "rows": 300},
    "plan --n 800 --d 20 --no-simulate": lambda r: len(r) > 5 and r[0]["releases"],
    "plan --n 800 --d 20 --no-simulate --epsilon inf": lambda r: r[0]["epsilon"] == "inf",
    "plan --n 200 --d 5 --sparsity 2 --draws 3 --algorithm pursuit": lambda r: len(r) == 1,
    "verify made.json": lambda r: r["ok"] and r["epsilon"] <= 1,
    "verify free.json": lambda r: r["epsilon"] == "inf",
    "audit gradient --runs 200 --jobs 1 --seed 0": lambda r: r[0]["kind"],
    "reproduce list": lambda r: r[0]["name"] == "x1",
    "reproduce x8 --quick --jobs 1 --out again": lambda r: r[0]["name"] == "x8",
    "demo": lambda r: r["certificate"]["epsilon"] == 2.0 and r["summary"]["coefficients"] and r["plan"]["releases"],
    "ledger create other.db": lambda r: r["key"].endswith("other.db.key"),
    "ledger grant made.db others --epsilon 2 --delta 1e-6": lambda r: r[0]["granted"] == 2.0,
    "ledger show made.db": lambda r: r[0]["dataset"] == "people" and r[0]["fits"] >= 1,
    "ledger history made.db people": lambda r: [entry["kind"] for entry in r] == ["grant", "fit"],
    "ledger verify made.db": lambda r: r["ok"],
    "schema draft t.csv --target y --out drafted.toml": lambda r: r["columns"]["y"]["role"] == "target",
    "schema check t.csv --schema t.toml": lambda r: r["columns"] == 4 and r["read_from_data"] == [],
    "federate plan task.toml": lambda r: len(r["parties"]) == 3 and len(r["hash"]) == 64,
    "federate certificates task.toml --folder tls": lambda r: "authority.pem" in r["files"] and len(r["files"]) >= 7,
}


@pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")
@pytest.mark.parametrize("words", CASES)
def test_standard_output_is_json_and_nothing_else(words, here):
    ended = thresher(*words.split(), "--json")
    assert ended.exit_code == 0, ended.output
    assert CASES[words](strictly(ended.stdout))


def test_every_command_but_the_one_between_machines_is_tried():
    tried = {path for path in COMMANDS for words in CASES if tuple(words.split()[: len(path)]) == path}
    assert set(COMMANDS) - tried == {("federate", "run")}


def test_predictions_are_the_same_in_both_forms(here):
    rows = list(csv.DictReader(thresher("predict", "made.json", "t.csv").stdout.splitlines()))
    records = strictly(thresher("predict", "made.json", "t.csv", "--json").stdout)
    assert [float(row["prediction"]) for row in rows] == [record["prediction"] for record in records]


def test_bad_input_leaves_standard_output_empty(here):
    for words in ("predict made.json nowhere.csv", "ledger show nowhere.db", "federate plan t.csv", "reproduce x99"):
        ended = thresher(*words.split(), "--json")
        assert (ended.exit_code, ended.stdout) == (2, "")
        assert ended.stderr.startswith("thresher: ")


def test_a_party_is_not_asked_questions_on_standard_output(here, monkeypatch):
    terminal = SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("thresher.cli.commands.federate.sys", terminal)
    ended = thresher(
        *["federate", "run", "task.toml", "t.csv", "--me", "p0", "--folder", "run", "--out", "of_all.json", "--json"]
    )
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "--accept is missing" in ended.stderr


def test_silence_ends_with_an_error():
    with pytest.raises(RuntimeError), quiet_output(True):
        raise RuntimeError
    assert not out.quiet
