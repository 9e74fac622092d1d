"""What a secure sum by masking costs each party and the server: seconds of one core, and bytes, for one round.

Run: ./dev federated masks
"""

from __future__ import annotations

import time

import numpy as np

from thresher.federated.crypto import new_identity, public_identity
from thresher.federated.group import Group
from thresher.federated.messages import SumStage
from thresher.federated.secagg import MaskingParty, MaskingServer, PartyMemory

SETTINGS = [(10, 1000), (100, 1000), (10, 100_000)]  # parties, length of the vectors


def one_round(parties: int, length: int) -> tuple[float, float, int]:
    """Seconds of a party, seconds of the server, bytes that a party sends and receives; a tenth of them may leave."""
    group = Group(parties, dropouts=parties // 10, colluding=parties // 10)
    identities = [new_identity() for _ in range(parties)]
    everybody = [public_identity(identity) for identity in identities]
    members = [MaskingParty(group, everybody, n, identity, PartyMemory(1)) for n, identity in enumerate(identities)]
    server = MaskingServer(group, everybody, 1, length)
    vector = np.arange(length)
    questions = dict.fromkeys(range(parties), b"")
    in_parties, sizes, start = 0.0, 0, time.process_time()
    for stage in SumStage:
        asked = time.process_time()
        answers = [members[n].answer(stage, question, lambda: vector) for n, question in questions.items()]
        in_parties += time.process_time() - asked
        sizes += sum(map(len, answers)) + sum(map(len, questions.values()))
        for answer in answers:
            server.receive(answer)
        questions = server.close()
    np.testing.assert_array_equal(server.total(), parties * vector)
    return in_parties / parties, time.process_time() - start - in_parties, sizes // parties


def main() -> None:
    print(f"{'parties':>8} {'length':>8} {'s/party':>9} {'s/server':>9} {'bytes/party':>12}")
    for parties, length in SETTINGS:
        party, server, size = one_round(parties, length)
        print(f"{parties:8d} {length:8d} {party:9.4f} {server:9.4f} {size:12,d}")


def smallest() -> None:
    print(one_round(3, 4))


if __name__ == "__main__":
    main()
