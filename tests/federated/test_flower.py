"""Flower as transport: noisy sums through its messages, in one process; test_flower_processes.py has the real ones."""

from __future__ import annotations

import logging
import time

import numpy as np
import pytest

pytest.importorskip("flwr")

from flwr.app import ConfigRecord, Message, RecordDict

from flower_machines import OneProcessGrid
from secure_sums import EVERYBODY, IDENTITIES
from thresher.federated.flower import FlowerAggregation, FlowerMember, client_app
from thresher.federated.group import Group
from thresher.federated.messages import SumStage
from thresher.federated.secagg import RoundAborted
from thresher.privacy.laws.skellam import Skellam

LAW = Skellam(4.0)
FAR = 100  # more than 25 standard deviations of any noise below: exceeded with chance below 1e-12


def fivefold(number):
    """A party's answer: the question's numbers times five and its own number."""
    return lambda question: np.frombuffer(question, "<i8") * 5 * (number + 1)


def asking(numbers):
    return np.asarray(numbers).astype("<i8").tobytes()


def grid_of(group, answers, law=LAW):
    """A grid whose parties answer like this."""
    members = [
        FlowerMember(group, EVERYBODY[: group.parties], n, IDENTITIES[n], law, answer)
        for n, answer in enumerate(answers)
    ]
    return OneProcessGrid([client_app(lambda context, own=own: own) for own in members])


def aggregation_over(grid, group, length=3):
    return FlowerAggregation(grid, group, EVERYBODY[: group.parties], length, patience=0.5)


def test_sums_come_back_with_noise_round_after_round():
    group = Group(3)
    grid = grid_of(group, [fivefold(n) for n in range(3)])
    aggregation = aggregation_over(grid, group)
    totals = np.array([aggregation.noisy_sum(asking([10**6, -(10**9), k]), LAW) for k in range(5)])
    errors = totals - 30 * np.array([[10**6, -(10**9), k] for k in range(5)])
    assert np.all(np.abs(errors) < FAR)
    assert len(np.unique(errors)) > 1


def test_a_party_that_falls_silent_leaves_one_round_and_is_back_in_the_next():
    group = Group(5, dropouts=2)
    grid = grid_of(group, [fivefold(n) for n in range(5)])
    grid.silent = {102: SumStage.MASK, 103: SumStage.CONFIRM}
    aggregation = aggregation_over(grid, group, length=1)
    assert abs(aggregation.noisy_sum(asking([10**6]), LAW)[0] - 5 * (1 + 2 + 4 + 5) * 10**6) < FAR
    grid.silent = {100: SumStage.UNMASK, 101: SumStage.ADVERTISE, 104: SumStage.ADVERTISE}
    with pytest.raises(RoundAborted, match="nothing was revealed"):
        aggregation.noisy_sum(asking([10**6]), LAW)
    grid.silent = {}
    assert abs(aggregation.noisy_sum(asking([10**6]), LAW)[0] - 75 * 10**6) < FAR


def test_what_came_in_time_is_taken_however_long_sending_and_looking_take():
    """Each takes longer than the patience of a stage; a party that never answers ends the stage all the same."""
    group = Group(3, dropouts=1)
    grid = grid_of(group, [fivefold(n) for n in range(3)])
    grid.silent = {101: SumStage.ADVERTISE}

    def slowly(call):
        return lambda *arguments: time.sleep(0.06) or call(*arguments)

    grid.push_messages, grid.pull_messages = slowly(grid.push_messages), slowly(grid.pull_messages)
    aggregation = FlowerAggregation(grid, group, EVERYBODY[:3], 1, patience=0.05)
    assert abs(aggregation.noisy_sum(asking([10**6]), LAW)[0] - 5 * (1 + 3) * 10**6) < FAR


def test_a_party_refuses_less_noise_than_it_insists_on():
    group = Group(3)
    grid = grid_of(group, [fivefold(n) for n in range(3)])
    with pytest.raises(RoundAborted, match="stage MASK"):
        aggregation_over(grid, group).noisy_sum(asking([1, 2, 3]), Skellam(3.9))


@pytest.mark.parametrize("place", ["answer", "member"])
def test_what_goes_wrong_on_a_partys_machine_is_told_to_nobody(place, caplog):
    def secret(_):
        raise KeyError("patient 4711")

    group = Group(3)
    grid = grid_of(group, [fivefold(0), fivefold(1), secret if place == "answer" else fivefold(2)])
    if place == "member":
        grid.apps = dict.fromkeys(grid.apps, client_app(secret))
    heard = []
    grid.pull_messages = lambda ids: heard.extend(found := OneProcessGrid.pull_messages(grid, ids)) or found
    with caplog.at_level(logging.WARNING), pytest.raises(RoundAborted):
        aggregation_over(grid, group).noisy_sum(asking([1, 2, 3]), LAW)
    reasons = [reply.error.reason for reply in heard if reply.has_error()]
    assert reasons
    assert all("its own log says why" in reason and "4711" not in reason for reason in reasons)
    assert "4711" in caplog.text  # on the party's own machine


def test_a_stage_is_answered_once_even_if_the_message_comes_again():
    group = Group(3)
    grid = grid_of(group, [fivefold(n) for n in range(3)])
    aggregation_over(grid, group).noisy_sum(asking([1, 2, 3]), LAW)
    for message in grid.sent:
        if message.content["asked"]["stage"] > SumStage.ADVERTISE:
            context = grid.contexts[message.metadata.dst_node_id]
            assert grid.reply(message, context).has_error()


def test_no_secret_of_a_round_is_kept_after_it():
    group = Group(3)
    grid = grid_of(group, [fivefold(n) for n in range(3)])
    aggregation_over(grid, group).noisy_sum(asking([1, 2, 3]), LAW)
    for context in grid.contexts.values():
        memory = context.state["memory"]
        assert isinstance(memory, ConfigRecord)
        assert not any(memory[name] for name in ("mask_key", "envelope_key", "seed"))


def test_a_reply_without_an_answer_is_no_answer():
    group = Group(3, dropouts=1)
    grid = grid_of(group, [fivefold(n) for n in range(3)])
    whole = grid.reply

    def reply(message, context):
        if context.node_id != 102:
            return whole(message, context)
        records = [RecordDict(), RecordDict({"answer": ConfigRecord({"message": "text"})})]
        return Message(records[len(grid.sent) % 2], reply_to=message)

    grid.reply = reply
    total = aggregation_over(grid, group, length=1).noisy_sum(asking([10**6]), LAW)
    assert abs(total[0] - 15 * 10**6) < FAR


def test_a_least_squares_fit_by_noisy_sums():
    """The algorithm runs at the server: it sends theta, the parties answer with gradients on a grid of 2^-20."""
    rng = np.random.default_rng(5)
    truth, grid_step = np.array([1.0, -0.5, 0.25]), 2.0**-20
    rows = [rng.normal(size=(400, 3)) for _ in range(3)]

    def gradient(X):
        return lambda question: np.rint((X.T @ (X @ (np.frombuffer(question) - truth))) / grid_step).astype(np.int64)

    group, theta = Group(3, colluding=1), np.zeros(3)
    law = Skellam((0.5 / grid_step / 32) ** 2)
    aggregation = aggregation_over(grid_of(group, [gradient(X) for X in rows], law), group)
    for _ in range(12):
        theta = theta - 0.7 / 1200 * grid_step * aggregation.noisy_sum(theta.tobytes(), law)
    np.testing.assert_allclose(theta, truth, atol=0.01)
