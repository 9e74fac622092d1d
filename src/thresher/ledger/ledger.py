"""The account book of data sets, in a file or a database."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from thresher.ledger.account import Allowance, Entry
from thresher.ledger.book import FORMAT, Book
from thresher.ledger.chain import START, Key
from thresher.ledger.errors import LedgerError, LedgerUnreachableError
from thresher.ledger.fingerprint import sketch_of
from thresher.ledger.reservation import Reservation
from thresher.ledger.stores import Run, store_of
from thresher.privacy import logs
from thresher.privacy.arrays import Matrix
from thresher.privacy.budget import Budget
from thresher.privacy.certificate import Certificate
from thresher.privacy.plan import Plan

__all__ = [
    "Ledger",
    "LedgerCheck",
]

UNITS = ("row", "person")

Body = Mapping[str, object]
"""An entry's facts, by its kind; ``thresher.ledger.book`` reads them."""

Given = TypeVar("Given")


@dataclass(frozen=True)
class LedgerCheck:
    """The outcome of ``Ledger.verify``; true if no entry was changed, left out or put in.

    Parameters
    ----------
    ok : bool
        Whether all is as it was written.
    entries : int
        How many entries there are.
    head : str
        The hash of the last one. Whoever keeps it can show later that no entry up to it is gone.
    problems : tuple of str
        What is not as it was written.

    Examples
    --------
    >>> from thresher import Ledger
    >>> ledger = Ledger("checked.db")
    >>> ledger.grant("trial", epsilon=2.0, delta=1e-6)
    >>> check = ledger.verify()
    >>> check.ok, check.entries
    (True, 2)
    """

    ok: bool
    entries: int
    head: str
    """The hash of the last entry. Whoever keeps it can show later that no entry up to it is gone."""
    problems: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.ok


