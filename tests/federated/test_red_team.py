"""Faults that were found by attacking this room, and stay mended."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from thresher.federated import FederatedSparseClassifier
from thresher.federated.aggregation import Aborted
from thresher.federated.group import Group
from thresher.federated.journal import Journal
from thresher.federated.session import Session
from thresher.privacy.certificate import combine
from thresher.privacy.laws.dithered_binomial import DitheredBinomial


def fitted(features: int, classes: int = 2, aggregation: str = "reference", parties: int = 3) -> Any:
    rng = np.random.default_rng(1)
    cuts = np.linspace(-0.5, 0.5, classes - 1) if classes > 2 else [0.0]
    data = [(X := rng.normal(size=(300, features)), np.digitize(X[:, 0], cuts)) for _ in range(parties)]
    return FederatedSparseClassifier(
        sparsity=2, epsilon=1.0, delta=1e-6, row_bound=4.0, classes=list(range(classes)), aggregation=aggregation
    ).fit(data)


def test_one_party_of_two_cannot_subtract_half_of_the_noise() -> None:
    """Each of two parties knows its own share, so one alone must make the law."""
    pytest.importorskip("cryptography")
    assert Group(2).honest == 1
    certificate = fitted(4, aggregation="skellam", parties=2).certificate_
    assert "even if 1 of the parties tell the server theirs" in " ".join(certificate.notes)


def test_whoever_takes_part_knows_a_share() -> None:
    """A group in which nobody colludes still has members, each of whom knows the noise it added."""
    group = Group(3)
    assert group.honest <= group.quorum - 1


def test_fits_with_different_columns_combine() -> None:
    assert combine(fitted(5), fitted(20)).verify()


def test_a_release_of_three_classes_pays_for_all_coordinates() -> None:
    certificate = fitted(4, classes=3).certificate_
    (entry,) = certificate.releases
    forged = {**entry, "release": {**entry["release"], "touched": 4}}
    assert entry["release"]["touched"] == 15
    assert not replace(certificate, releases=(forged,)).verify()


class Table:
    """A seat at which the other two parties say what they are told to."""

    def __init__(self, said: Sequence[Sequence[bytes]]) -> None:
        self._said = list(said)

    def exchange(self, message: bytes) -> list[bytes]:
        return [message, *self._said.pop(0)]


def status(name: str, answers: Sequence[str] = ()) -> bytes:
    facts = {"plan": "h", "nonce": "0", "answers": list(answers), "share": None, "opening": False}
    return json.dumps({"name": name, **facts}).encode()


def meet(folder: Path, said: Sequence[Sequence[bytes]], then: Callable[[Session], object]) -> None:
    with Journal.locked(folder) as journal:
        session = Session(Table(said), 0, ["a", "b", "c"], "h", journal, 4)  # type: ignore[arg-type]
        session.meet()
        then(session)


@pytest.mark.parametrize("answer", [b"seven b", bytes(8 * 5000)])
def test_an_answer_of_another_size_is_not_kept(tmp_path: Path, answer: bytes) -> None:
    """One liar among three; the journal of an honest party must stay usable, for a vector of 4 coordinates."""
    digest = sha256(answer).hexdigest()
    said = [[status("b", [digest]), status("c")], [answer, b""], [status("b", [digest]), status("c", [digest])]]
    law = DitheredBinomial()
    with pytest.raises(Aborted):
        meet(tmp_path, said, lambda session: session.noisy_sum(list, law))
    with Journal.locked(tmp_path) as journal:
        assert not journal.answers


def test_deep_nonsense_is_nonsense(tmp_path: Path) -> None:
    with pytest.raises(Aborted, match="nonsense"):
        meet(tmp_path, [[b"[" * 200_000, status("c")]], lambda session: None)


def test_shares_are_for_their_owner_only(tmp_path: Path) -> None:
    with Journal.locked(tmp_path / "run") as journal:
        journal.prepare(1, "attempt", b"share")
    assert stat.S_IMODE((tmp_path / "run" / "share.bin").stat().st_mode) == 0o600
