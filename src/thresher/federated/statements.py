"""What the parties of a secure sum sign: their fresh keys, and the list of those whose vectors are summed."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from thresher.federated import identities, masks, secret_shares
from thresher.federated.group import Group
from thresher.federated.messages import BadMessage, Stage

__all__ = [
    "ADVERTISED_SIZE",
    "ENVELOPE_SIZE",
    "KEYS_SIZE",
    "QUESTION_SIZES",
    "check_identities",
    "check_keys",
    "keys_statement",
    "survivors_statement",
]

KEYS_SIZE = 2 * masks.KEY_SIZE  # the public mask key, then the public envelope key
ADVERTISED_SIZE = KEYS_SIZE + identities.SIGNATURE_SIZE
ENVELOPE_SIZE = 2 * secret_shares.SHARE_SIZE + masks.TAG_SIZE  # a share of the mask key, then one of the seed
QUESTION_SIZES = {  # bytes that the server passes on about each party
    Stage.SHARE: ADVERTISED_SIZE,
    Stage.MASK: ENVELOPE_SIZE,
    Stage.CONFIRM: 0,
    Stage.UNMASK: identities.SIGNATURE_SIZE,
}


def check_identities(group: Group, everybody: Sequence[bytes]) -> None:
    if len(everybody) != group.parties or len(set(everybody)) != group.parties:
        raise ValueError(f"everybody has {len(set(everybody))} identities for parties={group.parties}: give one each")


def check_keys(group: Group, everybody: Sequence[bytes], round_number: int, party: int, content: bytes) -> None:
    """Refuse keys that ``party`` did not sign for this round of this group."""
    if len(content) != ADVERTISED_SIZE:
        raise BadMessage("content")
    keys, signature = content[:KEYS_SIZE], content[KEYS_SIZE:]
    identities.check(everybody[party], signature, keys_statement(group, round_number, party, keys))


def keys_statement(group: Group, round_number: int, party: int, keys: bytes) -> bytes:
    place = round_number.to_bytes(8) + party.to_bytes(2)
    return b"thresher keys" + group.to_bytes() + place + keys


def survivors_statement(advertised: bytes, survivors: bytes) -> bytes:
    """Names every fresh key of the round, so that no signature of another round or group fits."""
    return b"thresher survivors" + sha256(advertised).digest() + survivors