class Ledger:
    """What may be spent on data sets, and what was: counted across fits, processes, machines and crashes.

    A fit reserves the cost of its plan before it reads a row and commits when its certificate is written. A crash in
    between leaves the reservation, which counts. Nothing is ever given back.

    Parameters
    ----------
    url : str or path
        "sqlite:///budget.db" or a path, a file for processes of one machine; "postgresql://user@host/base" for several
        machines (extra: thresher[postgres]). A password in it is neither shown nor pickled: better set PGPASSWORD.
    analyst : str
        In whose name fits spend, where grants are given analyst by analyst.
    key : path
        The file with the ledger's secret. Default: what the environment variable THRESHER_LEDGER_KEY names, else
        budget.db.key beside budget.db, or ~/.thresher-ledger.key for PostgreSQL.

    Examples
    --------
    >>> from thresher import Ledger
    >>> ledger = Ledger("budget.db")
    >>> ledger.grant("trial", epsilon=2.0, delta=1e-6)
    >>> ledger.remaining("trial")
    Allowance(epsilon=2.0, delta=1e-06)
    """

    def __init__(self, url: str | Path, *, analyst: str | None = None, key: str | Path | None = None) -> None:
        self._store = store_of(url)
        self.url, self.analyst = self._store.address, analyst
        self.key_path = Path(key or os.environ.get("THRESHER_LEDGER_KEY") or self._store.key_path).absolute()
        self._book: Book | None = None
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """Its address without a password."""
        return self._store.name

    @property
    def files(self) -> tuple[Path, ...]:
        """What it keeps on this machine, or may: nothing else must be written there."""
        return (*self._store.files, self.key_path)

    def __repr__(self) -> str:
        return f"Ledger({self.name!r})"

    def __reduce__(self) -> tuple[Callable[..., Ledger], tuple[str, str | None, str]]:
        """A copy is the same ledger: what counts is in the store. A password in the URL stays in this process."""
        return _ledger, (self.url, self.analyst, str(self.key_path))

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Ledger:
        return self  # as clones of estimators have it, with its password

    # -- the custodian ------------------------------------------------------------------------------------------

    def create(self) -> None:
        """Make an empty ledger and its key, if there is none yet."""
        with self._store.transaction(create=True) as run:
            if not run("SELECT sequence FROM thresher_ledger LIMIT 1"):
                key = Key.made(self.key_path)
                _append(run, Book(key), {"kind": "open", "format": FORMAT, "key": key.check})

    def grant(
        self, dataset: str, epsilon: float, delta: float, *, analyst: str | None = None,
        adjacency: str = "replace-one", unit: str = "row",
    ) -> None:  # fmt: skip
        """Allow (epsilon, delta) to be spent on ``dataset`` in all; a later grant takes the place of an earlier one.

        With ``analyst``, how much of it one analyst may spend; then only analysts with a grant may spend at all.
        An account is for fits that protect one kind of ``unit``, rows or people.
        """
        if not (isinstance(dataset, str) and dataset):
            raise LedgerError(f"dataset={dataset!r} must be a name")
        budget = Budget(epsilon, delta, adjacency)  # type: ignore[arg-type]  # which makes an Adjacency of it, or says why not
        if not budget.private:
            raise LedgerError(f"epsilon={epsilon!r} cannot be granted; give a finite number")
        if unit not in UNITS:
            raise LedgerError(f"unit={unit!r} must be one of {', '.join(map(repr, UNITS))}")
        self.create()

        def body(book: Book) -> list[Body]:
            book.check_grant(dataset, analyst, budget.adjacency, unit)
            return [
                {
                    "kind": "grant", "dataset": dataset, "analyst": analyst, "epsilon": budget.epsilon,
                    "delta": budget.delta, "adjacency": str(budget.adjacency), "unit": unit,
                }
            ]  # fmt: skip

        self._write(body)

    def spent(self, dataset: str, analyst: str | None = None) -> Allowance:
        """What was spent or reserved so far, by everybody or by one analyst, at the delta granted."""
        with self._open_book() as book:
            return book.account(dataset).spent(analyst)

    def remaining(self, dataset: str, analyst: str | None = None) -> Allowance:
        """The grant less what was spent; an analyst's, if there is one with less left. See ``affordable``."""
        with self._open_book() as book:
            return book.account(dataset).remaining(analyst or self.analyst)

    def affordable(self, dataset: str, analyst: str | None = None) -> float:
        """The largest epsilon, at the delta granted, that one more fit may have: at least what is remaining.

        That is for Gaussian noise and choices; of random batches it may be a little less.
        """
        with self._open_book() as book:
            return book.account(dataset).affordable(analyst or self.analyst)

    def history(self, dataset: str) -> list[Entry]:
        """Grants and fits, in their order."""
        with self._open_book() as book:
            return book.account(dataset).history()

    def summary(self, dataset: str) -> list[dict[str, str | float | None]]:
        """Of the data set and then of each analyst with a grant: granted, spent, and what one more fit may have."""
        with self._open_book() as book:
            account = book.account(dataset)
            return [
                {
                    "dataset": dataset, "analyst": analyst, "granted": grant.epsilon, "delta": grant.delta,
                    "spent": account.spent(analyst).epsilon, "affordable": account.affordable_within(analyst),
                    "fits": account.fits(analyst), "reserved": account.fits(analyst, "reserved"),
                    "adjacency": str(account.adjacency), "unit": account.unit,
                }
                for analyst, grant in account.grants.items()
            ]  # fmt: skip

    @property
    def datasets(self) -> list[str]:
        """The names of all accounts."""
        with self._open_book() as book:
            return book.datasets

    def verify(self, head: str | None = None, certificate: Certificate | None = None) -> LedgerCheck:
        """Read every entry again and check the chain of hashes.

        A chain that was cut off at the end is a chain, too. So give the ``head`` of an earlier check, or the
        ``certificate`` of a model, and it is checked that the ledger still has their entries.
        """
        book, problems = Book(self._key()), []
        try:
            with self._store.transaction(reading=True) as run:
                self._replay(run, book)
        except LedgerError as error:
            problems.append(str(error))
        if head is not None and head not in {START, *book.places}:
            problems.append("the entry with the hash given as head is gone")
        if certificate is not None:
            problems += _problems_of(certificate, book)
        return LedgerCheck(not problems, book.sequence, book.head, tuple(problems))

    # -- a fit --------------------------------------------------------------------------------------------------

    def reserve(self, dataset: str, plan: Plan, rows: Matrix = None) -> Reservation:
        """Count the cost of ``plan`` against the grant of ``dataset``, durably, or raise BudgetExceeded.

        ``rows`` are recognised, and refused if they were spent on under another name.
        """
        cost, adjacency, unit = plan.cost, plan.budget.adjacency, plan.problem.unit
        spending = {
            "kind": "reserve", "id": uuid.uuid4().hex, "dataset": dataset, "analyst": self.analyst,
            "algorithm": plan.algorithm, "releases": [release.to_dict() for release in plan.releases],
        }  # fmt: skip

        def check(book: Book) -> None:
            book.account(dataset).check(cost, self.analyst, adjacency, unit)

        with self._open_book() as now:
            check(now)  # before others have to wait, for convolutions take long and are remembered; and before the rows
        sketch = None if rows is None else sketch_of(rows, self._key())

        def bodies(book: Book) -> list[Body]:
            check(book)
            if sketch is None:
                return [spending]
            book.check_rows(dataset, sketch)
            known = book.knows_rows(dataset, sketch)
            return [spending] if known else [{"kind": "rows", "dataset": dataset, "sketch": list(sketch)}, spending]

        digest = self._write(bodies)
        logs.reserved(str(spending["id"]))
        return Reservation(self, {"dataset": dataset, "entry": str(spending["id"]), "hash": digest})

    def resume(self, account: dict[str, str], dataset: str, plan: Plan) -> Reservation:
        """The reservation that a fit of ``plan`` was begun with and goes on with, if it is not done."""
        with self._open_book() as book:
            book.check_resumed(account, dataset, [release.to_dict() for release in plan.releases])
        self._require(account["hash"])
        return Reservation(self, account)

    def charged(self, account: dict[str, str]) -> int:
        """How many rounds of a fit that may go on after a stop were charged."""
        with self._open_book() as book:
            return book.charged(account["entry"])

    def charge(self, account: dict[str, str], before: int, rounds: int) -> None:
        """Count ``rounds`` of such a fit as asked, before they are, if it was ``before`` so far; it never decreases."""
        body = {"kind": "charge", "id": account["entry"], "rounds": rounds}

        def bodies(book: Book) -> list[Body]:
            book.check_charge(account["entry"], before)
            return [body]

        self._write(bodies)

    def seal(self, message: bytes) -> str:
        """A mark that nobody can make without the ledger's key."""
        return self._key().seal(message)

    def commit(self, account: dict[str, str], certificate: Certificate) -> None:
        """Note that the fit of a reservation is done. Its cost was counted before and stays the same."""
        entry = account["entry"]
        body = {"kind": "commit", "id": entry, "certificate": _digest(certificate)}
        self._write(lambda book: [] if book.is_committed(entry) else [body])
        self._require(account["hash"])
        logs.settled(entry)

    # -- entries ------------------------------------------------------------------------------------------------

    def _key(self) -> Key:
        return Key.read(self.key_path)

    @contextmanager
    def _open_book(self) -> Iterator[Book]:
        """The book, up to date; other threads of this process wait, other processes do not."""
        with self._lock:
            with self._store.transaction(reading=True) as run:
                book = self._up_to_date(run)
            yield book

    def _write(self, bodies: Callable[[Book], list[Body]]) -> str:
        """Append entries that are made, and allowed, by an up-to-date book while nobody else can write."""
        with self._lock:
            with self._store.transaction() as run:
                book = self._up_to_date(run)
                made = bodies(book)
                self._book = None  # until the store has them for good
                for body in made:
                    _append(run, book, body)
            self._book, written = book, book.head
        try:
            self._require(written)
        except LedgerUnreachableError as error:
            raise LedgerUnreachableError(f"{error}; what was written there a moment ago may count") from None
        return written

    def _require(self, digest: str) -> None:
        """Raise unless the store still has this entry, as a connection sees it that did not write it."""
        with self._lock, self._store.transaction(reading=True) as run:
            at = self._up_to_date(run).places.get(digest)
            if at is None or run("SELECT hash FROM thresher_ledger WHERE sequence = :at", at=at) != [(digest,)]:
                self._book = None
                raise LedgerError(f"entry {at} of the ledger is gone: what it counted is counted no more")

    def _up_to_date(self, run: Run) -> Book:
        if self._book is None:
            self._book = Book(self._key())
        try:
            self._replay(run, self._book)
        except BaseException:  # an interruption, too, may leave a book that has read half an entry
            self._book = None
            raise
        return self._book

    def _replay(self, run: Run, book: Book) -> None:
        """Read what has come since the book was read last."""
        last = run("SELECT hash FROM thresher_ledger WHERE sequence = :at", at=book.sequence)
        if book.sequence and last != [(book.head,)]:
            raise LedgerError(f"entry {book.sequence} of the ledger is gone, or another than it was")
        rows = run(
            "SELECT sequence, body, hash FROM thresher_ledger WHERE sequence > :at ORDER BY sequence", at=book.sequence
        )
        for sequence, text, digest in rows:
            book.read(int(sequence), text, digest)
        if not book.sequence:
            raise LedgerError("the ledger has no entries; make it with: thresher ledger create")


def _append(run: Run, book: Book, body: Body) -> None:
    known = {"id": uuid.uuid4().hex, "at": datetime.now(UTC).isoformat(timespec="seconds")}
    sequence, text, digest = book.next_entry({**known, **body})
    run("INSERT INTO thresher_ledger VALUES (:sequence, :body, :hash)", sequence=sequence, body=text, hash=digest)
    book.read(sequence, text, digest)


def _problems_of(certificate: Certificate, book: Book) -> list[str]:
    """Where a certificate and the ledger disagree."""
    if certificate.ledger is None:
        return ["the certificate names no entry of a ledger"]
    problems = book.problems_of(certificate.ledger)
    if problems:
        return problems
    entry = certificate.ledger["entry"]
    if book.line(entry).certificate not in (None, _digest(certificate)):
        return [f"the certificate is not the one that entry {entry} was committed with"]
    return []


def _digest(certificate: Certificate) -> str:
    return sha256(certificate.to_json().encode()).hexdigest()


def _ledger(url: str, analyst: str | None, key: str) -> Ledger:
    return Ledger(url, analyst=analyst, key=key)
