"""The commands that pages show are run as they stand: in order, in a folder with the tables that the page is about.

What planning.md and tutorial.md show is run by their own tests, and what needs machines of its own in tests/federated.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from messy_table import write_messy
from page_examples import blocks, commands
from repository import ROOT
from thresher.cli.app import app

SHORTER = {
    "thresher plan": ["--draws", "3"],
    "thresher audit": ["--runs", "300", "--jobs", "1"],
    "thresher audit joint-gradient-known-coins": ["--jobs", "1", "--seed", "0"],  # all its runs: it must be caught
}
"""Added to commands that begin like this: what they do does not change, only how often they do it."""

NOT_HERE = ("audit all", "--accept HASH", "stay-1.json")
"""Minutes, and every game of it is played in tests/audit; three parties, who meet in tests/federated/test_pages.py."""


def numbers(rows=2000, columns=12):
    """A table of numbers within [-1, 1], and stays of 0 to 30 days."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.uniform(-1, 1, (rows, columns)), columns=[f"gene {at}" for at in range(columns)])
    table["stay"] = np.clip(15 + 9 * table["gene 3"] - 4 * table["gene 7"] + rng.normal(0, 1, rows), 0, 30)
    return table


def people():
    """Some of whom came more than once."""
    table = numbers().rename(columns={"stay": "days"})
    return table.assign(patient=np.random.default_rng(1).integers(0, 1500, len(table)))


def parts(folder):
    folder.mkdir()
    for at in range(3):
        numbers(400 + at).to_parquet(folder / f"part-{at}.parquet")


def messy():
    write_messy("patients.csv", 4000)
    write_messy("new_patients.csv", 50, seed=1)


def everything():
    messy()
    numbers().to_csv("numbers.csv", index=False)
    numbers(20).to_csv("others.csv", index=False)
    page = (ROOT / "docs" / "federated.md").read_text()
    (task,) = [text for text in blocks(page, "toml") if "[[party]]" in text]
    Path("task.toml").write_text(task)


def places():
    everything()
    for name in ("books", "secrets"):
        Path(name).mkdir()


LIES_THERE = {
    "auditing": lambda: None,
    "choosing": lambda: None,
    "command_line": everything,
    "dask": lambda: parts(Path("patients")),
    "deploying": places,
    "errata": lambda: None,
    "estimating": messy,
    "index": messy,
    "ledger": lambda: numbers().to_csv("patients.csv", index=False),
    "people": lambda: people().to_csv("stays.csv", index=False),
    "schema": messy,
}

ELSEWHERE = {"planning", "tutorial", "federated"}


def shown_on(page):
    """What is run of a page, without comments."""
    lines = [shlex.join(shlex.split(line, comments=True)) for line in commands(page)]
    return [line for line in lines if not any(words in line for words in NOT_HERE)]


def arguments(line):
    """The words of a command line, shortened."""
    begins = max((begin for begin in SHORTER if line.startswith(begin)), key=len, default=None)
    return [*shlex.split(line)[1:], *SHORTER.get(begins, [])]


@pytest.mark.parametrize("name", LIES_THERE)
def test_the_commands_of_a_page_run_one_after_the_other(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    LIES_THERE[name]()
    for line in shown_on((ROOT / "docs" / f"{name}.md").read_text()):
        ended = CliRunner().invoke(app, arguments(line.replace("/srv/", f"{tmp_path}/")))
        assert ended.exit_code == 0, f"{line}\n{ended.output}"


def test_every_page_with_commands_is_run():
    pages = {str(path.relative_to(ROOT / "docs").with_suffix("")): path for path in ROOT.glob("docs/**/*.md")}
    assert {name for name, path in pages.items() if commands(path.read_text())} == {*LIES_THERE, *ELSEWHERE}
