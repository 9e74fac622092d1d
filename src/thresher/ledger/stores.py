"""Where a ledger's entries are kept: a table of (sequence, body, hash) that only grows, in SQLite or PostgreSQL.

A transaction that writes holds the only writer's lock from its first statement on, and its end is on disk before it
returns. One that reads waits for nobody.
Connections live as long as one transaction: a ledger may be forked, pickled and used from many threads.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from thresher.ledger.errors import LedgerError

__all__ = ["PostgresStore", "Run", "SQLiteStore", "Store", "store_of"]

Run = Callable[..., list[tuple[Any, ...]]]
"""Executes a statement with named parameters and returns its rows."""

CREATE = (
    "CREATE TABLE IF NOT EXISTS thresher_ledger (sequence BIGINT PRIMARY KEY, body TEXT NOT NULL, hash TEXT NOT NULL)"
)
PATIENCE = 120.0  # seconds to wait for other writers
LOCK = 0x7468726573686572  # the advisory lock of PostgreSQL that writers hold: "thresher"


class Store(Protocol):
    """A place for entries."""

    def transaction(self, *, create: bool = False, reading: bool = False) -> Any:
        """A context manager that yields a ``Run``; all of what it ran holds, or nothing."""

    @property
    def address(self) -> str:
        """By which others find the same store."""

    @property
    def name(self) -> str:
        """The address without secrets."""

    @property
    def key_path(self) -> Path:
        """Where the key is by default."""


def store_of(url: str | Path) -> Store:
    """The store behind "sqlite:///budget.db", "postgresql://host/base", or the path of a SQLite file."""
    text = str(url)
    scheme, found, rest = text.partition("://")
    if not found:
        return SQLiteStore(Path(text))
    if scheme == "sqlite" and rest.startswith("/") and ":memory:" not in rest and len(rest) > 1:
        return SQLiteStore(Path(rest[1:]))
    if scheme in ("postgresql", "postgres", "postgresql+psycopg"):
        return PostgresStore(f"postgresql+psycopg://{rest}")
    raise LedgerError(
        f"ledger={_without_password(text)!r} must be the path of a file, 'sqlite:///budget.db' or "
        "'postgresql://user@host/database'; a ledger in memory would be forgotten"
    )


class SQLiteStore:
    """A file. Every process that opens it sees the same entries, on one machine (not over a network share)."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()  # workers of joblib may have another working directory

    @property
    def address(self) -> str:
        return f"sqlite:///{self._path}"

    name = address

    @property
    def key_path(self) -> Path:
        return self._path.with_name(f"{self._path.name}.key")

    @contextmanager
    def transaction(self, *, create: bool = False, reading: bool = False) -> Iterator[Run]:
        if not create and not self._path.exists():
            raise LedgerError(f"ledger={str(self._path)!r} does not exist; make it with: thresher ledger create")
        try:
            with closing(sqlite3.connect(self._path, timeout=PATIENCE, isolation_level=None)) as connection:
                connection.execute("PRAGMA synchronous = EXTRA")  # the end of a transaction survives a power cut
                connection.execute("BEGIN" if reading else "BEGIN IMMEDIATE")
                try:
                    if create:
                        connection.execute(CREATE)
                    yield lambda statement, **values: connection.execute(statement, values).fetchall()
                    connection.execute("COMMIT")
                finally:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise _refusal(self.name, str(error)) from None


class PostgresStore:
    """A table of a PostgreSQL database, for analysts on several machines."""

    def __init__(self, url: str) -> None:
        try:
            import sqlalchemy
        except ImportError:
            raise LedgerError(
                "ledger: PostgreSQL needs two more packages; run: pip install 'thresher[postgres]'"
            ) from None
        self.address = url
        self._sql = sqlalchemy

    @property
    def name(self) -> str:
        return _without_password(self.address)

    @property
    def key_path(self) -> Path:
        return Path.home() / ".thresher-ledger.key"

    @contextmanager
    def transaction(self, *, create: bool = False, reading: bool = False) -> Iterator[Run]:
        sql = self._sql
        try:
            with sql.create_engine(self.address, poolclass=sql.NullPool).begin() as connection:
                connection.execute(sql.text("SET LOCAL synchronous_commit = on"))
                if not reading:
                    connection.execute(sql.text(f"SELECT pg_advisory_xact_lock({LOCK})"))
                if create:
                    connection.execute(sql.text(CREATE))

                def run(statement: str, **values: Any) -> list[tuple[Any, ...]]:
                    answer = connection.execute(sql.text(statement), values)
                    return [tuple(row) for row in answer] if answer.returns_rows else []

                yield run
        except sql.exc.SQLAlchemyError as error:
            reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
            raise _refusal(self.name, reason) from None


def _refusal(name: str, reason: str) -> LedgerError:
    if "thresher_ledger" in reason and ("no such table" in reason or "does not exist" in reason):
        reason = "there is no ledger there yet; make it with: thresher ledger create"
    return LedgerError(f"ledger={name!r} cannot be used: {reason}")


def _without_password(url: str) -> str:
    password = urlsplit(url).password
    return url.replace(f":{password}@", ":***@") if password else url
