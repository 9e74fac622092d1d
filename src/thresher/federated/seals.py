"""Seals on a journal's lines: whoever changes the file without its key is found out.

Every line carries a keyed hash of itself and of the seal before it, so that none can be changed, moved, repeated or
taken out. How many lines there are, and the last seal, are in a small file of their own, written after each line: lines
cannot be taken off the end either. A crash between the two leaves one line more than that file says, which nobody has
acted upon yet, and no other difference. The key is drawn by the operating system when the first line is written and
lies beside the journal, for its owner's eyes only: a party on one machine has no other secret, and one that answers a
server may be a new process each time.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
from hashlib import sha256
from pathlib import Path
from typing import Any

from thresher.data.atomic_files import sync_folder

__all__ = ["Entry", "Seals"]

START = ""  # the seal before the first line
KEY_SIZE = 32  # bytes

Entry = dict[str, Any]


class Seals:
    """The chain of one journal, as far as it was read or written."""

    def __init__(self, journal: Path) -> None:
        self._key_file, self._head_file = journal.with_suffix(".key"), journal.with_suffix(".head")
        self._key = b""
        self._lines, self._last = 0, START

    def verified_entries(self, lines: list[bytes]) -> list[Entry]:
        """The entries in the lines of a file; ValueError says what was done to it."""
        if self._key_file.exists():
            self._key = self._key_file.read_bytes()
        elif lines or self._head_file.exists():
            raise ValueError(f"its key {self._key_file.name} is missing; put it back")
        entries = [self._entry(line) for line in lines]
        missing = self._lines_on_record() - len(lines)
        if missing > 0:
            raise ValueError(f"{missing} of its last lines are gone")
        if missing < -1:
            raise ValueError(f"{self._head_file.name} is missing or old; put it back")
        if missing == -1:
            self._record()
        return entries

    def next_line(self, entry: Entry) -> bytes:
        """The next line."""
        if not self._key:
            self._key = secrets.token_bytes(KEY_SIZE)
            write_whole(self._key_file, self._key)
        body = json.dumps(entry)
        self._lines, self._last = self._lines + 1, self._seal("line", self._last, body)
        return _with_seal(body, self._last)

    def record_head(self) -> None:
        """The last line is on the disk."""
        self._record()

    def _entry(self, line: bytes) -> Entry:
        entry: Entry = json.loads(line)
        seal, body = entry.pop("seal", ""), json.dumps(entry)
        self._lines, self._last = self._lines + 1, self._seal("line", self._last, body)
        if not hmac.compare_digest(str(seal), self._last) or line != _with_seal(body, self._last):
            raise ValueError(f"line {self._lines} is not as it was written, or not at its place")
        return entry

    def _record(self) -> None:
        head = f"{self._lines} {self._last}"
        write_whole(self._head_file, f"{head} {self._seal('head', head)}".encode())

    def _lines_on_record(self) -> int:
        if not self._head_file.exists():
            return 0
        head, _, seal = self._head_file.read_text(encoding="utf-8").rpartition(" ")
        if not hmac.compare_digest(seal, self._seal("head", head)):
            raise ValueError(f"{self._head_file.name} was changed")
        return int(head.split(" ")[0])

    def _seal(self, *words: str) -> str:
        return hmac.new(self._key, "\n".join(words).encode(), sha256).hexdigest()


def _with_seal(body: str, seal: str) -> bytes:
    return f'{body[:-1]}, "seal": "{seal}"}}'.encode()


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file, for its owner's eyes only: after a crash the old or the new content is there, whole."""
    new = path.with_name(f"{path.name}.new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)
    sync_folder(path.parent)
