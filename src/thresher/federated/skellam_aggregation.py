"""Secure sums with noise that the parties make together, all in one process: for simulation, and to see it work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from thresher.federated.aggregation import skellam_share
from thresher.federated.crypto import new_identity, public_identity
from thresher.federated.group import Group
from thresher.federated.messages import SumStage
from thresher.federated.secagg import MaskingParty, MaskingServer, PartyMemory
from thresher.privacy.arrays import Integers
from thresher.privacy.laws.skellam import Skellam
from thresher.vaults.randomness import NoiseSource

__all__ = ["SkellamAggregation"]


class SkellamAggregation:
    """Sums of the parties' vectors with Skellam noise, of which each party adds a part before it masks its vector.

    As long as at most ``dropouts`` parties leave and ``colluding`` tell the server what they know, everybody, these
    included, sees the sum with noise of at least the law's variance that they do not know, and nothing else. The price
    is more noise than one copy when fewer leave or collude: parties/(parties - dropouts - colluding) times the
    variance. Hidden from all: the vectors, partial sums, the honest parties' noise. Not hidden: who took part. In this
    simulation one process holds everything, so it hides nothing from who runs it.

    ``random_state`` makes the noise repeatable, for tests; the masks, which cancel, are always fresh.
    """

    def __init__(self, parties: int, *, dropouts: int = 0, colluding: int = 0, random_state: int | None = None) -> None:
        self.group = Group(parties, dropouts, colluding)
        self._identities = [new_identity() for _ in range(parties)]
        self._everybody = [public_identity(identity) for identity in self._identities]
        self._noise = [NoiseSource(random_state, stream=party) for party in range(parties)]
        self._rounds = 0

    @property
    def randomness(self) -> str:
        return f"each party's own share ({self._noise[0].description.partition(';')[0]}); whole numbers, masked"

    def close(self) -> None:
        """There is nothing to close."""

    def noisy_sum(
        self, parts: Sequence[Integers], law: Skellam, *, leaving: Mapping[int, SumStage] | None = None
    ) -> Integers:
        """The sum of one vector for each party, and noise of this law at least.

        ``leaving`` says which parties are silent from which stage on. If too many are, ``RoundAborted`` is raised.
        """
        if len(parts) != self.group.parties:
            raise ValueError(f"parts has {len(parts)} vectors for parties={self.group.parties}: give one each")
        self._rounds += 1
        server = MaskingServer(self.group, self._everybody, self._rounds, parts[0].size)
        parties = [
            MaskingParty(self.group, self._everybody, number, identity, PartyMemory(self._rounds))
            for number, identity in enumerate(self._identities)
        ]
        left = {} if leaving is None else leaving
        questions = dict.fromkeys(server.expected, b"")
        for stage in SumStage:
            for number, question in questions.items():
                if number not in left or stage < left[number]:
                    noisy = partial(self._noisy, parts[number], number, law)
                    server.receive(parties[number].answer(stage, question, noisy))
            questions = server.close()
        return server.total()

    def _noisy(self, part: Integers, number: int, law: Skellam) -> Integers:
        return part + skellam_share(self._noise[number], law, self.group.honest, part.size)
