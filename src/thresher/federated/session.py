"""A party's part in a run between machines: agree, prepare, confirm, open; and go on after anybody's crash.

Every party runs the algorithm itself. They hear the same answers, so they ask the same questions; where machines differ
in the last bits, the first party's point is taken. A round is opened only after every party has its share of the noisy
sum on disk. So after a crash one of two things is true: all shares are there, and opening them again shows the *same*
noisy number (one release, not two); or one is missing, and nobody can have opened anything: the round is begun anew
with fresh noise. A share that is missing though somebody announced its opening ends the run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Protocol, TypedDict

import numpy as np

from thresher.federated.aggregation import Aborted, Ended, Law
from thresher.federated.journal import Journal
from thresher.federated.mpyc import LONGEST, RANDOMNESS
from thresher.federated.vault import JointVault, Party
from thresher.privacy.arrays import Floats, Integers
from thresher.privacy.plan import Plan
from thresher.vaults.randomness import NoiseSource
from thresher.vaults.vault import no_watch

__all__ = ["SecureComputation", "Session", "SessionVault", "longest_message"]


class Status(TypedDict):
    """What a party says of itself when it meets the others."""

    name: str
    plan: str
    nonce: str
    answers: list[str]
    share: str | None
    opening: bool


def longest_message(size: int) -> int:
    """The most bytes that a party says at once: what it is, with a digest of each answer, or a vector."""
    return max(LONGEST, 8 * size)


class SecureComputation(Protocol):
    """One party's end of a secure computation; every call ends in an answer or in Aborted, within its timeout."""

    def exchange(self, message: bytes) -> list[bytes]:
        """Every party's message, in order of parties."""
        ...

    def prepare(self, mine: Integers, law: Law) -> bytes:
        """This party's share of the sum of all vectors and one copy of noise. Nothing is shown to anybody."""
        ...

    def open(self, share: bytes) -> Integers:
        """The noisy sum, from everybody's shares."""
        ...

    def close(self) -> None: ...


