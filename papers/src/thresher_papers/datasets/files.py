"""Where the files of a real set are looked for, and what is said when they are not there."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Protocol

from thresher_papers.datasets.real_set import RealSet

__all__ = ["LOADERS", "Files", "Loader", "MissingDataError", "files_of", "loader"]

PACKED = ("", ".gz", ".bz2")


class MissingDataError(FileNotFoundError, ValueError):
    """A real set's files are not in the folder; the message says which ones to put where."""


@dataclass
class Files:
    """The folder of one set; remembers what it was asked for, for the message when nothing is found."""

    name: str
    folder: Path | None
    download: bool = False
    asked: list[str] = field(default_factory=list)

    def all_of(self, *names: str) -> list[Path] | None:
        """The paths of these files, plain or packed, or None if one of them is missing."""
        self.asked.append(" and ".join(names))
        found = [self.find(name) for name in names]
        return None if None in found else [path for path in found if path]

    def find(self, name: str) -> Path | None:
        """A file that is not asked for by name when it is missing."""
        if self.folder is None:
            return None
        paths = (self.folder / f"{name}{ending}" for ending in PACKED)
        return next((path for path in paths if path.is_file()), None)

    def missing(self, *, stand_in: str | None = None, fetched: bool = False) -> MissingDataError:
        where = "no folder is named" if self.folder is None else f"{str(self.folder)!r} does not hold it"
        remedy = f"put {', or '.join(self.asked)} (or .gz, .bz2) into the folder of THRESHER_DATA or folder="
        further = "; or give download=True" if fetched else ""
        if self.download and not fetched:
            further = "; there is no place download=True could take it from"
        if stand_in is not None:
            further += f"; {stand_in} can stand in for it"
        return MissingDataError(f"data set {self.name!r}: {where}; {remedy}{further}")


def files_of(name: str, folder: str | Path | None, download: bool = False) -> Files:
    """In a folder, by default the one that the environment variable THRESHER_DATA names."""
    named = folder if folder is not None else os.environ.get("THRESHER_DATA") or None
    return Files(name, None if named is None else Path(named), download)


class Loader(Protocol):
    """A function per set."""

    def __call__(self, folder: str | Path | None = None, *, download: bool = False) -> RealSet: ...


LOADERS: dict[str, Loader] = {}


def loader(read: Callable[[Files], RealSet]) -> Loader:
    """A function of a folder (default: $THRESHER_DATA) made of one of ``Files``, listed under its own name."""
    name = read.__name__

    @wraps(read)
    def load_set(folder: str | Path | None = None, *, download: bool = False) -> RealSet:
        return read(files_of(name, folder, download))

    LOADERS[name] = load_set
    return load_set
