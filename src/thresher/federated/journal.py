"""A party's journal: what it was charged for and what it has heard, on disk before it matters.

Order of entries in a round: a share of the noisy sum is *prepared*, then its *opening* is announced, then the *answer*
is heard. Everything is written through to the disk before the next step, so that after a crash the journal never says
less than what others may have seen. Shares are kept in a file of their own, only as long as they are needed: those of
an attempt that was given up must not come together later.

A party that a server asks (``thresher.federated.rounds``) has no shares to open: a round is *begun*, and over.

Lines are sealed (``thresher.federated.seals``): a run, even one that is over, is not believed if its journal was
changed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TypedDict

import numpy as np

from thresher.data.atomic_files import sync_folder
from thresher.federated.seals import Entry, Seals, write_whole
from thresher.privacy.arrays import Integers
from thresher.privacy.plan import Plan

__all__ = ["Journal", "Prepared", "price"]


class Charge(TypedDict):
    """What a plan costs, and when that was entered."""

    plan: str
    algorithm: str
    epsilon: float
    delta: float
    adjacency: str
    time: str


@dataclass
class Prepared:
    """This party's share of the noisy sum of a round, not opened or not heard yet."""

    round: int
    attempt: str
    digest: str  # of the share
    opening: bool = False


@dataclass
class Journal:
    """What the file says. ``charge`` is the plan's whole price, entered before any row is clipped."""

    path: Path
    charge: Charge | None = None
    answers: list[Integers] = field(default_factory=list)
    prepared: Prepared | None = None
    parted: bool = False
    """Whether everybody is known to have heard the last answer."""
    begun: int = 0  # the latest round that a server asked for

    def __post_init__(self) -> None:
        self._seals = Seals(self.path)

    @classmethod
    @contextmanager
    def locked(cls, folder: Path) -> Iterator[Journal]:
        """The journal in ``folder``, for one process at a time."""
        import fcntl  # not on every system

        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (folder / "journal.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ValueError(f"folder={str(folder)!r} is in use by another process of this party") from None
            journal = cls(folder / "journal.jsonl")
            journal._read()
            yield journal

    def _read(self) -> None:
        """Every entry but one that was cut off while it was written, which nobody can have acted upon."""
        content = self.path.read_bytes() if self.path.exists() else b""
        *lines, cut = content.split(b"\n")
        try:
            for entry in self._seals.verified_entries(lines):
                self._apply(entry)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"{self.path} is damaged: {error}; what was spent stays spent") from None
        if cut:
            os.truncate(self.path, len(content) - len(cut))

    def _apply(self, entry: Entry) -> None:
        match entry["what"]:
            case "charge":
                self.charge = entry["charge"]
            case "prepared":
                self.prepared = Prepared(entry["round"], entry["attempt"], entry["share"])
            case "opening" if self.prepared is not None:
                self.prepared.opening = True
            case "answer" if entry["round"] == len(self.answers) + 1:
                self.answers.append(np.array(entry["answer"], dtype=np.int64))
                self.prepared = None
            case "parted":
                self.parted = True
            case "begun" if entry["round"] > self.begun:
                self.begun = entry["round"]
            case what:
                raise ValueError(f"an entry {what!r} out of place")

    def _write(self, entry: Entry) -> None:
        new = not self.path.exists()
        with os.fdopen(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as file:
            file.write(self._seals.next_line(entry) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        if new:
            sync_folder(self.path.parent)
        self._seals.record_head()
        self._apply(entry)

    # -- what happens -------------------------------------------------------------------------------------------

    def check(self, plan: str) -> None:
        """Refuse to go on with another plan than the one that was charged."""
        if self.charge is not None and self.charge["plan"] != plan:
            raise ValueError(
                f"{self.path} is of another plan, {self.charge['plan'][:12]}; name another folder for this one"
            )

    def enter_charge(self, charge: Charge) -> None:
        """The plan's price, for a run that begins; a run that goes on has paid it already."""
        self.check(charge["plan"])
        if self.charge is None:
            self._write({"what": "charge", "charge": charge})

    def leave(self) -> None:
        self._write({"what": "parted"})

    def begin_round(self, round: int) -> None:
        """Enter a round, once; rounds may be left out, for a party may be away."""
        if round <= self.begun:
            raise ValueError(f"round={round} was answered before, or is over: this party has begun round {self.begun}")
        self._write({"what": "begun", "round": round})

    def prepare(self, round: int, attempt: str, share: bytes) -> None:
        """Keep a share of a round; that of an earlier attempt is gone."""
        write_whole(self._share, share)
        digest = sha256(share).hexdigest()
        self._write({"what": "prepared", "round": round, "attempt": attempt, "share": digest})

    def kept_share(self) -> bytes | None:
        """The share that is prepared, if it is still there."""
        if self.prepared is None or not self._share.exists():
            return None
        share = self._share.read_bytes()
        return share if sha256(share).hexdigest() == self.prepared.digest else None

    @property
    def _share(self) -> Path:
        return self.path.with_name("share.bin")

    def announce_opening(self) -> None:
        """From here on others may have seen the answer of this round."""
        self._write({"what": "opening"})

    def enter_answer(self, answer: Integers) -> None:
        self._write({"what": "answer", "round": len(self.answers) + 1, "answer": answer.tolist()})
        self._share.unlink(missing_ok=True)


def price(plan: Plan, plan_hash: str) -> Charge:
    """The entry that says what was spent: the plan's whole price, whether or not the run comes to its end."""
    budget = plan.budget
    return {
        "plan": plan_hash,
        "algorithm": plan.algorithm,
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "adjacency": str(budget.adjacency),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
