"""What a page of the documentation shows: examples with their output, and commands."""

from __future__ import annotations

import re
import shlex

import pytest
from typer.testing import CliRunner

from thresher.cli.app import app, whole_program

EXTRAS = {"dask": "distributed", "flower": "flwr", "mpc": "mpyc", "parquet": "pyarrow", "postgres": "psycopg",
          "report": "matplotlib", "torch": "opacus"}  # fmt: skip


def blocks(text, language):
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def examples(text):
    """Python blocks, each with the text block directly after it: what it prints. Without one, nothing is said."""
    shown = re.findall(r"^```python\n(.*?)^```\n(?:\n*```text\n(.*?)^```)?", text, flags=re.DOTALL | re.MULTILINE)
    assert len(shown) == text.count("```python"), "a block that is not at the start of a line would not be run"
    return shown


def run_examples(text, capsys):
    """Run all of a page's blocks in one namespace, and compare what they print where the page says it."""
    names: dict[str, object] = {}
    for code, printed in examples(text):
        exec(code, names)  # noqa: S102
        out = capsys.readouterr().out
        assert not printed or out == printed
    return names


def follow(text, capsys):
    """Do what a page says from top to bottom, as a reader would: its Python blocks and its thresher commands."""
    names: dict[str, object] = {}
    shown = re.findall(
        r"^```(python|bash|sh)\n(.*?)^```\n(?:\n*```text\n(.*?)^```)?", text, flags=re.DOTALL | re.MULTILINE
    )
    for language, code, printed in shown:
        if language == "python":
            exec(code, names)  # noqa: S102
            out = capsys.readouterr().out
            assert not printed or out == printed
            continue
        for line in commands(f"```bash\n{code}```"):
            ended = CliRunner().invoke(app, shlex.split(line, comments=True)[1:])
            assert ended.exit_code == 0, f"{line}\n{ended.output}"
    return names


def skip_unless_there(text, request, monkeypatch):
    """A page may begin with <!-- needs: data, torch -->: real data, or extras."""
    said = re.match(r"<!-- needs: (.*?) -->", text)
    for need in re.split(r",\s*", said[1]) if said else ():
        if need == "data":
            monkeypatch.setenv("THRESHER_DATA", str(request.getfixturevalue("data_dir")))
        else:
            pytest.importorskip(EXTRAS[need], reason=f"{need} is missing: pip install 'thresher[{need}]'")


def commands(text):
    """The lines of a page's shell blocks that call thresher, continued lines joined."""
    lines = "\n".join(blocks(text, "(?:bash|sh)")).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.startswith("thresher ")]


def problem_of(line):
    """What is wrong with a command line, judged by the program itself: None, or a command or options it has not."""
    _, *words = shlex.split(line, comments=True)
    command, called = whole_program(), ["thresher"]
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        if words[0] not in command.commands:
            return f"{' '.join(called)} has no command {words[0]}"
        command = command.commands[words[0]]
        called.append(words.pop(0))
    known = {name for param in command.params for name in (*param.opts, *param.secondary_opts)} | {"--help"}
    unknown = [word for word in words if word.startswith("--") and word.split("=")[0] not in known]
    return f"{' '.join(called)} has no {', '.join(unknown)}" if unknown else None
