"""Where a ledger's entries are kept: a table of (sequence, body, hash) that only grows, in SQLite or PostgreSQL.

A transaction that writes holds the only writer's lock from its first statement on, and its end is on disk before it
returns. One that reads waits for nobody.
Connections live as long as one transaction: a ledger may be forked, pickled and used from many threads.
A table that would do anything but keep what it is given, such as one with a trigger, is refused in every transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from thresher.ledger.addresses import SCHEMES, Address, is_misspelt, masked_address
from thresher.ledger.errors import LedgerError, LedgerUnreachableError

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["PostgresStore", "Run", "SQLiteStore", "Store", "store_of"]

Row = tuple[Any, ...]
"""Of a table: what a driver makes of its columns."""

Run = Callable[..., list[Row]]
"""Executes a statement with named parameters and returns its rows."""

TABLE = "thresher_ledger (sequence BIGINT PRIMARY KEY, body TEXT NOT NULL, hash TEXT NOT NULL)"
CREATE = f"CREATE TABLE IF NOT EXISTS {TABLE}"
HARMLESS = ("CREATE TABLE ", "CREATE INDEX ", "CREATE UNIQUE INDEX ")  # beside the ledger's table, in SQLite
CATALOGUE = """
    SELECT c.relkind, c.relpersistence, c.relrowsecurity, c.relispartition,
        EXISTS (SELECT FROM pg_catalog.pg_inherits WHERE inhrelid = c.oid OR inhparent = c.oid),
        EXISTS (SELECT FROM pg_catalog.pg_trigger WHERE tgrelid = c.oid),
        EXISTS (SELECT FROM pg_catalog.pg_rewrite WHERE ev_class = c.oid),
        (SELECT pg_catalog.string_agg(
            pg_catalog.concat(attname, ' ', pg_catalog.format_type(atttypid, atttypmod), attgenerated),
            ', ' ORDER BY attnum
        ) FROM pg_catalog.pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped)
    FROM pg_catalog.pg_class c WHERE c.oid = pg_catalog.to_regclass('thresher_ledger')
