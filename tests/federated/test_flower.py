"""Flower as transport: noisy sums through its messages in one process, then once over real processes on loopback."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr")

from flwr.app import ConfigRecord, Context, Error, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity

from secure_sums import EVERYBODY, IDENTITIES
from thresher.federated.flower import FlowerAggregation, Member, client_app
from thresher.federated.group import Group
from thresher.federated.messages import Stage
from thresher.federated.secagg import RoundAborted
from thresher.skellam import Skellam

LAW = Skellam(4.0)
FAR = 100  # more than 25 standard deviations of any noise below: exceeded with chance below 1e-12


def fivefold(number):
    """A party's answer: the question's numbers times five and its own number."""
    return lambda question: np.frombuffer(question, "<i8") * 5 * (number + 1)


def asking(numbers):
    return np.asarray(numbers).astype("<i8").tobytes()


@pytest.fixture(autouse=True)
def _inside_a_run():
    """Messages carry the run and the node of the process that makes them."""
    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 1, 1


class OneProcessGrid:
    """The part of Flower's grid that is used, with the parties' apps in this process."""

    def __init__(self, group, answers, law=LAW):
        self._app = client_app(lambda context: self._members[context.node_id])
        self._members = {
            100 + n: Member(group, EVERYBODY[: group.parties], n, IDENTITIES[n], law, answer)
            for n, answer in enumerate(answers)
        }
        self.contexts = {node: Context(1, node, {}, RecordDict(), {}) for node in self._members}
        self.silent = {}  # node: the stage from which on it says nothing
        self.replies = {}
        self.sent = []

    def get_node_ids(self):
        return list(self._members)

    def push_messages(self, messages):
        ids = []
        for message in messages:
            ids.append(f"{len(self.sent)}")
            self.sent.append(message)
            message.metadata.__dict__["_message_id"] = ids[-1]
            node, stage = message.metadata.dst_node_id, message.content["asked"]["stage"]
            if stage < self.silent.get(node, stage + 1):
                self.replies[ids[-1]] = self._reply(message, self.contexts[node])
        return ids

    def _reply(self, message, context):
        """As a SuperNode does: an exception goes to the server as its type and text."""
        try:
            return self._app(message, context)
        except Exception as error:
            return Message(Error(0, f"{type(error)}:{error}"), reply_to=message)

    def pull_messages(self, ids):
        return [self.replies.pop(name) for name in list(ids) if name in self.replies]


def aggregation_over(grid, group, length=3):
    return FlowerAggregation(grid, group, EVERYBODY[: group.parties], length, patience=0.5)


def test_sums_come_back_with_noise_round_after_round():
    group = Group(3)
    grid = OneProcessGrid(group, [fivefold(n) for n in range(3)])
    aggregation = aggregation_over(grid, group)
    totals = np.array([aggregation.noisy_sum(asking([10**6, -(10**9), k]), LAW) for k in range(5)])
    errors = totals - 30 * np.array([[10**6, -(10**9), k] for k in range(5)])
    assert np.all(np.abs(errors) < FAR)
    assert len(np.unique(errors)) > 1


def test_a_party_that_falls_silent_leaves_one_round_and_is_back_in_the_next():
    group = Group(5, dropouts=2)
    grid = OneProcessGrid(group, [fivefold(n) for n in range(5)])
    grid.silent = {102: Stage.MASK, 103: Stage.CONFIRM}
    aggregation = aggregation_over(grid, group, length=1)
    assert abs(aggregation.noisy_sum(asking([10**6]), LAW)[0] - 5 * (1 + 2 + 4 + 5) * 10**6) < FAR
    grid.silent = {100: Stage.UNMASK, 101: Stage.ADVERTISE, 104: Stage.ADVERTISE}
    with pytest.raises(RoundAborted, match="nothing was revealed"):
        aggregation.noisy_sum(asking([10**6]), LAW)
    grid.silent = {}
    assert abs(aggregation.noisy_sum(asking([10**6]), LAW)[0] - 75 * 10**6) < FAR


def test_a_party_refuses_less_noise_than_it_insists_on():
    group = Group(3)
    grid = OneProcessGrid(group, [fivefold(n) for n in range(3)])
    with pytest.raises(RoundAborted, match="stage MASK"):
        aggregation_over(grid, group).noisy_sum(asking([1, 2, 3]), Skellam(3.9))


@pytest.mark.parametrize("place", ["answer", "member"])
def test_what_goes_wrong_on_a_partys_machine_is_told_to_nobody(place, caplog):
    def secret(_):
        raise KeyError("patient 4711")

    group = Group(3)
    grid = OneProcessGrid(group, [fivefold(0), fivefold(1), secret if place == "answer" else fivefold(2)])
    if place == "member":
        grid._app = client_app(secret)
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
    grid = OneProcessGrid(group, [fivefold(n) for n in range(3)])
    aggregation_over(grid, group).noisy_sum(asking([1, 2, 3]), LAW)
    for message in grid.sent:
        if message.content["asked"]["stage"] > Stage.ADVERTISE:
            context = grid.contexts[message.metadata.dst_node_id]
            assert grid._reply(message, context).has_error()


def test_no_secret_of_a_round_is_kept_after_it():
    group = Group(3)
    grid = OneProcessGrid(group, [fivefold(n) for n in range(3)])
    aggregation_over(grid, group).noisy_sum(asking([1, 2, 3]), LAW)
    for context in grid.contexts.values():
        memory = context.state["memory"]
        assert isinstance(memory, ConfigRecord)
        assert not any(memory[name] for name in ("mask_key", "envelope_key", "seed"))


def test_a_reply_without_an_answer_is_no_answer():
    group = Group(3, dropouts=1)
    grid = OneProcessGrid(group, [fivefold(n) for n in range(3)])
    whole = grid._reply

    def reply(message, context):
        if context.node_id != 102:
            return whole(message, context)
        records = [RecordDict(), RecordDict({"answer": ConfigRecord({"message": "text"})})]
        return Message(records[len(grid.sent) % 2], reply_to=message)

    grid._reply = reply
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
    aggregation = aggregation_over(OneProcessGrid(group, [gradient(X) for X in rows], law), group)
    for _ in range(12):
        theta = theta - 0.7 / 1200 * grid_step * aggregation.noisy_sum(theta.tobytes(), law)
    np.testing.assert_allclose(theta, truth, atol=0.01)


# -- processes on loopback ------------------------------------------------------------------------------------------

STUDY = """
import json, os
from pathlib import Path
from thresher.federated.group import Group
FOLDER = Path(os.environ["STUDY"])
GROUP = Group(3, dropouts=1)
EVERYBODY = [bytes.fromhex(text) for text in json.loads((FOLDER / "everybody.json").read_text())]
"""
CLIENT = """
import numpy as np
from secure_sum.study import EVERYBODY, FOLDER, GROUP
from thresher.federated.flower import Member, client_app
from thresher.skellam import Skellam

