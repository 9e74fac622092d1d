"""Files that must survive a power cut, and a full disk."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

__all__ = ["atomic_file", "sync_folder", "write_atomically"]


def write_atomically(path: str | Path, text: str) -> None:
    """Put a text in the place of a file: at any moment the old one is there, or the new one, as a whole."""
    with atomic_file(path) as file:
        file.write(text)


@contextmanager
def atomic_file(path: str | Path) -> Iterator[TextIO]:
    """A text file, in UTF-8, that takes the place of ``path`` when all of it is on the disk, and never before."""
    place = Path(os.path.realpath(path))  # through a link, as any writing
    if place.exists() and not place.is_file():  # a pipe or a device has no old content, and nothing can take its place
        with place.open("w", encoding="utf-8", newline="") as stream:
            yield stream
        return
    draft = place.with_name(f".thresher-{secrets.token_hex(8)}")
    try:
        with draft.open("x", encoding="utf-8", newline="") as file:
            if place.exists():
                draft.chmod(place.stat().st_mode)  # who may read it stays as it was
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, place)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_folder(place.parent)


def sync_folder(folder: Path) -> None:
    """Put the names of a folder's files on the disk: on POSIX systems a new file is safe only when they are, too."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
