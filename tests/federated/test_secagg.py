"""Secure sums: exact or aborted, nothing in the transcript, and no two answers that would tell a vector."""

from __future__ import annotations

import itertools
from dataclasses import asdict, replace

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("cryptography")

from secure_sums import EVERYBODY, IDENTITIES, Study
from thresher.federated import crypto, secret_shares
from thresher.federated.group import Group
from thresher.federated.messages import HEADER, SERVER, BadMessage, Message, SumStage, decode, encode
from thresher.federated.secagg import MaskingParty, MaskingServer, PartyMemory, RoundAborted

FALSE_ALARM = 1e-6  # of each statistical test, which draws fresh bits in every run


def question(stage, contents, number=1):
    return encode(Message(stage, number, SERVER, contents))


# -- the sum --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("parties", "dropouts", "colluding"), [(2, 0, 0), (2, 0, 1), (3, 1, 0), (7, 2, 2), (9, 0, 0)])
def test_the_sum_is_exact(parties, dropouts, colluding):
    study = Study(parties, dropouts, colluding)
    total = study.total()
    assert total.dtype == np.int64
    np.testing.assert_array_equal(total, sum(study.vectors))


def test_the_sum_is_exact_at_the_largest_and_smallest_numbers():
    study = Study(4)
    most = 2**62 // 4
    study.vectors = [np.array([most, -most, most, -most, 0, 1, -1])] * 4
    np.testing.assert_array_equal(study.total(), 4 * study.vectors[0])


PATTERNS = list(itertools.combinations_with_replacement([*SumStage, None], 5))


def test_every_way_of_leaving_gives_the_exact_sum_of_those_who_sent_a_vector_or_none_at_all():
    """Five parties of whom two may leave: all patterns up to the parties' names, which rotate."""
    outcomes = []
    for turn, pattern in enumerate(PATTERNS):
        leaving = {(party + turn) % 5: stage for party, stage in enumerate(pattern) if stage is not None}
        study = Study(5, dropouts=2)
        if len(leaving) > 2:
            with pytest.raises(RoundAborted, match="nothing was revealed"):
                study.total(leaving)
            with pytest.raises(RoundAborted, match="no sum yet"):
                study.server.total()
        else:
            sent = [party for party in range(5) if party not in leaving or leaving[party] > SumStage.MASK]
            np.testing.assert_array_equal(study.total(leaving), sum(study.vectors[party] for party in sent))
        outcomes.append(len(leaving) > 2)
    assert len(outcomes) == 252
    assert outcomes.count(False) == 21


def test_rounds_have_their_own_masks():
    masked = [Study(3, number=number).play_until(SumStage.MASK).play(SumStage.MASK)[0] for number in (1, 2, 2)]
    words = [set(np.frombuffer(answer[HEADER.size + 6 :], "<u8").tolist()) for answer in masked]
    assert len(set().union(*words)) == 3 * 7


def test_a_party_may_be_another_process_in_every_stage():
    study = Study(3, dropouts=1)
    for stage in SumStage:
        study.play(stage)
        study.parties = [
            MaskingParty(study.group, study.everybody, number, IDENTITIES[number], PartyMemory(**asdict(party.memory)))
            for number, party in enumerate(study.parties)
        ]
    np.testing.assert_array_equal(study.server.total(), sum(study.vectors))
    assert all(party.memory == PartyMemory(1, SumStage.UNMASK) for party in study.parties)  # no secret is kept


# -- what the server sees -------------------------------------------------------------------------------------------


def test_a_masked_vector_looks_uniform_alone_and_beside_another():
    """Chi-square over the values of bytes, for two parties' vectors and for their difference."""
    study = Study(3, length=20_000)
    answers = study.play_until(SumStage.MASK).play(SumStage.MASK)
    one, two = (np.frombuffer(answers[party][HEADER.size + 6 :], "<u8") for party in (0, 1))
    for words in (one, two, one - two, one + two):
        counts = np.bincount(words.view(np.uint8), minlength=256)
        assert stats.chisquare(counts).pvalue > FALSE_ALARM
    plain = np.bincount(study.vectors[0].view(np.uint8), minlength=256)
    assert stats.chisquare(plain).pvalue < FALSE_ALARM  # the same test tells a vector without masks


