"""What the tests of secure sums share: a group of parties with keys, and a round with all the bytes that were sent."""

from __future__ import annotations

import numpy as np

from thresher.federated.crypto import new_identity, public_identity
from thresher.federated.group import Group
from thresher.federated.messages import SumStage
from thresher.federated.secagg import MaskingParty, MaskingServer, PartyMemory

IDENTITIES = [new_identity() for _ in range(9)]
EVERYBODY = [public_identity(identity) for identity in IDENTITIES]


class Study:
    """One round: parties, a server, and the transcript of what went through the server, without any noise."""

    def __init__(self, parties, dropouts=0, colluding=0, length=7, number=1):
        self.group = Group(parties, dropouts, colluding)
        self.everybody = EVERYBODY[:parties]
        self.vectors = [np.arange(length) * (10**6 + party) - 3 * 10**6 for party in range(parties)]
        self.parties = [
            MaskingParty(self.group, self.everybody, party, IDENTITIES[party], PartyMemory(number))
            for party in range(parties)
        ]
        self.server = MaskingServer(self.group, self.everybody, number, length)
        self.questions = dict.fromkeys(range(parties), b"")
        self.transcript = []

    def play(self, stage, silent=()):
        """One stage, in which some parties do not answer; the answers of the others."""
        answers = {}
        for party, question in self.questions.items():
            self.transcript.append(question)
            if party not in silent:
                answers[party] = self.parties[party].answer(stage, question, lambda n=party: self.vectors[n])
                self.server.receive(answers[party])
        self.transcript += answers.values()
        self.questions = self.server.close()
        return answers

    def play_until(self, stage):
        """All the stages before this one, with everybody there."""
        for earlier in SumStage:
            if earlier == stage:
                return self
            self.play(earlier)
        return self

    def total(self, leaving=()):
        """The sum of a whole round; ``leaving`` maps parties to the stage in which they fall silent."""
        leaving = dict(leaving)
        for stage in SumStage:
            self.play(stage, {party for party, left in leaving.items() if left <= stage})
        return self.server.total()
