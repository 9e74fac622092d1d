"""A sum of whole-number vectors of which nobody sees a part: double masking after Bonawitz et al. (CCS 2017).

Five stages, driven by the server, which carries all messages. To the parties (>) and back (<), by party:

    ADVERTISE  > nothing                     < two fresh public keys, signed: one for masks, one for envelopes
    SHARE      > everybody's keys            < an envelope for each party: shares of my mask key and of my seed
    MASK       > the envelopes for me        < my vector + mask(my seed) +- a mask for each other party, mod 2^64
    CONFIRM    > who sent a vector           < my signature under this list and everybody's keys
    UNMASK     > everybody's signatures      < a share of the seed of each who sent a vector, of the mask key of others

The masks between two parties cancel in the sum. With a quorum of shares the server removes the rest: the masks of
seeds, and the masks towards parties who left before they sent their vector. Keys live for one round.

Who is safe from whom. A party trusts its own machine, the public identities, its ``Group``. The server and up to
``colluding`` parties may put together all they see, and may break the rules: send forged, old or differing messages,
or none. They learn the sum of at least ``honest`` honest vectors, or nothing. For, whatever the others do:

* keys are signed, so envelopes open for their party only, and the seed or the mask key of an honest party takes a
  quorum of shares, of which the colluding hold fewer;
* an honest party gives shares once, of one kind for each party, for one list of survivors, which has a quorum and was
  signed by a quorum together with the keys; two lists, or both kinds of one party, need more honest parties than there
  are (see ``Group``);
* so any two honest survivors keep their common mask, and only the sum of all of them is free of masks.

What is *not* promised: a right sum. A party may send any vector; it, or the server, can stop a round or spoil its sum.
The sum itself is not private: vectors must bring their noise along (``thresher.federated.skellam_aggregation``).
The server sees who takes part and when; messages should travel over TLS, which also tells it who the senders are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from thresher.federated import crypto, secret_shares
from thresher.federated.group import Group
from thresher.federated.messages import SERVER, BadMessage, Message, SumStage, decode, encode
from thresher.privacy.arrays import Integers

__all__ = ["MaskingParty", "MaskingServer", "PartyMemory", "RoundAborted"]

KEYS_SIZE = 2 * crypto.KEY_SIZE  # the public mask key, then the public envelope key
ADVERTISED_SIZE = KEYS_SIZE + crypto.SIGNATURE_SIZE
ENVELOPE_SIZE = 2 * secret_shares.SHARE_SIZE + crypto.TAG_SIZE  # a share of the mask key, then one of the seed
QUESTION_SIZES = {  # bytes that the server passes on about each party
    SumStage.SHARE: ADVERTISED_SIZE,
    SumStage.MASK: ENVELOPE_SIZE,
    SumStage.CONFIRM: 0,
    SumStage.UNMASK: crypto.SIGNATURE_SIZE,
}


@dataclass
class PartyMemory:
    """What a party must remember from one stage to the next: its secrets, which never leave its machine."""

    round: int
    stage: int = 0  # the last one answered
    mask_key: bytes = b""
    envelope_key: bytes = b""
    seed: bytes = b""
    advertised: bytes = b""
    envelopes: bytes = b""
    survivors: bytes = b""


class MaskingParty:
    """One party in one round. Each stage is answered once, in order; what does not fit raises ``BadMessage``.

    ``identity`` is party ``number``'s own private key and ``everybody`` the public identities in the order of numbers.
    ``memory``, ``PartyMemory(round)`` at first, is all its state, for a party that is another process in each stage;
    keep the newest one only, for an older one would answer a stage twice.
    """

    def __init__(
        self,
        group: Group,
        everybody: Sequence[bytes],
        number: int,
        identity: bytes,
        memory: PartyMemory,
    ) -> None:
        check_identities(group, everybody)
        if not 0 <= number < group.parties or everybody[number] != crypto.public_identity(identity):
            raise ValueError(f"number={number!r} is not the number of this identity: it must be its place in everybody")
        self._group, self._everybody, self._number, self._identity = group, everybody, number, identity
        self.memory = memory

    def answer(self, stage: int, question: bytes, vector: Callable[[], Integers]) -> bytes:
        """The answer to the question of any stage; the vector is made in stage MASK only."""
        match stage:
            case SumStage.ADVERTISE:
                return self.advertise()
            case SumStage.SHARE:
                return self.share(question)
            case SumStage.MASK:
                return self.mask(question, vector())
            case SumStage.CONFIRM:
                return self.confirm(question)
            case SumStage.UNMASK:
                return self.unmask(question)
        raise BadMessage("stage")

    def advertise(self) -> bytes:
        """Fresh public keys."""
        self._enter(SumStage.ADVERTISE)
        self.memory.mask_key, self.memory.envelope_key = crypto.fresh_secret(), crypto.fresh_secret()
        keys = self._public_keys()
        statement = keys_statement(self._group, self.memory.round, self._number, keys)
        return self._answer(SumStage.ADVERTISE, {self._number: keys + crypto.sign(self._identity, statement)})

    def share(self, advertised: bytes) -> bytes:
        """Envelopes for all who advertised keys, with shares of this party's secrets."""
        contents = self._enter(SumStage.SHARE, advertised)
        for party, content in contents.items():
            check_keys(self._group, self._everybody, self.memory.round, party, content)
        if contents[self._number][:KEYS_SIZE] != self._public_keys():
            raise BadMessage("content")
        self.memory.advertised, self.memory.seed = advertised, crypto.fresh_secret()
        of_key, of_seed = (
            secret_shares.split(secret, self._group.parties, self._group.quorum)
            for secret in (self.memory.mask_key, self.memory.seed)
        )
        sealed = {
            party: crypto.seal(self._envelope_key(keys, self._number, party), of_key[party] + of_seed[party])
            for party, keys in contents.items()
        }
        return self._answer(SumStage.SHARE, sealed)

    def mask(self, envelopes: bytes, vector: Integers) -> bytes:
        """The vector, which must contain its noise already, under the masks."""
        contents = self._enter(SumStage.MASK, envelopes)
        advertised = self._advertisements()
        if not contents.keys() <= advertised.keys():
            raise BadMessage("sender")
        _check_vector(vector, 2**62 // self._group.parties)
        self.memory.envelopes = envelopes
        masked = vector.astype(np.uint64) + crypto.mask(self.memory.seed, self.memory.round, vector.size)
        for party in contents.keys() - {self._number}:
            public, pair = advertised[party][: crypto.KEY_SIZE], (self._number, party)
            masked += crypto.pair_mask(self.memory.mask_key, public, pair, self.memory.round, vector.size)
        return self._answer(SumStage.MASK, {self._number: masked.astype("<u8").tobytes()})

    def confirm(self, survivors: bytes) -> bytes:
        """A signature under the list of those whose vectors the server will sum."""
        contents = self._enter(SumStage.CONFIRM, survivors)
        if not contents.keys() <= self._contents(self.memory.envelopes, SumStage.MASK).keys():
            raise BadMessage("sender")
        self.memory.survivors = survivors
        return self._answer(SumStage.CONFIRM, {self._number: crypto.sign(self._identity, self._survivors_statement())})

    def unmask(self, confirmed: bytes) -> bytes:
        """For each who sent a vector a share of its seed, for each other party one of its mask key; never both."""
        contents = self._enter(SumStage.UNMASK, confirmed)
        statement = self._survivors_statement()
        for party, signature in contents.items():
            crypto.check_signature(self._everybody[party], signature, statement)
        survivors, advertised = self._contents(self.memory.survivors, SumStage.CONFIRM), self._advertisements()
        shares = {}
        for party, envelope in self._contents(self.memory.envelopes, SumStage.MASK).items():
            opened = crypto.unseal(self._envelope_key(advertised[party], party, self._number), envelope)
            of_key, of_seed = opened[: secret_shares.SHARE_SIZE], opened[secret_shares.SHARE_SIZE :]
            shares[party] = of_seed if party in survivors else of_key
        self.memory = PartyMemory(self.memory.round, SumStage.UNMASK)
        return self._answer(SumStage.UNMASK, shares)

    def _enter(self, stage: SumStage, question: bytes | None = None) -> Mapping[int, bytes]:
        """Go on to ``stage``, once; what its question says about a quorum of parties, of which this is one."""
        if self.memory.stage != stage - 1:
            raise BadMessage("stage")
        contents = {} if question is None else self._contents(question, stage)
        if question is not None:
            if len(contents) < self._group.quorum:
                raise BadMessage("too few")
            if self._number not in contents or max(contents) >= self._group.parties:
                raise BadMessage("sender")
            if any(len(content) != QUESTION_SIZES[stage] for content in contents.values()):
                raise BadMessage("content")
        self.memory.stage = stage
        return contents

    def _contents(self, question: bytes, stage: SumStage) -> Mapping[int, bytes]:
        message = decode(question, stage, self.memory.round)
        if message.sender != SERVER:
            raise BadMessage("sender")
        return message.contents

    def _answer(self, stage: SumStage, contents: Mapping[int, bytes]) -> bytes:
        return encode(Message(stage, self.memory.round, self._number, contents))

    def _advertisements(self) -> Mapping[int, bytes]:
        return self._contents(self.memory.advertised, SumStage.SHARE)

    def _public_keys(self) -> bytes:
        return crypto.public_key(self.memory.mask_key) + crypto.public_key(self.memory.envelope_key)

    def _envelope_key(self, keys: bytes, sender: int, receiver: int) -> bytes:
        """The key of the one envelope from ``sender`` to ``receiver``: one is this party, ``keys`` are the other's."""
        public = keys[crypto.KEY_SIZE : KEYS_SIZE]
        return crypto.agree(self.memory.envelope_key, public, b"envelope %d %d" % (sender, receiver))

    def _survivors_statement(self) -> bytes:
        return survivors_statement(self.memory.advertised, self.memory.survivors)


def _check_vector(vector: Integers, most: int) -> None:
    if vector.dtype != np.int64 or vector.ndim != 1:
        raise TypeError(f"vector has dtype {vector.dtype} and {vector.ndim} axes: give one axis of int64")
    if np.any(vector > most) or np.any(vector < -most):
        raise ValueError(f"vector has an entry beyond +-{most}, so that the sum could overflow: use a coarser grid")


class RoundAborted(RuntimeError):  # noqa: N818  (the public name says what it is)
    """Too few parties were left; nothing was revealed. Start a new round, with new noise."""


class MaskingServer:
    """The server's half of one round: ``receive`` the answers of a stage, then ``close`` it for the next questions.

    Who sent no good answer when a stage is closed has left the round. ``total`` is there after the last stage.
    """

    def __init__(self, group: Group, everybody: Sequence[bytes], round_number: int, length: int) -> None:
        check_identities(group, everybody)
        self._group, self._everybody, self._round, self._length = group, everybody, round_number, length
        self.stage = SumStage.ADVERTISE
        self.expected = set(range(group.parties))  # who may answer in this stage
        self._answers: dict[SumStage, dict[int, Mapping[int, bytes]]] = {stage: {} for stage in SumStage}
        self._questions: dict[SumStage, bytes] = {}  # those that are the same for all

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
        if self.stage == SumStage.ADVERTISE:
            check_keys(self._group, self._everybody, self._round, sender, contents[sender])
        if self.stage == SumStage.CONFIRM:
            statement = survivors_statement(self._questions[SumStage.SHARE], self._questions[SumStage.CONFIRM])
            crypto.check_signature(self._everybody[sender], contents[sender], statement)
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
        if self.stage == SumStage.UNMASK:
            return {}
        closed, self.stage = self.stage, SumStage(self.stage + 1)
        if closed == SumStage.SHARE:
            return {to: self._question({party: answers[party][to] for party in answers}) for to in answers}
        own = {party: b"" if closed == SumStage.MASK else answers[party][party] for party in answers}
        self._questions[self.stage] = self._question(own)
        return dict.fromkeys(answers, self._questions[self.stage])

    def total(self) -> Integers:
        """The sum of the vectors of all who sent one."""
        if self.stage != SumStage.UNMASK or len(self._answers[SumStage.UNMASK]) < self._group.quorum:
            raise RoundAborted("the stages of this round are not over: there is no sum yet")
        vectors = {party: contents[party] for party, contents in self._answers[SumStage.MASK].items()}
        total = np.zeros(self._length, dtype=np.uint64)
        for vector in vectors.values():
            total += np.frombuffer(vector, "<u8")
        for party in self._answers[SumStage.SHARE]:
            secret = self._opened_secret(party)
            if party in vectors:
                total -= crypto.mask(secret, self._round, self._length)
                continue
            for other in vectors:  # what ``party`` would have added cancels what ``other`` did
                public = self._answers[SumStage.ADVERTISE][other][other][: crypto.KEY_SIZE]
                total += crypto.pair_mask(secret, public, (party, other), self._round, self._length)
        return total.astype(np.int64)

    def _opened_secret(self, party: int) -> bytes:
        """The seed of a party that sent its vector, the mask key of one that did not."""
        quorum = sorted(self._answers[SumStage.UNMASK])[: self._group.quorum]
        return secret_shares.join({holder: self._answers[SumStage.UNMASK][holder][party] for holder in quorum})

    def _expected_contents(self, sender: int) -> tuple[set[int], int]:
        """About whom a party's answer to this stage must be, and the size of each content."""
        match self.stage:
            case SumStage.ADVERTISE:
                return {sender}, ADVERTISED_SIZE
            case SumStage.SHARE:
                return set(self._answers[SumStage.ADVERTISE]), ENVELOPE_SIZE
            case SumStage.MASK:
                return {sender}, 8 * self._length
            case SumStage.CONFIRM:
                return {sender}, crypto.SIGNATURE_SIZE
            case SumStage.UNMASK:
                return set(self._answers[SumStage.SHARE]), secret_shares.SHARE_SIZE

    def _question(self, contents: Mapping[int, bytes]) -> bytes:
        return encode(Message(self.stage, self._round, SERVER, contents))


# -- what parties sign --------------------------------------------------------------------------------------------


def check_identities(group: Group, everybody: Sequence[bytes]) -> None:
    if len(everybody) != group.parties or len(set(everybody)) != group.parties:
        raise ValueError(f"everybody has {len(set(everybody))} identities for parties={group.parties}: give one each")


def check_keys(group: Group, everybody: Sequence[bytes], round_number: int, party: int, content: bytes) -> None:
    """Refuse keys that ``party`` did not sign for this round of this group."""
    if len(content) != ADVERTISED_SIZE:
        raise BadMessage("content")
    keys, signature = content[:KEYS_SIZE], content[KEYS_SIZE:]
    crypto.check_signature(everybody[party], signature, keys_statement(group, round_number, party, keys))


def keys_statement(group: Group, round_number: int, party: int, keys: bytes) -> bytes:
    place = round_number.to_bytes(8) + party.to_bytes(2)
    return b"thresher keys" + group.to_bytes() + place + keys


def survivors_statement(advertised: bytes, survivors: bytes) -> bytes:
    """Names every fresh key of the round, so that no signature of another round or group fits."""
    return b"thresher survivors" + sha256(advertised).digest() + survivors