@pytest.mark.parametrize("leaving", [{}, {1: SumStage.MASK}, {2: SumStage.CONFIRM}])
def test_the_transcript_holds_no_vector_and_no_secret(leaving):
    study = Study(5, dropouts=2)
    study.vectors = [np.random.default_rng(party).integers(-(2**50), 2**50, 7) for party in range(5)]
    memories = []
    for stage in SumStage:
        study.play(stage, {party for party, left in leaving.items() if left <= stage})
        memories += [asdict(party.memory) for party in study.parties]
    secrets = {memory[name] for memory in memories for name in ("mask_key", "envelope_key", "seed")} - {b""}
    vectors = [vector.astype(kind).tobytes() for vector in study.vectors for kind in ("<i8", ">i8")]
    numbers = {vector[at : at + 8] for vector in vectors for at in range(0, len(vector), 8)}
    seen = b"|".join(study.transcript)
    assert len(secrets) == 15
    assert len(numbers) == 70
    assert not [hidden for hidden in secrets | numbers if hidden in seen]


def shares_opened_by(study, holders, about):
    """Shares of the seed of party ``about`` that some parties find in their envelopes."""
    found = {}
    for holder in holders:
        party = study.parties[holder]
        envelope = decode(party.memory.envelopes, SumStage.MASK, 1).contents[about]
        advertised = decode(party.memory.advertised, SumStage.SHARE, 1).contents[about]
        opened = crypto.unseal(party._envelope_key(advertised, about, holder), envelope)
        found[holder] = opened[secret_shares.SHARE_SIZE :]
    return found


def test_colluding_parties_cannot_open_a_seed_and_one_more_than_tolerated_is_still_too_few():
    study = Study(7, dropouts=2, colluding=2).play_until(SumStage.CONFIRM)
    seed = study.parties[0].memory.seed
    assert secret_shares.join(shares_opened_by(study, range(2, 7), 0)) == seed  # a quorum can
    for few in (2, 3, 4):
        for holders in itertools.combinations(range(1, 7), few):
            try:
                assert secret_shares.join(shares_opened_by(study, holders, 0)) != seed
            except ValueError:
                continue  # no 32-byte secret at all


# -- a server that breaks the rules ---------------------------------------------------------------------------------


def test_a_party_unmasks_one_list_of_survivors_once():
    """Who gave shares of the seeds of all will not give those of a mask key, nor the other way round."""
    study = Study(5, dropouts=2).play_until(SumStage.CONFIRM)
    party, everyone = study.parties[0], study.questions[0]
    others = question(SumStage.CONFIRM, dict.fromkeys([0, 1, 2], b""))
    study.play(SumStage.CONFIRM)
    with pytest.raises(BadMessage, match="stage"):
        party.confirm(others)
    study.play(SumStage.UNMASK)
    for again in (lambda: party.confirm(others), lambda: party.confirm(everyone), lambda: party.unmask(b"")):
        with pytest.raises(BadMessage, match="stage"):
            again()


def test_parties_that_were_told_different_survivors_do_not_unmask():
    study = Study(5, dropouts=2).play_until(SumStage.CONFIRM)
    lists = [dict.fromkeys(names, b"") for names in ([0, 1, 2, 3, 4], [0, 1, 2], [2, 3, 4])]
    told = [lists[0], lists[1], lists[0], lists[2], lists[2]]
    answers = [party.confirm(question(SumStage.CONFIRM, told[n])) for n, party in enumerate(study.parties)]
    signatures = {n: decode(answer, SumStage.CONFIRM, 1).contents[n] for n, answer in enumerate(answers)}
    for number, party in enumerate(study.parties):
        alike = {n: signatures[n] for n in range(5) if told[n] == told[number]}
        for shown, reason in [(signatures, "signature"), (alike, "too few")]:
            before = asdict(party.memory)
            with pytest.raises(BadMessage, match=reason):
                party.unmask(question(SumStage.UNMASK, shown))
            party.memory = PartyMemory(**before)


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ([0, 1], "too few"),
        ([], "too few"),
        ([1, 2, 3], "sender"),
        ([0, 1, 2, 9], "sender"),
        ([0, 1, 2, 4], "sender"),
    ],
)
def test_lists_of_survivors_that_cannot_be_are_refused(names, reason):
    """Too short, without the party itself, with nobody, or with one who shared no keys."""
    study = Study(5, dropouts=2)
    study.play(SumStage.ADVERTISE)
    study.play(SumStage.SHARE, silent={4})
    study.play(SumStage.MASK)
    with pytest.raises(BadMessage, match=reason):
        study.parties[0].confirm(question(SumStage.CONFIRM, dict.fromkeys(names, b"")))


