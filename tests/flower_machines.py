"""What the tests of Flower share: its grid with all parties in one process, and processes on loopback."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from contextlib import ExitStack, contextmanager

from flwr.app import Context, Error, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity

ADDRESS = "127.0.0.1"


class OneProcessGrid:
    """The part of Flower's grid that is used, with the parties' apps in this process."""

    def __init__(self, apps):
        TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 1, 1  # messages carry them
        self.apps = {100 + n: app for n, app in enumerate(apps)}
        self.contexts = {node: Context(1, node, {}, RecordDict(), {}) for node in self.apps}
        self.silent = {}  # node: the stage from which on it says nothing
        self.replies = {}
        self.sent = []

    def get_node_ids(self):
        return list(self.apps)

    def push_messages(self, messages):
        ids = []
        for message in messages:
            ids.append(f"{len(self.sent)}")
            self.sent.append(message)
            message.metadata.__dict__["_message_id"] = ids[-1]
            node, stage = message.metadata.dst_node_id, message.content["asked"]["stage"]
            if stage < self.silent.get(node, stage + 1):
                self.replies[ids[-1]] = self.reply(message, self.contexts[node])
        return ids

    def reply(self, message, context):
        """As a SuperNode does: an exception goes to the server as its type and text."""
        try:
            return self.apps[context.node_id](message, context)
        except Exception as error:
            return Message(Error(0, f"{type(error)}:{error}"), reply_to=message)

    def pull_messages(self, ids):
        return [self.replies.pop(name) for name in list(ids) if name in self.replies]


def free_ports(count):
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((ADDRESS, 0))
        return [one.getsockname()[1] for one in sockets]


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


def listens(port):
    with socket.socket() as one:
        return one.connect_ex((ADDRESS, port)) == 0
