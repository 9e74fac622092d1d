"""The secret of a ledger and what is hashed with it."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from thresher.ledger import LedgerError
from thresher.ledger.chain import START, Key


def test_a_key_is_made_once_and_only_its_owner_may_read_it(tmp_path):
    path = tmp_path / "ledger.key"
    key = Key.made(path)
    assert len(key.secret) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Key.made(path) == Key.read(path) == key
    assert Key.made(tmp_path / "other.key") != key
    assert len(list(tmp_path.iterdir())) == 2  # no drafts are left


def test_of_keys_made_at_the_same_time_one_counts(tmp_path):
    with ThreadPoolExecutor(16) as pool:
        keys = set(pool.map(lambda _: Key.made(tmp_path / "ledger.key").secret, range(64)))
    assert len(keys) == 1


def test_a_key_is_not_printed():
    assert "secret" not in repr(Key(b"secret" * 6))


@pytest.mark.parametrize("content", [None, b"", b"x" * 31, b"x" * 33])
def test_a_key_that_is_missing_or_damaged(tmp_path, content):
    if content is not None:
        (tmp_path / "ledger.key").write_bytes(content)
    with pytest.raises(LedgerError, match="put it back"):
        Key.read(tmp_path / "ledger.key")


def test_a_hash_depends_on_the_key_the_body_and_what_came_before():
    one, other = Key(bytes(32)), Key(bytes(31) + b"x")
    hashes = [one.hash(START, "a"), one.hash(START, "b"), one.hash("x", "a"), other.hash(START, "a")]
    assert len(set(hashes)) == 4
    assert one.hash("ab", "c") != one.hash("a", "bc")
    assert len({one.of_row(1), other.of_row(1), one.of_row(2)}) == 3
    assert one.number != other.number