"""  # of PostgreSQL: what may stand between an entry and whoever reads it
PLAIN = ("r", "p", False, False, False, False, False, "sequence bigint, body text, hash text")
PATIENCE = 120.0  # seconds to wait for other writers
LOCK = 0x7468726573686572  # the advisory lock of PostgreSQL that writers hold: "thresher"


class Store(Protocol):
    """A place for entries."""

    def transaction(self, *, create: bool = False, reading: bool = False) -> AbstractContextManager[Run]:
        """A context manager that yields a ``Run``; all of what it ran holds, or nothing."""

    @property
    def address(self) -> str:
        """By which others find the same store; a password is not in it."""

    @property
    def name(self) -> str:
        """The address for people, who see that there is a password and not which."""

    @property
    def files(self) -> tuple[Path, ...]:
        """The files on this machine that hold entries, if there are any."""

    @property
    def key_path(self) -> Path:
        """Where the key is by default."""


def store_of(url: str | Path) -> Store:
    """The store behind "sqlite:///budget.db", "postgresql://host/base", or the path of a SQLite file."""
    text = str(url)
    scheme, found, rest = text.partition("://")
    if not found and not is_misspelt(text):
        return SQLiteStore(Path(text))
    if scheme == "sqlite" and rest.startswith("/") and ":memory:" not in rest and len(rest) > 1:
        return SQLiteStore(Path(rest[1:]))
    if found and scheme in SCHEMES:
        return PostgresStore(Address.of(rest))
    raise LedgerError(
        f"ledger={masked_address(text)!r} must be the path of a file, 'sqlite:///budget.db' or "
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
    def files(self) -> tuple[Path, ...]:
        place = self._path.resolve() if self._path.exists() else self._path  # journals lie where a link leads
        return tuple(place.with_name(f"{place.name}{ending}") for ending in ("", "-journal", "-wal", "-shm"))

    @property
    def key_path(self) -> Path:
        return self._path.with_name(f"{self._path.name}.key")

    @contextmanager
    def transaction(self, *, create: bool = False, reading: bool = False) -> Iterator[Run]:
        if not create and not self._path.exists():
            raise LedgerError(f"ledger={str(self._path)!r} does not exist; make it with: thresher ledger create")
        self._check_names()
        try:
            with closing(sqlite3.connect(self._path, timeout=PATIENCE, isolation_level=None)) as connection:
                connection.execute("PRAGMA synchronous = EXTRA")  # the end of a transaction survives a power cut
                self._check_journal(connection)
                connection.execute("BEGIN" if reading else "BEGIN IMMEDIATE")
                try:
                    if create:
                        connection.execute(CREATE)
                    self._check_table(connection)
                    yield lambda statement, **values: connection.execute(statement, values).fetchall()
                    connection.execute("COMMIT")
                finally:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise _refusal(self.name, str(error), isinstance(error, sqlite3.OperationalError)) from None

    def _check_names(self) -> None:
        """Refuse a file with several names: SQLite keeps a journal beside each, and what is in one of them is not seen,
        or is undone, by who opens another."""
        if self._path.exists() and self._path.stat().st_nlink > 1:
            raise LedgerUnreachableError(
                f"ledger={self.name!r} has a second name, a hard link, under which entries are not seen; remove that "
                "name, or make it a symbolic link"
            )

    def _check_journal(self, connection: sqlite3.Connection) -> None:
        """Refuse a write-ahead log, which somebody must have asked for: the latest entries then lie in a second file,
        and whoever copies, restores or mounts the first one alone has a whole chain without them."""
        ((mode,),) = connection.execute("PRAGMA journal_mode").fetchall()
        if mode == "wal":
            raise LedgerUnreachableError(
                f"ledger={self.name!r} keeps its latest entries in a second file, a write-ahead log, so that a copy of "
                "the first would not count them; say PRAGMA journal_mode = DELETE to the database"
            )

    def _check_table(self, connection: sqlite3.Connection) -> None:
        """Refuse triggers, views, generated columns and ON CONFLICT clauses: entries must be kept as they are.

        Judged by the statements that SQLite makes its schema from, since the other columns of its catalogue may lie. A
        new connection has no temporary objects and no attached databases.
        """
        kept = [" ".join(sql.split()) for (sql,) in connection.execute("SELECT sql FROM sqlite_master") if sql]
        if not any("thresher_ledger" in sql.lower() for sql in kept):
            raise _refusal(self.name, "no such table: thresher_ledger")
        others = [sql for sql in kept if sql != f"CREATE TABLE {TABLE}"]
        if len(others) == len(kept) or not all(sql.startswith(HARMLESS) for sql in others):
            raise _unkept(self.name)


class PostgresStore:
    """A table of a PostgreSQL database, for analysts on several machines."""

    def __init__(self, address: Address) -> None:
        try:
            import sqlalchemy
        except ImportError:
            raise LedgerError(
                "ledger: PostgreSQL needs two more packages; run: pip install 'thresher[postgres]'"
            ) from None
        self._address, self._sql = address, sqlalchemy
        self.address, self.name = address.bare, address.name
        self.files: tuple[Path, ...] = ()

    @property
    def key_path(self) -> Path:
        return Path.home() / ".thresher-ledger.key"

    @contextmanager
    def transaction(self, *, create: bool = False, reading: bool = False) -> Iterator[Run]:
        sql = self._sql
        try:
            # who waited for the lock sees what was written meanwhile, whatever isolation is the database's default
            engine = sql.create_engine(self._address.url, poolclass=sql.NullPool, isolation_level="READ COMMITTED")
            with engine.begin() as connection:
                connection.execute(sql.text("SET LOCAL synchronous_commit = on"))
                if not reading:
                    connection.execute(sql.text(f"SELECT pg_advisory_xact_lock({LOCK})"))
                if create:
                    connection.execute(sql.text(CREATE))
                self._check_table(connection)

                def run(statement: str, **values: str | int) -> list[Row]:
                    answer = connection.execute(sql.text(statement), values)
                    return [tuple(row) for row in answer] if answer.returns_rows else []

                yield run
        except sql.exc.SQLAlchemyError as error:
            reason = self._address.without_secrets(str(getattr(error, "orig", None) or error).strip().splitlines()[0])
            if "no password" in reason:
                reason += "; set PGPASSWORD or ~/.pgpass (pickles, and so other processes, get no password from a URL)"
            passing = isinstance(error, (sql.exc.OperationalError, sql.exc.InterfaceError))
            raise _refusal(self.name, reason, passing) from None

    def _check_table(self, connection: Connection) -> None:
        """Refuse whatever may not keep entries, or not show them: triggers (those of foreign keys, too), rules, views,
        row security, tables that a crash empties, inheritance, other columns."""
        found = connection.execute(self._sql.text(CATALOGUE)).first()
        if found is None:
            raise _refusal(self.name, "no such table: thresher_ledger")
        if tuple(found) != PLAIN:
            raise _unkept(self.name)


def _refusal(name: str, reason: str, passing: bool = False) -> LedgerError:
    """``passing`` is what may go away by itself, such as a full disk."""
    if "thresher_ledger" in reason and ("no such table" in reason or "does not exist" in reason):
        reason, passing = "there is no ledger there yet; make it with: thresher ledger create", False
    return (LedgerUnreachableError if passing else LedgerError)(f"ledger={name!r} cannot be used: {reason}")


def _unkept(name: str) -> LedgerError:
    return LedgerError(
        f"ledger={name!r} cannot be used: its table has, or is, more than thresher made (a trigger, a rule, a view, "
        "row security, a column or clause of its own), so that entries may not be kept; find out who did that, and "
        "remove it"
    )
