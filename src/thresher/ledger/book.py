"""What a ledger's entries say: the accounts that they make, read alone and in their order."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any, TypedDict

from thresher.ledger.account import Account, Allowance, Line
from thresher.ledger.chain import START, Key
from thresher.ledger.errors import LedgerError
from thresher.ledger.fingerprint import Sketch, are_alike
from thresher.privacy.accounting import Cost
from thresher.privacy.budget import Adjacency, Budget
from thresher.privacy.releases import release_from_dict

__all__ = ["FORMAT", "Book"]

FORMAT = "thresher-ledger-1"

ReleaseFields = dict[str, Any]
"""A release as JSON: its kind, and the fields that this kind has."""


class GrantBody(TypedDict):
    """The entry of a grant."""

    id: str
    at: str
    dataset: str
    analyst: str | None
    epsilon: float
    delta: float
    adjacency: Adjacency
    unit: str


class RowsBody(TypedDict):
    """The entry that says which rows an account is about."""

    dataset: str
    sketch: list[str]


class ReserveBody(TypedDict):
    """The entry of a fit that is about to be asked."""

    id: str
    at: str
    dataset: str
    analyst: str | None
    algorithm: str
    releases: list[ReleaseFields]


class ChargeBody(TypedDict):
    """The entry of rounds that a fit which may be stopped is about to ask."""

    id: str
    rounds: int


class CommitBody(TypedDict):
    """The entry of a fit that is done."""

    id: str
    certificate: str


class Book:
    """The accounts, as the entries read so far make them."""

    def __init__(self, key: Key) -> None:
        self._key = key
        self.sequence, self.head = 0, START
        self.places: dict[str, int] = {}  # the sequence of every hash
        self._accounts: dict[str, Account] = {}
        self._sketches: dict[str, list[Sketch]] = {}
        self._fits: dict[str, str] = {}  # the data set of every fit
        self._planned: dict[str, str] = {}  # the hash of its releases
        self._rounds: dict[str, int] = {}  # how many of its rounds were charged, if it is one that goes on after a stop

    @property
    def datasets(self) -> list[str]:
        return list(self._accounts)

    def account(self, dataset: str) -> Account:
        if dataset not in self._accounts:
            known = f"; it has {', '.join(map(repr, self._accounts))}" if self._accounts else ""
            raise LedgerError(f"dataset={dataset!r} has no grant in this ledger{known}. Grant it a budget first")
        return self._accounts[dataset]

    def check_grant(self, dataset: str, analyst: str | None, adjacency: Adjacency, unit: str) -> None:
        """Raise if such a grant cannot be added."""
        account = self._accounts.get(dataset)
        if account is None and analyst is not None:
            raise LedgerError(f"dataset={dataset!r} has no grant yet; grant it one as a whole before an analyst's part")
        if account is not None and (account.adjacency, account.unit) != (adjacency, unit):
            raise LedgerError(
                f"dataset={dataset!r} was granted for adjacency={str(account.adjacency)!r} and unit={account.unit!r}, "
                "which cannot change: what was spent was spent in them"
            )

    def check_rows(self, dataset: str, sketch: Sketch) -> None:
        """Raise if these rows have been spent on under another name."""
        for name, sketches in self._sketches.items():
            if name != dataset and any(are_alike(sketch, known) for known in sketches):
                raise LedgerError(
                    f"dataset={dataset!r}: half of these rows or more have been spent on as {name!r}, and what they "
                    f"lose adds up; use dataset={name!r}"
                )

    def knows_rows(self, dataset: str, sketch: Sketch) -> bool:
        return sketch in self._sketches.get(dataset, [])

    def line(self, entry: str) -> Line:
        """What is known of a fit."""
        if entry not in self._fits:
            raise LedgerError(f"entry {entry} is not in the ledger")
        return self._accounts[self._fits[entry]].lines[entry]

    def is_committed(self, entry: str) -> bool:
        return self.line(entry).status == "committed"

    def problems_of(self, account: Mapping[str, str]) -> list[str]:
        """Why the book cannot have paid for what names this data set, entry and hash."""
        entry = account["entry"]
        if self._fits.get(entry) != account["dataset"] or self.line(entry).hash != account["hash"]:
            return [f"entry {entry} of {account['dataset']!r} is not in the ledger"]
        return []

    def charged(self, entry: str) -> int:
        """How many rounds of a fit may have been asked."""
        return self._rounds.get(entry, 0)

    def check_charge(self, entry: str, before: int) -> None:
        """Raise if other rounds than those ``before`` were charged: somebody else goes on with the same entry."""
        if self.is_committed(entry) or self.charged(entry) != before:
            raise LedgerError(f"entry {entry} was gone on with elsewhere, from a copy of its checkpoint; begin anew")

    def check_resumed(self, account: Mapping[str, str], dataset: str, releases: list[ReleaseFields]) -> None:
        """Raise unless the entry has paid for these releases, and is one that may go on."""
        entry, problems = account["entry"], self.problems_of(account)
        if problems or account["dataset"] != dataset:
            raise LedgerError(f"{(problems or ['it is of another data set'])[0]}; begin the fit anew")
        if self.is_committed(entry):
            raise LedgerError(f"entry {entry} is committed: its fit is done. For another, name another checkpoint")
        if not self.charged(entry) or self._planned[entry] != _digest(releases):
            raise LedgerError(f"entry {entry} is of another fit, or of one without a checkpoint; begin the fit anew")

    # -- entries ------------------------------------------------------------------------------------------------

    def next_entry(self, body: Mapping[str, object]) -> tuple[int, str, str]:
        """Such an entry as the next one: sequence, text, hash."""
        text = json.dumps(body, sort_keys=True, allow_nan=False)
        return self.sequence + 1, text, self._key.hash(self.head, text)

    def read(self, sequence: int, text: str, digest: str) -> None:
        """Add the next entry; one that was changed, left out or put in is refused."""
        if sequence != self.sequence + 1:
            raise LedgerError(f"entry {self.sequence + 1} of the ledger is missing")
        if sequence == 1 and self._key.check not in text:
            raise LedgerError("the key is not this ledger's; name the right file by key= or THRESHER_LEDGER_KEY")
        if digest != self._key.hash(self.head, text):
            raise LedgerError(f"entry {sequence} of the ledger was changed, or one before it was left out or put in")
        try:
            body = json.loads(text)
            getattr(self, f"_read_{body['kind']}")(body, digest)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise LedgerError(
                f"entry {sequence} of the ledger cannot be read ({error}); it may need a newer thresher"
            ) from None
        self.sequence, self.head = sequence, digest
        self.places[digest] = sequence

    def _read_open(self, body: Mapping[str, object], digest: str) -> None:
        if body["format"] != FORMAT:
            raise ValueError(f"format {body['format']!r}")

    def _read_grant(self, body: GrantBody, digest: str) -> None:
        dataset, analyst = body["dataset"], body["analyst"]
        budget = Budget(body["epsilon"], body["delta"], body["adjacency"])
        account = self._accounts.setdefault(dataset, Account(dataset, budget.adjacency, body["unit"]))
        account.grants[analyst] = Allowance(budget.epsilon, budget.delta)
        account.lines[body["id"]] = Line(body["id"], body["at"], analyst, account.grants[analyst], digest)

    def _read_rows(self, body: RowsBody, digest: str) -> None:
        self._sketches.setdefault(body["dataset"], []).append(tuple(body["sketch"]))

    def _read_reserve(self, body: ReserveBody, digest: str) -> None:
        account, cost = self.account(body["dataset"]), cost_of(json.dumps(body["releases"]))
        account.spend(cost, body["analyst"])
        line = Line(body["id"], body["at"], body["analyst"], cost, digest, body["algorithm"])
        account.lines[line.id] = line
        self._fits[body["id"]] = account.dataset
        self._planned[body["id"]] = _digest(body["releases"])

    def _read_charge(self, body: ChargeBody, digest: str) -> None:
        self.line(body["id"])
        self._rounds[body["id"]] = max(self.charged(body["id"]), int(body["rounds"]))

    def _read_commit(self, body: CommitBody, digest: str) -> None:
        self.line(body["id"]).certificate = body["certificate"]


def _digest(releases: list[ReleaseFields]) -> str:
    return sha256(json.dumps(releases, sort_keys=True).encode()).hexdigest()


@lru_cache(maxsize=1024)
def cost_of(releases: str) -> Cost:
    """What a list of releases, as JSON, costs together."""
    return sum((release_from_dict(fields).cost() for fields in json.loads(releases)), Cost())
