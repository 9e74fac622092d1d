"""Pages that are made while the site is built: the files of the repository's root, and what --help prints."""

from __future__ import annotations

import re
from pathlib import Path

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from typer.testing import CliRunner

from thresher.cli.app import app, whole_program

ROOT = Path(__file__).parents[2]
ROOT_FILES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}
CITING = "# Citing\n\nThe repository's `CITATION.cff`, with the papers that thresher implements:\n\n```yaml\n{}\n```\n"
LICENCE = "# Licence\n\n```text\n{}\n```\n"
CLI = """# Command line

What `--help` prints. Each command ends with status 0, with 2 and one line if an input is wrong, or with another status
that its own guide explains.
"""


def moved(text: str) -> str:
    """A page of the root, with its links as they are seen from docs/."""
    for name, page in ROOT_FILES.items():
        text = text.replace(f"]({name}", f"]({page}")
    text = text.replace("](LICENSE)", "](licence.md)").replace("](CITATION.cff)", "](citing.md)")
    return re.sub(r"\]\(docs/", "](", text)


def command_line() -> str:
    """The help of every command, in the order of the program's own list."""
    sections = [CLI]
    for words in ([], *commands(whole_program())):
        shown = CliRunner().invoke(app, [*words, "--help"], prog_name="thresher", env={"COLUMNS": "100"})
        text = shown.stdout.strip()
        sections.append(f"## thresher {' '.join(words)}".rstrip() + f"\n\n```text\n{text}\n```\n")
    return "\n".join(sections)


def commands(group: click.Command, above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The words that call each command below a group."""
    found: list[tuple[str, ...]] = []
    for name, command in getattr(group, "commands", {}).items():
        found += [(*above, name), *commands(command, (*above, name))]
    return found


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """MkDocs calls this once it knows the files of docs/."""
    pages = {page: moved((ROOT / name).read_text(encoding="utf-8")) for name, page in ROOT_FILES.items()}
    pages["citing.md"] = CITING.format((ROOT / "CITATION.cff").read_text(encoding="utf-8").strip())
    pages["licence.md"] = LICENCE.format((ROOT / "LICENSE").read_text(encoding="utf-8").strip("\n"))
    pages["api/cli.md"] = command_line()
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files