def advertised_by(study, number, round_number=1):
    """Another advertisement of a party, as of an earlier run: its keys are signed, and older."""
    party = MaskingParty(study.group, study.everybody, number, IDENTITIES[number], PartyMemory(round_number))
    return decode(party.advertise(), SumStage.ADVERTISE, round_number).contents[number]


@pytest.mark.parametrize("forged", ["keys", "signature", "round", "another's", "short"])
def test_keys_that_their_party_did_not_sign_for_this_round_are_refused(forged):
    study = Study(3).play_until(SumStage.SHARE)
    contents = dict(decode(study.questions[0], SumStage.SHARE, 1).contents)
    contents[2] = {
        "keys": crypto.public_key(crypto.fresh_secret()) + contents[2][32:],
        "signature": contents[2][:-1] + bytes([contents[2][-1] ^ 1]),
        "round": advertised_by(study, 2, round_number=2),
        "another's": contents[1],
        "short": contents[2][:-1],
    }[forged]
    with pytest.raises(BadMessage, match="content" if forged == "short" else "signature"):
        study.parties[0].share(question(SumStage.SHARE, contents))


def test_parties_that_saw_different_keys_do_not_unmask():
    """Old signed keys of a party, replayed to some of the others, have the right signature for the same round."""
    study = Study(3).play_until(SumStage.SHARE)
    replayed = dict(decode(study.questions[0], SumStage.SHARE, 1).contents) | {2: advertised_by(study, 2)}
    with pytest.raises(BadMessage, match="content"):
        study.parties[2].share(question(SumStage.SHARE, replayed))
    study = Study(3).play_until(SumStage.SHARE)
    replayed = dict(decode(study.questions[0], SumStage.SHARE, 1).contents) | {2: advertised_by(study, 2)}
    study.questions[0] = question(SumStage.SHARE, replayed)
    study.play(SumStage.SHARE)
    study.play(SumStage.MASK)
    answers = {n: party.confirm(study.questions[n]) for n, party in enumerate(study.parties)}
    signatures = {n: decode(answer, SumStage.CONFIRM, 1).contents[n] for n, answer in answers.items()}
    for party in study.parties:
        with pytest.raises(BadMessage, match="signature"):
            party.unmask(question(SumStage.UNMASK, signatures))


def test_parties_of_another_group_do_not_take_part():
    """Who would tolerate more dropouts would unmask a smaller sum."""
    study, other = Study(5, dropouts=1), Study(5, dropouts=2)
    study.play(SumStage.ADVERTISE)
    other.play(SumStage.ADVERTISE)
    with pytest.raises(BadMessage, match="signature"):
        study.parties[0].share(other.questions[0])


def test_envelopes_come_only_from_those_whose_keys_are_known():
    study = Study(5, dropouts=2)
    study.play(SumStage.ADVERTISE, silent={4})
    study.play(SumStage.SHARE)
    contents = decode(study.questions[0], SumStage.MASK, 1).contents
    with pytest.raises(BadMessage, match="sender"):
        study.parties[0].mask(question(SumStage.MASK, {**contents, 4: bytes(82)}), study.vectors[0])


def test_envelopes_that_were_touched_do_not_open():
    study = Study(3)
    study.play(SumStage.ADVERTISE)
    study.play(SumStage.SHARE)
    contents = dict(decode(study.questions[0], SumStage.MASK, 1).contents)
    contents[1], contents[2] = contents[2], contents[1]
    study.questions[0] = question(SumStage.MASK, contents)
    study.play(SumStage.MASK)
    study.play(SumStage.CONFIRM)
    with pytest.raises(BadMessage, match="sealed"):
        study.parties[0].unmask(study.questions[0])


@pytest.mark.parametrize("stage", [SumStage.SHARE, SumStage.MASK, SumStage.CONFIRM, SumStage.UNMASK])
def test_a_server_that_says_more_than_it_may_about_a_party_is_refused(stage):
    """A party keeps what it is told: the server decides neither how much that is nor what it costs."""
    study = Study(3).play_until(stage)
    question = decode(study.questions[0], stage, 1)
    longer = {**question.contents, 1: question.contents[1] + bytes(10**6)}
    before = asdict(study.parties[0].memory)
    with pytest.raises(BadMessage, match="content"):
        study.parties[0].answer(stage, encode(replace(question, contents=longer)), lambda: study.vectors[0])
    assert asdict(study.parties[0].memory) == before


