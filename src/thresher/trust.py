"""Who sees the rows, and who must be trusted with what: the words of every certificate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

__all__ = ["TRUST", "Trust"]

Trust = Literal["central", "local", "labels", "reference", "mpyc", "spu", "skellam", "parties"]
"""A curator; nobody but each person; everybody, but the labels are each person's own; or parties that cannot share
rows, by how they add up: all in one process, inside MPyC or SPU, behind masks, or each with noise of its own."""

TRUST: Mapping[Trust, Mapping[str, str]] = {
    "central": {
        "model": "central",
        "protected": "each person's whole record, from whoever sees the model",
        "must be trusted": "the curator who runs the fit: it sees every record, and clips and adds the noise",
        "need not be trusted": "anybody who sees the model or this certificate",
    },
    "local": {
        "model": "local",
        "protected": "each person's whole record, from everybody else, the server included",
        "must be trusted": "each person's own device, to clip and randomise its record and to report once; and for the "
        "model to be right, though not for privacy, the server and most of the other people",
        "need not be trusted": "the server that collects reports, the network, anybody who sees reports or the model",
    },
    "labels": {
        "model": "labels",
        "protected": "each person's label, from everybody else, the server included; the features are PUBLIC and not "
        "protected at all",
        "must be trusted": "each person's own device, to clip and randomise its label and to report once; and for the "
        "model to be right, though not for privacy, the server and most of the other people",
        "need not be trusted": "the server that collects reports, the network, anybody who sees reports or the model",
    },
    "reference": {
        "model": "federated, simulated in one process",
        "protected": "each person's whole record, from whoever sees the model",
        "must be trusted": "whoever runs the simulation: one process holds the rows of all parties and draws the noise",
        "need not be trusted": "anybody who sees the model or this certificate",
    },
    "mpyc": {
        "model": "federated, Shamir shares (MPyC)",
        "protected": "each person's whole record, from the other parties, the network and whoever sees the model",
        "must be trusted": "each person's own party; and that fewer than half of the parties put together what they "
        "see: all are assumed to follow the protocol (semi-honest)",
        "need not be trusted": "any minority of the other parties with what it sees, the network (TLS), anybody who "
        "sees the model or this certificate",
    },
    "spu": {
        "model": "federated, two servers (SPU)",
        "protected": "each person's whole record, from the other parties, either server and whoever sees the model",
        "must be trusted": "each person's own party, and one of the two servers; both are assumed to follow the "
        "protocol (semi-honest)",
        "need not be trusted": "the other server with what it sees, the other parties, anybody who sees the model or "
        "this certificate",
    },
    "skellam": {
        "model": "federated, pairwise masks and distributed noise",
        "protected": "each person's whole record, from the server, the other parties and whoever sees the model",
        "must be trusted": "each person's own party; that no more parties than the plan tolerates collude with the "
        "server or leave; the server and the parties are assumed to follow the protocol (semi-honest)",
        "need not be trusted": "the server with what it sees, as many other parties as the plan tolerates, anybody who "
        "sees the model or this certificate",
    },
    "parties": {
        "model": "federated, each party adds noise of its own",
        "protected": "each person's whole record, from everybody but its own party",
        "must be trusted": "each person's own party: it sees the record, and clips and adds the noise",
        "need not be trusted": "the other parties, the network, anybody who sees the model or this certificate",
    },
}