def member(context):
    number = context.node_config["number"]
    identity = bytes.fromhex((FOLDER / f"identity{number}").read_text())
    answer = lambda question: np.frombuffer(question, "<i8") * (number + 1)
    return Member(GROUP, EVERYBODY, number, identity, Skellam(4.0), answer)

app = client_app(member)
"""
SERVER = """
import json
import numpy as np
from secure_sum.study import EVERYBODY, FOLDER, GROUP
from thresher.federated.flower import server_app
from thresher.skellam import Skellam

def fit(aggregation, context):
    total = aggregation.noisy_sum(np.arange(1000, dtype="<i8").tobytes(), Skellam(4.0))
    (FOLDER / "part").write_text(json.dumps(total.tolist()))
    (FOLDER / "part").rename(FOLDER / "total.json")

app = server_app(fit, GROUP, EVERYBODY, 1000)
"""
PROJECT = """
[project]
name = "secure-sum"
version = "1.0.0"
license = "Apache-2.0"
dependencies = []
[tool.flwr.app]
publisher = "thresher"
[tool.flwr.app.components]
serverapp = "secure_sum.server_app:app"
clientapp = "secure_sum.client_app:app"
[tool.flwr.app.config]
"""
CONNECTION = """
[superlink]
default = "here"
[superlink.here]
address = "127.0.0.1:{port}"
insecure = true
"""
ADDRESS = "127.0.0.1"


def free_ports(count):
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((ADDRESS, 0))
        return [one.getsockname()[1] for one in sockets]


def write_study(folder, port):
    """The app, the parties' keys, and where the SuperLink is."""
    for name, text in [("study", STUDY), ("client_app", CLIENT), ("server_app", SERVER), ("__init__", "")]:
        (folder / "app" / "secure_sum").mkdir(parents=True, exist_ok=True)
        (folder / "app" / "secure_sum" / f"{name}.py").write_text(text)
    (folder / "app" / "pyproject.toml").write_text(PROJECT)
    (folder / "everybody.json").write_text(json.dumps([public.hex() for public in EVERYBODY[:3]]))
    for number, identity in enumerate(IDENTITIES[:3]):
        (folder / f"identity{number}").write_text(identity.hex())
    (folder / "home").mkdir()
    (folder / "home" / "config.toml").write_text(CONNECTION.format(port=port))


@contextmanager
def running(command, log, environment):
    """A process, and those it starts, until the block ends."""
    with log.open("w") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)


def waited_for(condition, seconds):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.2)
    return condition()


def listens(port):
    with socket.socket() as one:
        return one.connect_ex((ADDRESS, port)) == 0


def test_three_machines_and_a_server_as_processes(tmp_path):
    """Takes 67 to 73 seconds on two cores at a load of 4 to 7: each stage starts a process for each party, and
    Flower looks for messages every few seconds."""
    programs = Path(sys.executable).parent
    link_port, *node_ports = free_ports(4)
    write_study(tmp_path, link_port)
    environment = os.environ | {
        "STUDY": str(tmp_path),
        "FLWR_HOME": str(tmp_path / "home"),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",  # Flower starts its helpers by name
    }
    link = ["flower-superlink", "--insecure", "--host", ADDRESS, "--port", f"{link_port}"]
    link += ["--disable-runtime-dependency-installation"]
    with ExitStack() as stack:
        stack.enter_context(running(link, tmp_path / "link.log", environment))
        assert waited_for(lambda: listens(link_port), 60), (tmp_path / "link.log").read_text()
        for number, port in enumerate(node_ports):
            node = ["flower-supernode", "--insecure", "--superlink", f"{ADDRESS}:{link_port}"]
            node += ["--host", ADDRESS, "--port", f"{port}", "--node-config", f"number={number}"]
            stack.enter_context(running(node, tmp_path / f"node{number}.log", environment))
        start = [shutil.which("flwr", path=environment["PATH"]), "run", str(tmp_path / "app"), "here"]
        subprocess.run(start, env=environment, check=True, capture_output=True, timeout=60)
        logs = "\n".join(path.read_text() for path in tmp_path.glob("*.log"))
        assert waited_for((tmp_path / "total.json").exists, 180), logs
    errors = np.array(json.loads((tmp_path / "total.json").read_text())) - 6 * np.arange(1000)
    assert np.all(np.abs(errors) < FAR)
    assert 3.0 < np.var(errors) < 10.0  # 4 times 3/2, as all stayed; false alarm below 1e-6
