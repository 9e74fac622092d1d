"""The server's half of a secure sum; ``thresher.federated.secagg`` says what it cannot learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from thresher.federated import identities, masks, secret_shares, statements
from thresher.federated.group import Group
from thresher.federated.messages import SERVER, BadMessage, Message, Stage, decode, encode
from thresher.privacy.arrays import Integers

__all__ = ["MaskingServer", "RoundAborted"]


class RoundAborted(RuntimeError):  # noqa: N818  (the public name says what it is)
    """Too few parties were left; nothing was revealed. Start a new round, with new noise."""


class MaskingServer:
    """The server's half of one round: ``receive`` the answers of a stage, then ``close`` it for the next questions.

    Who sent no good answer when a stage is closed has left the round. ``total`` is there after the last stage.
    """

    def __init__(self, group: Group, everybody: Sequence[bytes], round_number: int, length: int) -> None:
        statements.check_identities(group, everybody)
        self._group, self._everybody, self._round, self._length = group, everybody, round_number, length
        self.stage = Stage.ADVERTISE
        self.expected = set(range(group.parties))  # who may answer in this stage
        self._answers: dict[Stage, dict[int, Mapping[int, bytes]]] = {stage: {} for stage in Stage}
        self._questions: dict[Stage, bytes] = {}  # those that are the same for all

    def receive(self, answer: bytes) -> int:
        """Count a party's answer to the stage's question, and say whose it is."""
        message = decode(answer, self.stage, self._round)
        sender, contents = message.sender, message.contents
        if sender not in self.expected:
            raise BadMessage("sender")
        if sender in self._answers[self.stage]:
            raise BadMessage("repeated")
        about, size = self._expected_contents(sender)
        if contents.keys() != about or any(len(content) != size for content in contents.values()):
            raise BadMessage("content")
        if self.stage == Stage.ADVERTISE:
            statements.check_keys(self._group, self._everybody, self._round, sender, contents[sender])
        if self.stage == Stage.CONFIRM:
            statement = statements.survivors_statement(self._questions[Stage.SHARE], self._questions[Stage.CONFIRM])
            identities.check(self._everybody[sender], contents[sender], statement)
        self._answers[self.stage][sender] = contents
        return sender

    def close(self) -> dict[int, bytes]:
        """End the stage: the next stage's question to each party still there, none after the last one."""
        answers = self._answers[self.stage]
        if len(answers) < self._group.quorum:
            raise RoundAborted(
                f"{len(answers)} of {self._group.parties} parties answered in stage {self.stage.name} and "
                f"{self._group.quorum} must: nothing was revealed; try a new round"
            )
        self.expected = set(answers)
        if self.stage == Stage.UNMASK:
            return {}
        closed, self.stage = self.stage, Stage(self.stage + 1)
        if closed == Stage.SHARE:
            return {to: self._question({party: answers[party][to] for party in answers}) for to in answers}
        own = {party: b"" if closed == Stage.MASK else answers[party][party] for party in answers}
        self._questions[self.stage] = self._question(own)
        return dict.fromkeys(answers, self._questions[self.stage])

    def total(self) -> Integers:
        """The sum of the vectors of all who sent one."""
        if self.stage != Stage.UNMASK or len(self._answers[Stage.UNMASK]) < self._group.quorum:
            raise RoundAborted("the stages of this round are not over: there is no sum yet")
        vectors = {party: contents[party] for party, contents in self._answers[Stage.MASK].items()}
        total = np.zeros(self._length, dtype=np.uint64)
        for vector in vectors.values():
            total += np.frombuffer(vector, "<u8")
        for party in self._answers[Stage.SHARE]:
            secret = self._opened(party)
            if party in vectors:
                total -= masks.mask(secret, self._round, self._length)
                continue
            for other in vectors:  # what ``party`` would have added cancels what ``other`` did
                public = self._answers[Stage.ADVERTISE][other][other][: masks.KEY_SIZE]
                total += masks.pair_mask(secret, public, (party, other), self._round, self._length)
        return total.astype(np.int64)

    def _opened(self, party: int) -> bytes:
        """The seed of a party that sent its vector, the mask key of one that did not."""
        quorum = sorted(self._answers[Stage.UNMASK])[: self._group.quorum]
        return secret_shares.join({holder: self._answers[Stage.UNMASK][holder][party] for holder in quorum})

    def _expected_contents(self, sender: int) -> tuple[set[int], int]:
        """About whom a party's answer to this stage must be, and the size of each content."""
        match self.stage:
            case Stage.ADVERTISE:
                return {sender}, statements.ADVERTISED_SIZE
            case Stage.SHARE:
                return set(self._answers[Stage.ADVERTISE]), statements.ENVELOPE_SIZE
            case Stage.MASK:
                return {sender}, 8 * self._length
            case Stage.CONFIRM:
                return {sender}, identities.SIGNATURE_SIZE
            case Stage.UNMASK:
                return set(self._answers[Stage.SHARE]), secret_shares.SHARE_SIZE

    def _question(self, contents: Mapping[int, bytes]) -> bytes:
        return encode(Message(self.stage, self._round, SERVER, contents))
