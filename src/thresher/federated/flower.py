"""Flower carries the messages of secure sums between machines.

    # server_app.py                                            # client_app.py
    app = server_app(fit, group, everybody, length)            app = client_app(member)

    def fit(aggregation, context):                             def member(context):
        total = aggregation.noisy_sum(question, law)               return FlowerMember(...)  # its own keys, rows

Each question is a message of type ``query.secure_sum``; a party's SuperNode starts a process for each, so what the
party must remember, its secrets among it, is in the Flower context, in the SuperNode's memory on the party's machine.
``thresher.federated.flower_fit`` makes whole fits of such sums.

Who must be trusted beyond ``thresher.federated.secagg``: Flower hands the *code* of the ClientApp to the SuperNodes
through the server. A server that may break the rules could send other code, so a party must review what it runs: start
the SuperNode with ``--trusted-entities``, or trust whoever can start runs. Use TLS and SuperNode authentication, and
start SuperLink with ``--disable-runtime-dependency-installation`` and everything with ``FLWR_TELEMETRY_ENABLED=0`` and
``FLWR_DISABLE_UPDATE_CHECK=1``, so that no machine fetches or tells anything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from logging import getLogger
from typing import NotRequired, TypedDict, TypeVar

try:
    from flwr.app import ConfigRecord, Context, Message, RecordDict
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid, ServerApp
except ImportError:
    raise ImportError(
        "thresher.federated.flower needs one more package (flwr); run: pip install 'thresher[flower]'"
    ) from None

from thresher.federated.aggregation import skellam_share
from thresher.federated.group import Group
from thresher.federated.messages import BadMessage, SumStage
from thresher.federated.secagg import MaskingParty, MaskingServer, PartyMemory
from thresher.privacy.arrays import Integers
from thresher.privacy.laws.skellam import Skellam
from thresher.vaults.randomness import NoiseSource

__all__ = ["FlowerAggregation", "FlowerMember", "client_app", "server_app"]

Given = TypeVar("Given")
Made = TypeVar("Made")

ACTION = "secure_sum"
PATIENCE = 600.0  # seconds that parties have for a stage
PAUSE = 0.2  # seconds between two looks at what has come
LOG = getLogger(__name__)


class Asked(TypedDict):
    """What the server says to a party in a stage; the last two in stage MASK only."""

    stage: int
    round: int
    message: bytes
    question: NotRequired[bytes]
    variance: NotRequired[float]


@dataclass(frozen=True)
class FlowerMember:
    """What a party's own machine brings into secure sums; nothing of it comes from the server.

    ``answer`` turns a question into the party's vector, without noise, or raises to refuse it. It must count: a server
    may ask as often as it likes, and every answer is a release (``thresher.federated.rounds`` counts on disk).
    ``law`` is the least noise the party insists on: a question under a smaller variance is refused.
    """

    group: Group
    everybody: Sequence[bytes]
    number: int
    identity: bytes
    law: Skellam
    answer: Callable[[bytes], Integers]


def client_app(member: Callable[[Context], FlowerMember]) -> ClientApp:
    """A party's app; ``member`` finds its keys and rows, for instance by paths in ``context.node_config``."""

    def secure_sum(message: Message, context: Context) -> Message:
        asked: Asked = message.content["asked"]
        begins = asked["stage"] == SumStage.ADVERTISE
        memory = PartyMemory(asked["round"]) if begins else PartyMemory(**context.state["memory"])
        own = _call_without_telling(member, context)
        party = MaskingParty(own.group, own.everybody, own.number, own.identity, memory)
        try:
            answer = party.answer(asked["stage"], asked["message"], lambda: _noisy_answer(own, asked))
        finally:  # a stage that failed is over, too
            context.state["memory"] = ConfigRecord(asdict(party.memory))
        return Message(RecordDict({"answer": ConfigRecord({"message": answer})}), reply_to=message)

    app = ClientApp()
    app.query(ACTION)(secure_sum)
    return app


def _noisy_answer(own: FlowerMember, asked: Asked) -> Integers:
    law = Skellam(asked["variance"])
    if law.variance < own.law.variance:
        raise ValueError(f"variance={law.variance} is less noise than this party insists on: {own.law.variance}")
    vector = _call_without_telling(own.answer, asked["question"])
    return vector + skellam_share(NoiseSource(), law, own.group.honest, vector.size)