@pytest.mark.parametrize("stage", [0, 6, -1])
def test_a_stage_that_there_is_not_is_refused(stage):
    with pytest.raises(BadMessage, match="stage"):
        Study(3).parties[0].answer(stage, b"", lambda: np.zeros(7, dtype=np.int64))


def test_a_party_does_not_take_another_partys_message_for_the_servers():
    study = Study(3).play_until(SumStage.SHARE)
    forged = Message(SumStage.SHARE, 1, 1, decode(study.questions[0], SumStage.SHARE, 1).contents)
    with pytest.raises(BadMessage, match="sender"):
        study.parties[0].share(encode(forged))


# -- parties that break the rules -----------------------------------------------------------------------------------


def test_the_server_refuses_answers_that_do_not_fit():
    study = Study(5, dropouts=2)
    first = [party.advertise() for party in study.parties]
    study.server.receive(first[0])
    with pytest.raises(BadMessage, match="repeated"):
        study.server.receive(first[0])
    with pytest.raises(BadMessage, match="signature"):
        study.server.receive(first[1][:-1] + bytes([first[1][-1] ^ 1]))
    with pytest.raises(BadMessage, match="sender"):
        study.server.receive(encode(Message(SumStage.ADVERTISE, 1, 5, {5: bytes(128)})))
    for contents in ({1: bytes(127)}, {2: bytes(128)}, {}, {1: bytes(128), 2: bytes(128)}):
        with pytest.raises(BadMessage, match="content"):
            study.server.receive(encode(Message(SumStage.ADVERTISE, 1, 1, contents)))
    for answer in first[1:]:
        study.server.receive(answer)
    study.server.close()
    with pytest.raises(BadMessage, match="stage"):
        study.server.receive(first[4])


def test_the_server_refuses_a_signature_under_another_list():
    study = Study(5, dropouts=2).play_until(SumStage.CONFIRM)
    other = study.parties[0].confirm(question(SumStage.CONFIRM, dict.fromkeys([0, 1, 2], b"")))
    with pytest.raises(BadMessage, match="signature"):
        study.server.receive(other)


def test_who_left_cannot_come_back():
    study = Study(5, dropouts=2)
    study.play(SumStage.ADVERTISE, silent={3})
    late = Message(SumStage.SHARE, 1, 3, {party: bytes(82) for party in (0, 1, 2, 4)})
    with pytest.raises(BadMessage, match="sender"):
        study.server.receive(encode(late))


def test_a_vector_of_another_length_is_refused():
    study = Study(3, length=7).play_until(SumStage.MASK)
    with pytest.raises(BadMessage, match="content"):
        study.server.receive(study.parties[0].mask(study.questions[0], np.arange(6)))


@pytest.mark.parametrize("value", [2**62 // 3 + 1, -(2**62) // 3 - 2, -(2**63)])
def test_a_number_that_could_overflow_the_sum_is_refused_and_not_told(value):
    study = Study(3).play_until(SumStage.MASK)
    with pytest.raises(ValueError, match="coarser grid") as error:
        study.parties[0].mask(study.questions[0], np.array([0, value]))
    assert str(value) not in str(error.value)


@pytest.mark.parametrize("vector", [np.zeros(7), np.zeros(7, dtype=np.int32), np.zeros((7, 1), dtype=np.int64)])
def test_only_vectors_of_whole_numbers_are_summed(vector):
    study = Study(3).play_until(SumStage.MASK)
    with pytest.raises(TypeError, match="give one axis of int64"):
        study.parties[0].mask(study.questions[0], vector)


def test_a_party_must_have_its_own_number():
    for number in (1, 3, -1):
        with pytest.raises(ValueError, match="not the number of this identity"):
            MaskingParty(Group(3), EVERYBODY[:3], number, IDENTITIES[0], PartyMemory(1))


@pytest.mark.parametrize("everybody", [EVERYBODY[:2], EVERYBODY[:2] * 2, [*EVERYBODY[:2], EVERYBODY[0]]])
def test_every_party_has_an_identity_of_its_own(everybody):
    with pytest.raises(ValueError, match="give one each"):
        MaskingServer(Group(3), everybody, 1, 7)
