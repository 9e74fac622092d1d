"""The pages on results and on the command line say what is so."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout

import pytest
from click import Group
from typer.testing import CliRunner

import thresher
from repository import DOCS
from thresher.cli.app import app, whole_program

READING, COMMANDS = (DOCS / "reading.md").read_text(), (DOCS / "command_line.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", READING, flags=re.DOTALL)
LINES = [line for block in re.findall(r"```bash\n(.*?)```", COMMANDS, flags=re.DOTALL) for line in block.splitlines()]
TREE = whole_program()


def test_the_examples_of_the_page_on_reading_print_what_they_say(tmp_path, monkeypatch):
    """No seed is set for the noise, as in the page; in 100 runs both features were always the only ones."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    assert sum(text != "" for _, text in BLOCKS) == 4
    for code, text in BLOCKS:
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(code, names)  # noqa: S102
        if text:
            assert printed.getvalue() == text


def test_the_table_of_warnings_lists_all():
    listed = re.findall(r"^\| `(\w+)` \|", READING, flags=re.MULTILINE)
    assert sorted([*listed, "ThresherWarning"]) == sorted(thresher.privacy.warnings.__all__)


def command_of(words):
    command = TREE
    for word in words:
        if isinstance(command, Group) and not word.startswith("-"):
            command = command.commands[word]
    return command


@pytest.mark.parametrize("line", LINES)
def test_every_command_and_option_shown_exists(line):
    program, *words = line.split()
    assert program == "thresher"
    command = command_of(words)
    known = {option for each in (TREE, command) for parameter in each.params for option in parameter.opts}
    known |= {option for parameter in command.params for option in parameter.secondary_opts}
    options = {word for word in words if word.startswith("--")}
    assert options <= known
    assert not isinstance(command, Group)


def test_the_table_of_json_lists_every_command():
    table = COMMANDS[COMMANDS.index("## `--json`") :]
    cells = " ".join(re.findall(r"^\| (`.*?`) \|", table[: table.index("```bash")], flags=re.MULTILINE))

    def leaves(command, path=""):
        if not isinstance(command, Group):
            return {path.strip()}
        return set().union(*(leaves(each, f"{path} {name}") for name, each in command.commands.items()))

    assert set(re.findall("`(.*?)`", cells)) == leaves(TREE)


@pytest.mark.parametrize(
    ("words", "status"), [("verify m.json", 1), ("verify nowhere.json", 2), ("fit nowhere.csv", 2)]
)
def test_exit_statuses_are_as_listed(words, status, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    CliRunner().invoke(app, ["demo", "--out", "m.json"])
    (tmp_path / "m.json").write_text((tmp_path / "m.json").read_text().replace('"epsilon": 2.0', '"epsilon": 1.0'))
    assert CliRunner().invoke(app, words.split()).exit_code == status