def _call_without_telling(call: Callable[[Given], Made], argument: Given) -> Made:
    """Call the party's own code. Flower sends the text of an error to the server, so only the party's log has it."""
    try:
        return call(argument)
    except Exception:
        LOG.exception("this party has no answer")
        raise RuntimeError("this party has no answer: its own log says why") from None


def server_app(
    fit: Callable[[FlowerAggregation, Context], None],
    group: Group,
    everybody: Sequence[bytes],
    length: int,
    patience: float = PATIENCE,
) -> ServerApp:
    """The server's app: it calls ``fit``, which asks for noisy sums of vectors of this ``length``.

    ``patience``: the seconds that parties have for a stage; each round waits so long for one that is away.
    """

    def main(grid: Grid, context: Context) -> None:
        fit(FlowerAggregation(grid, group, everybody, length, patience), context)

    app = ServerApp()
    app.main()(main)
    return app


class FlowerAggregation:
    """Noisy sums of the vectors of the parties behind a Flower grid."""

    def __init__(
        self, grid: Grid, group: Group, everybody: Sequence[bytes], length: int, patience: float = PATIENCE
    ) -> None:
        self._grid, self._group, self._everybody, self._length = grid, group, everybody, length
        self._patience, self._rounds = patience, 0

    def noisy_sum(self, question: bytes, law: Skellam) -> Integers:
        """The sum of what the parties answer to the question, and noise of this law at least.

        Parties that do not answer a stage in time have left this round; if too many do, ``RoundAborted`` is raised.
        """
        self._rounds += 1
        server = MaskingServer(self._group, self._everybody, self._rounds, self._length)
        asked: Mapping[str, bytes | float] = {"question": question, "variance": law.variance}
        sent = dict.fromkeys(self._nodes(), b"")
        for stage in SumStage:
            senders = self._exchange(server, sent, asked if stage == SumStage.MASK else {})
            sent = {senders[party]: content for party, content in server.close().items()}
        return server.total()

    def _nodes(self) -> list[int]:
        """Where the parties are, when all have come or patience ends."""
        end = time.monotonic() + self._patience
        while len(nodes := list(self._grid.get_node_ids())) < self._group.parties and time.monotonic() < end:
            time.sleep(PAUSE)
        return nodes

    def _exchange(
        self, server: MaskingServer, sent: dict[int, bytes], asked: Mapping[str, bytes | float]
    ) -> dict[int, int]:
        """Ask the nodes, pass their answers on to the server; the node of each party that gave a good one."""
        about = {"stage": int(server.stage), "round": self._rounds, **asked}
        messages = [
            Message(
                RecordDict({"asked": ConfigRecord({**about, "message": content})}),
                dst_node_id=node,
                message_type=f"query.{ACTION}",
                group_id=str(self._rounds),
            )
            for node, content in sent.items()
        ]
        nodes = {}
        for reply in self._replies(messages):
            node = reply.metadata.src_node_id
            try:
                nodes[server.receive(_answer_in(reply))] = node
            except BadMessage as error:
                why = reply.error.reason if reply.has_error() else error.reason
                LOG.warning("node %d left round %d: %s", node, self._rounds, why)
        return nodes

    def _replies(self, messages: list[Message]) -> Iterator[Message]:
        """What has come back when patience ends; Flower's own waiting looks every three seconds only."""
        waiting = set(self._grid.push_messages(messages))
        end = time.monotonic() + self._patience
        while waiting:
            late = time.monotonic() >= end  # before the look: what came in time is taken, however long a look takes
            replies = list(self._grid.pull_messages(waiting))
            waiting -= {reply.metadata.reply_to_message_id for reply in replies}
            yield from replies
            if late:
                return
            if not replies:
                time.sleep(PAUSE)


def _answer_in(reply: Message) -> bytes:
    answer: Mapping[str, object] = {} if reply.has_error() else reply.content.get("answer", {})
    message = answer.get("message")
    if not isinstance(message, bytes):
        raise BadMessage("content")
    return message
