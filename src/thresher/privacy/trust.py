"""Who sees the rows, and who must be trusted with what: the words of every certificate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

__all__ = ["TRUST", "Trust", "Unit", "trust_words", "trust_words_of_first_format"]

Unit = Literal["row", "person"]
"""What neighbours differ in: one row, or all rows of one person."""

Trust = Literal["central", "local", "labels", "reference", "mpyc", "spu", "skellam", "parties"]
"""A curator; nobody but each person; everybody, but the labels are each person's own; or parties that cannot share
rows, by how they add up: all in one process, inside MPyC or SPU, behind masks, or each with noise of its own."""

PROTECTED: Mapping[Unit, str] = {
    "row": "each row by itself, not all rows of a person together",
    "person": "each person with all their records",
}

TRUST: Mapping[Trust, Mapping[str, str]] = {
    "central": {
        "model": "central",
        "protected": "{unit}, from whoever sees the model",
        "must be trusted": "the curator who runs the fit: it sees every record, and clips and adds the noise",
        "need not be trusted": "anybody who sees the model or this certificate",
    },
    "local": {
        "model": "local",
        "protected": "the record of each person, who reports once, from everybody else, the server included",
        "must be trusted": "each person's own device, to clip and randomise its record and to report once; and for the "
        "model to be right, though not for privacy, the server and most of the other people",
        "need not be trusted": "the server that collects reports, the network, anybody who sees reports or the model",
    },
    "labels": {
        "model": "labels",
        "protected": "the label of each person, who reports once, from everybody else, the server included; the "
        "features are PUBLIC and not protected at all",
        "must be trusted": "each person's own device, to clip and randomise its label and to report once; and for the "
        "model to be right, though not for privacy, the server and most of the other people",
        "need not be trusted": "the server that collects reports, the network, anybody who sees reports or the model",
    },
    "reference": {
        "model": "federated, simulated in one process",
        "protected": "{unit}, from whoever sees the model",
        "must be trusted": "whoever runs the simulation: one process holds the rows of all parties and draws the noise",
        "need not be trusted": "anybody who sees the model or this certificate",
    },
    "mpyc": {
        "model": "federated, Shamir shares (MPyC)",
        "protected": "{unit}, from the other parties, the network and whoever sees the model",
        "must be trusted": "each person's own party; and that fewer than half of the parties put together what they "
        "see: all are assumed to follow the protocol (semi-honest)",
        "need not be trusted": "any minority of the other parties with what it sees, the network (TLS), anybody who "
        "sees the model or this certificate",
    },
    "spu": {
        "model": "federated, two servers (SPU)",
        "protected": "{unit}, from the other parties, either server and whoever sees the model",
        "must be trusted": "each person's own party, and one of the two servers; both are assumed to follow the "
        "protocol (semi-honest)",
        "need not be trusted": "the other server with what it sees, the other parties, anybody who sees the model or "
        "this certificate",
    },
    "skellam": {
        "model": "federated, pairwise masks and distributed noise",
        "protected": "{unit}, from the server, the other parties and whoever sees the model",
        "must be trusted": "each person's own party; that no more parties than the plan tolerates collude with the "
        "server or leave; the server and the parties are assumed to follow the protocol (semi-honest)",
        "need not be trusted": "the server with what it sees, as many other parties as the plan tolerates, anybody who "
        "sees the model or this certificate",
    },
    "parties": {
        "model": "federated, each party adds noise of its own",
        "protected": "{unit}, from everybody but its own party",
        "must be trusted": "each person's own party: it sees the record, and clips and adds the noise",
        "need not be trusted": "the other parties, the network, anybody who sees the model or this certificate",
    },
}
"""``{unit}`` stands for what is PROTECTED. People who randomise their own record report once, so there it says so."""

FORMERLY: Mapping[Trust, str] = {
    "local": "each person's whole record, from everybody else, the server included",
    "labels": "each person's label, from everybody else, the server included; the features are PUBLIC and not "
    "protected at all",
}


def trust_words(model: Trust, unit: Unit) -> dict[str, str]:
    """The words of a certificate that protects ``unit``."""
    return {name: words.format(unit=PROTECTED[unit]) for name, words in TRUST[model].items()}


def trust_words_of_first_format(model: Trust, unit: Unit) -> dict[str, str]:
    """The same in certificates of the first format, which called a row a person's whole record."""
    unit_words = "each person's whole record" if unit == "row" else PROTECTED[unit]
    words = {name: words.format(unit=unit_words) for name, words in TRUST[model].items()}
    return {**words, "protected": FORMERLY.get(model, words["protected"])}
