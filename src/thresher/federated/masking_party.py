"""A party's half of a secure sum; ``thresher.federated.secagg`` says what it is safe from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from thresher.federated import identities, masks, secret_shares, statements
from thresher.federated.group import Group
from thresher.federated.messages import SERVER, BadMessage, Message, Stage, decode, encode
from thresher.privacy.arrays import Integers

__all__ = ["MaskingParty", "Memory"]


@dataclass
class Memory:
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
    ``memory``, ``Memory(round)`` at first, is all its state, for a party that is another process in each stage; keep
    the newest one only, for an older one would answer a stage twice.
    """

    def __init__(
        self,
        group: Group,
        everybody: Sequence[bytes],
        number: int,
        identity: bytes,
        memory: Memory,
    ) -> None:
        statements.check_identities(group, everybody)
        if not 0 <= number < group.parties or everybody[number] != identities.public_identity(identity):
            raise ValueError(f"number={number!r} is not the number of this identity: it must be its place in everybody")
        self._group, self._everybody, self._number, self._identity = group, everybody, number, identity
        self.memory = memory

    def answer(self, stage: int, question: bytes, vector: Callable[[], Integers]) -> bytes:
        """The answer to the question of any stage; the vector is made in stage MASK only."""
        match stage:
            case Stage.ADVERTISE:
                return self.advertise()
            case Stage.SHARE:
                return self.share(question)
            case Stage.MASK:
                return self.mask(question, vector())
            case Stage.CONFIRM:
                return self.confirm(question)
            case Stage.UNMASK:
                return self.unmask(question)
        raise BadMessage("stage")

    def advertise(self) -> bytes:
        """Fresh public keys."""
        self._enter(Stage.ADVERTISE)
        self.memory.mask_key, self.memory.envelope_key = masks.fresh_secret(), masks.fresh_secret()
        keys = self._public_keys()
        statement = statements.keys_statement(self._group, self.memory.round, self._number, keys)
        return self._answer(Stage.ADVERTISE, {self._number: keys + identities.sign(self._identity, statement)})

    def share(self, advertised: bytes) -> bytes:
        """Envelopes for all who advertised keys, with shares of this party's secrets."""
        contents = self._enter(Stage.SHARE, advertised)
        for party, content in contents.items():
            statements.check_keys(self._group, self._everybody, self.memory.round, party, content)
        if contents[self._number][: statements.KEYS_SIZE] != self._public_keys():
            raise BadMessage("content")
        self.memory.advertised, self.memory.seed = advertised, masks.fresh_secret()
        of_key, of_seed = (
            secret_shares.split(secret, self._group.parties, self._group.quorum)
            for secret in (self.memory.mask_key, self.memory.seed)
        )
        sealed = {
            party: masks.seal(self._envelope_key(keys, self._number, party), of_key[party] + of_seed[party])
            for party, keys in contents.items()
        }
        return self._answer(Stage.SHARE, sealed)

    def mask(self, envelopes: bytes, vector: Integers) -> bytes:
        """The vector, which must contain its noise already, under the masks."""
        contents = self._enter(Stage.MASK, envelopes)
        advertised = self._advertised()
        if not contents.keys() <= advertised.keys():
            raise BadMessage("sender")
        _check_vector(vector, 2**62 // self._group.parties)
        self.memory.envelopes = envelopes
        masked = vector.astype(np.uint64) + masks.mask(self.memory.seed, self.memory.round, vector.size)
        for party in contents.keys() - {self._number}:
            public, pair = advertised[party][: masks.KEY_SIZE], (self._number, party)
            masked += masks.pair_mask(self.memory.mask_key, public, pair, self.memory.round, vector.size)
        return self._answer(Stage.MASK, {self._number: masked.astype("<u8").tobytes()})

    def confirm(self, survivors: bytes) -> bytes:
        """A signature under the list of those whose vectors the server will sum."""
        contents = self._enter(Stage.CONFIRM, survivors)
        if not contents.keys() <= self._contents(self.memory.envelopes, Stage.MASK).keys():
            raise BadMessage("sender")
        self.memory.survivors = survivors
        return self._answer(Stage.CONFIRM, {self._number: identities.sign(self._identity, self._survivors_statement())})

    def unmask(self, confirmed: bytes) -> bytes:
        """For each who sent a vector a share of its seed, for each other party one of its mask key; never both."""
        contents = self._enter(Stage.UNMASK, confirmed)
        statement = self._survivors_statement()
        for party, signature in contents.items():
            identities.check(self._everybody[party], signature, statement)
        survivors, advertised = self._contents(self.memory.survivors, Stage.CONFIRM), self._advertised()
        shares = {}
        for party, envelope in self._contents(self.memory.envelopes, Stage.MASK).items():
            opened = masks.unseal(self._envelope_key(advertised[party], party, self._number), envelope)
            of_key, of_seed = opened[: secret_shares.SHARE_SIZE], opened[secret_shares.SHARE_SIZE :]
            shares[party] = of_seed if party in survivors else of_key
        self.memory = Memory(self.memory.round, Stage.UNMASK)
        return self._answer(Stage.UNMASK, shares)

    def _enter(self, stage: Stage, question: bytes | None = None) -> Mapping[int, bytes]:
        """Go on to ``stage``, once; what its question says about a quorum of parties, of which this is one."""
        if self.memory.stage != stage - 1:
            raise BadMessage("stage")
        contents = {} if question is None else self._contents(question, stage)
        if question is not None:
            if len(contents) < self._group.quorum:
                raise BadMessage("too few")
            if self._number not in contents or max(contents) >= self._group.parties:
                raise BadMessage("sender")
            if any(len(content) != statements.QUESTION_SIZES[stage] for content in contents.values()):
                raise BadMessage("content")
        self.memory.stage = stage
        return contents

    def _contents(self, question: bytes, stage: Stage) -> Mapping[int, bytes]:
        message = decode(question, stage, self.memory.round)
        if message.sender != SERVER:
            raise BadMessage("sender")
        return message.contents

    def _answer(self, stage: Stage, contents: Mapping[int, bytes]) -> bytes:
        return encode(Message(stage, self.memory.round, self._number, contents))

    def _advertised(self) -> Mapping[int, bytes]:
        return self._contents(self.memory.advertised, Stage.SHARE)

    def _public_keys(self) -> bytes:
        return masks.public_key(self.memory.mask_key) + masks.public_key(self.memory.envelope_key)

    def _envelope_key(self, keys: bytes, sender: int, receiver: int) -> bytes:
        """The key of the one envelope from ``sender`` to ``receiver``: one is this party, ``keys`` are the other's."""
        public = keys[masks.KEY_SIZE : statements.KEYS_SIZE]
        return masks.agree(self.memory.envelope_key, public, b"envelope %d %d" % (sender, receiver))

    def _survivors_statement(self) -> bytes:
        return statements.survivors_statement(self.memory.advertised, self.memory.survivors)


def _check_vector(vector: Integers, most: int) -> None:
    if vector.dtype != np.int64 or vector.ndim != 1:
        raise TypeError(f"vector has dtype {vector.dtype} and {vector.ndim} axes: give one axis of int64")
    if np.any(vector > most) or np.any(vector < -most):
        raise ValueError(f"vector has an entry beyond +-{most}, so that the sum could overflow: use a coarser grid")