class Session:
    """The aggregation of one party among others, with its journal; alone, it repeats answers that are all there."""

    def __init__(
        self, computation: SecureComputation | None, me: int, names: Sequence[str], plan_hash: str, journal: Journal,
        size: int,
    ) -> None:  # fmt: skip
        self._joined, self._me, self._names, self._journal = computation, me, tuple(names), journal
        self._plan_hash, self._size = plan_hash, size
        self._asked = 0
        self._attempt = ""
        self._reopens = False

    @property
    def _computation(self) -> SecureComputation:
        if self._joined is None:
            raise RuntimeError("this party is alone: it can only repeat what it heard")
        return self._joined

    # -- before the first round ---------------------------------------------------------------------------------

    def meet(self) -> None:
        """Agree on the plan, bring everybody to the same round, and see what became of a round that was cut off."""
        nonce = f"{NoiseSource().whole_number(2**62):016x}"
        statuses = self._statuses(nonce)
        for name, status in zip(self._names, statuses, strict=True):
            if status["plan"] != self._plan_hash:
                raise Aborted(
                    f"party {name!r} has another plan, {status['plan'][:12]!r}, than ours, {self._plan_hash[:12]!r}; "
                    "compare the task files and versions; nothing was asked"
                )
        if self._catch_up([status["answers"] for status in statuses]):
            statuses = self._statuses(nonce)
        self._resolve(statuses)
        self._attempt = sha256("".join(status["nonce"] for status in statuses).encode()).hexdigest()

    def _statuses(self, nonce: str) -> list[Status]:
        prepared = self._journal.prepared
        held = prepared is not None and self._journal.kept_share() is not None
        mine: Status = {
            "name": self._names[self._me],
            "plan": self._plan_hash,
            "nonce": nonce,
            "answers": [_digest(answer) for answer in self._journal.answers],
            "share": prepared.attempt if prepared and held else None,
            "opening": bool(prepared and prepared.opening),
        }
        told = self._computation.exchange(json.dumps(mine).encode())
        return [_status(message, name) for message, name in zip(told, self._names, strict=True)]

    def _catch_up(self, heard: list[list[str]]) -> bool:
        """Whether somebody missed the last answer that others heard; it is told again, since it is out already."""
        longest = max(heard, key=len)
        for name, answers in zip(self._names, heard, strict=True):
            if answers != longest[: len(answers)]:
                raise Ended(f"party {name!r} heard other answers than the rest; this run cannot go on")
            if len(answers) < len(longest) - 1:
                raise Ended(f"party {name!r} is rounds behind, as if its journal were lost; this run cannot go on")
        if all(len(answers) == len(longest) for answers in heard):
            return False
        last = len(longest) - 1
        mine = self._journal.answers
        told = self._computation.exchange(mine[last].astype("<i8").tobytes() if len(mine) > last else b"")
        for name, answer, answers in zip(self._names, told, heard, strict=True):
            if len(answers) > last and sha256(answer).hexdigest() != longest[last]:
                raise Ended(f"party {name!r} tells another answer than it heard; this run cannot go on")
        if len(mine) == last:
            answer = next(answer for answer, answers in zip(told, heard, strict=True) if len(answers) > last)
            if len(answer) != 8 * self._size:
                raise Ended("an answer that others claim to have heard has another size; this run cannot go on")
            self._journal.enter_answer(np.frombuffer(answer, dtype="<i8").astype(np.int64))
        return True

    def _resolve(self, statuses: list[Status]) -> None:
        """What becomes of a round that was prepared but that nobody heard the answer of."""
        attempts = {status["share"] for status in statuses}
        self._reopens = len(attempts) == 1 and attempts != {None}
        if any(status["opening"] for status in statuses) and not self._reopens:
            lost = [name for name, status in zip(self._names, statuses, strict=True) if status["share"] is None]
            raise Ended(
                f"the share of {', '.join(lost) or 'a party'} is gone though its round was opened: asking again would "
                "be a second release, which is not paid for; begin a new run with a budget of its own"
            )

    # -- a round ------------------------------------------------------------------------------------------------

    def agreed_point(self, theta: Floats) -> Floats:
        """The first party's point, for a round that is yet to be prepared."""
        if self._asked < len(self._journal.answers) or self._reopens:
            return theta
        told = self._computation.exchange(theta.astype("<f8").tobytes() if self._me == 0 else b"")[0]
        if len(told) != 8 * theta.size or not np.all(np.isfinite(point := np.frombuffer(told, dtype="<f8"))):
            raise Aborted(f"party {self._names[0]!r} told a point that is none; nothing was asked")
        return point.astype(np.float64)

    def noisy_sum(self, parts: Callable[[], Sequence[Integers]], law: Law) -> Integers:
        """The next answer: as it was heard, opened again, or computed with everybody."""
        self._asked += 1
        if self._asked <= len(self._journal.answers):
            return self._journal.answers[self._asked - 1]
        if not self._reopens:
            share = self._computation.prepare(np.sum(parts(), axis=0, dtype=np.int64), law)
            self._journal.prepare(self._asked, self._attempt, share)
            self._confirm()
        self._reopens = False
        kept = self._journal.kept_share()
        if kept is None:
            raise Aborted("the share on disk is not the one that was written; nothing was opened")
        self._journal.announce_opening()
        answer = self._computation.open(kept)
        if answer.shape != (self._size,):
            raise Aborted("the parties opened a vector of another size; the answer is dropped")
        self._journal.enter_answer(answer)
        return answer

    def _confirm(self) -> None:
        """Every party has its share of this round on disk."""
        mine = f"written {self._asked} {self._attempt}".encode()
        for name, told in zip(self._names, self._computation.exchange(mine), strict=True):
            if told != mine:
                raise Aborted(f"party {name!r} is not in round {self._asked}; nothing was opened")

    def part(self) -> None:
        """Leave together: whoever says so has heard the last answer, and all have heard the same ones.

        If somebody is gone before, it may lack that answer. This party has it, so it goes on, and tells it when all
        are started again.
        """
        heard = sha256("".join(map(_digest, self._journal.answers)).encode()).hexdigest()
        mine = f"done {heard}".encode()
        try:
            told = self._computation.exchange(mine)
        except Aborted:
            return
        for name, other in zip(self._names, told, strict=True):
            if other != mine:
                raise Ended(f"party {name!r} heard other answers than this party; the model is dropped")
        self._journal.leave()


class SessionVault(JointVault):
    """A joint vault whose other parties are on other machines."""

    def __init__(
        self, party: Party, sizes: Sequence[int], session: Session, plan: Plan, noise: NoiseSource,
        watch: Callable[[], None] = no_watch,
    ) -> None:  # fmt: skip
        super().__init__([party], sizes, plan, noise, watch)
        self._session = session

    @property
    def randomness(self) -> str:
        return RANDOMNESS

    def _agreed_point(self, theta: Floats) -> Floats:
        return self._session.agreed_point(theta)

    def _noisy_sum(self, parts: Callable[[], list[Integers]], law: Law) -> Integers:
        return self._session.noisy_sum(parts, law)


def _digest(answer: Integers) -> str:
    return sha256(answer.astype("<i8").tobytes()).hexdigest()


def _status(message: bytes, name: str) -> Status:
    """What a party says of itself, if it is what it may say."""
    kinds: dict[str, type | tuple[type, ...]] = {
        "name": str,
        "plan": str,
        "nonce": str,
        "answers": list,
        "share": (str, type(None)),
        "opening": bool,
    }
    try:
        if len(message) > LONGEST:
            raise ValueError
        status = json.loads(message)
        if set(status) != set(kinds) or not all(isinstance(status[key], kind) for key, kind in kinds.items()):
            raise ValueError
    except (ValueError, TypeError, RecursionError):
        raise Aborted(f"party {name!r} sent nonsense; nothing was asked") from None
    if status["name"] != name:
        raise Aborted(
            f"a party that calls itself {status['name'][:40]!r} sits where {name!r} should; nothing was asked"
        )
    told: Status = status
    return told
