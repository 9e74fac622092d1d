"""A log that shows if it was changed: every entry is hashed together with the hash before it, under a secret key."""

from __future__ import annotations

import hmac
import os
import secrets
from dataclasses import dataclass
from hashlib import blake2b, sha256
from pathlib import Path

from thresher.data.atomic_files import sync_folder
from thresher.ledger.errors import LedgerError, LedgerUnreachableError

__all__ = ["START", "Key"]

START = ""
"""The hash before the first entry."""

LENGTH = 32


@dataclass(frozen=True, repr=False)
class Key:
    """The ledger's secret: who has the log but not the key can neither forge entries nor test guesses about rows."""

    secret: bytes

    @classmethod
    def read(cls, path: Path) -> Key:
        try:
            with open(path, "rb", opener=_open_without_waiting) as file:
                secret = file.read(LENGTH + 1)
        except OSError:
            raise LedgerUnreachableError(
                f"the ledger's key {str(path)!r} cannot be read; put it back, or name the right file by key= or the "
                "environment variable THRESHER_LEDGER_KEY"
            ) from None
        if len(secret) != LENGTH:
            raise LedgerError(f"the ledger's key {str(path)!r} does not have {LENGTH} bytes; put it back")
        return cls(secret)

    @classmethod
    def made(cls, path: Path) -> Key:
        """The key in ``path``, drawn now if there is none; it is on disk, whole, before anything is hashed with it."""
        draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(LENGTH))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)  # fails if another process was faster; then its key counts
        except FileExistsError:
            pass
        finally:
            draft.unlink()
        sync_folder(path.parent)  # or a power cut might leave a ledger without its key
        return cls.read(path)

    @property
    def check(self) -> str:
        """By which a ledger knows its key."""
        return self.hash("thresher ledger", "key")

    def hash(self, before: str, body: str) -> str:
        """The hash of an entry that follows the one with hash ``before``."""
        return hmac.new(self.secret, f"{before}\n{body}".encode(), sha256).hexdigest()

    def seal(self, message: bytes) -> str:
        """A mark of a file that belongs to the ledger; it is never the hash of an entry."""
        return blake2b(message, digest_size=32, key=self.secret, person=b"file").hexdigest()

    @property
    def number(self) -> int:
        """64 bits that decide how rows are hashed."""
        return int.from_bytes(self._keyed_hash(b"rows"))

    def of_row(self, hashed: int) -> str:
        """A short name of a row's hash that nobody can compute, or undo, without the key."""
        return self._keyed_hash(hashed.to_bytes(8)).hex()

    def _keyed_hash(self, message: bytes) -> bytes:
        return blake2b(message, digest_size=8, key=self.secret).digest()


def _open_without_waiting(path: str, flags: int) -> int:
    """A pipe beside a stranger's ledger would be waited for, a device never end."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
