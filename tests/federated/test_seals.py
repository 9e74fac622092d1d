"""A journal that somebody changed is not believed; one that a crash left is, and never says less than was done."""

from __future__ import annotations

import json
import os
import shutil
import stat

import numpy as np
import pytest

from thresher.federated.journal import Journal
from thresher.federated.seals import Seals

CHARGE = {"plan": "p", "epsilon": 1.0}


class Killed(BaseException):
    pass


def run(folder, rounds=3):
    """A run of some rounds, to its end."""
    with Journal.locked(folder) as journal:
        journal.enter_charge(CHARGE)
        for number in range(rounds):
            journal.prepare(number + 1, "a", b"share")
            journal.announce_opening()
            journal.enter_answer(np.array([number, -number]))
        journal.leave()
    return folder / "journal.jsonl"


def read(folder):
    with Journal.locked(folder) as journal:
        return journal


def test_a_journal_as_it_was_written_is_read(tmp_path):
    run(tmp_path)
    journal = read(tmp_path)
    assert (journal.charge, len(journal.answers), journal.parted) == (CHARGE, 3, True)


def changed(old, new):
    return lambda lines: [line.replace(old, new) for line in lines]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(changed(b'"answer": [2, -2]', b'"answer": [9, -2]'), id="another answer"),
        pytest.param(changed(b'"epsilon": 1.0', b'"epsilon": 0.1'), id="another price"),
        pytest.param(changed(b", ", b","), id="other spaces"),
        pytest.param(changed(b'"seal"', b'"told"'), id="no seals"),
        pytest.param(lambda lines: lines[:-1], id="the last line is gone"),
        pytest.param(lambda lines: lines[:5], id="the last lines are gone"),
        pytest.param(lambda lines: [], id="all lines are gone"),
        pytest.param(lambda lines: lines[1:], id="the first line is gone"),
        pytest.param(lambda lines: [*lines[:4], *lines[7:]], id="a round is gone"),
        pytest.param(lambda lines: [*lines[:4], *lines[3:]], id="a line is there twice"),
        pytest.param(lambda lines: [*lines, lines[-1]], id="the last line is there twice"),
        pytest.param(lambda lines: [*lines[:1], *lines[4:7], *lines[1:4], *lines[7:]], id="rounds in another order"),
        pytest.param(lambda lines: [*lines[:-1], lines[-1][:-9]], id="the last line is cut off"),
        pytest.param(lambda lines: [*lines, b"[]"], id="a line that is no entry"),
    ],
)
def test_a_journal_that_was_changed_is_refused_and_left_as_it_is(tmp_path, change):
    path = run(tmp_path)
    lines = path.read_bytes().splitlines()
    assert change(lines) != lines
    path.write_bytes(b"".join(line + b"\n" for line in change(lines)))
    content = path.read_bytes()
    with pytest.raises(ValueError, match=r"is damaged.*stays spent"):
        read(tmp_path)
    assert path.read_bytes() == content


def test_the_journal_of_another_run_is_refused(tmp_path):
    shutil.copy(run(tmp_path / "other"), run(tmp_path / "own"))
    with pytest.raises(ValueError, match="line 1 is not as it was written"):
        read(tmp_path / "own")


@pytest.mark.parametrize("name", ["journal.jsonl", "journal.key", "journal.head"])
def test_a_file_that_is_missing_is_missed(tmp_path, name):
    run(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(ValueError, match="is damaged"):
        read(tmp_path)


def test_what_the_journal_should_hold_cannot_be_written_without_the_key(tmp_path):
    """The end of the chain for five lines: their number and the last seal can be seen, but not sealed."""
    path = run(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)[:5]
    path.write_bytes(b"".join(lines))
    seal = (tmp_path / "journal.head").read_text().split()[-1]
    (tmp_path / "journal.head").write_text(f"5 {json.loads(lines[-1])['seal']} {seal}")
    with pytest.raises(ValueError, match=r"journal\.head was changed"):
        read(tmp_path)


def test_the_key_is_for_its_owner_only_and_of_each_folder_its_own(tmp_path):
    keys = [run(tmp_path / name).with_suffix(".key") for name in ("one", "two")]
    assert [stat.S_IMODE(key.stat().st_mode) for key in keys] == [0o600, 0o600]
    assert keys[0].read_bytes() != keys[1].read_bytes()


# -- crashes --------------------------------------------------------------------------------------------------------


def begun(folder):
    with Journal.locked(folder) as journal:
        journal.enter_charge(CHARGE)
        journal.begin_round(1)
    return folder / "journal.jsonl"


def die_while_beginning(folder, monkeypatch):
    """A crash after the line of round 2, before it is on record that there is one more."""

    def dying(self):
        raise Killed

    with monkeypatch.context() as patch, Journal.locked(folder) as journal:
        patch.setattr(Seals, "record_head", dying)
        with pytest.raises(Killed):
            journal.begin_round(2)


def test_a_line_that_was_written_counts_though_the_party_died_right_after(tmp_path, monkeypatch):
    begun(tmp_path)
    die_while_beginning(tmp_path, monkeypatch)
    assert read(tmp_path).begun == 2
    assert read(tmp_path).begun == 2
    with pytest.raises(ValueError, match="round=2 was answered before"), Journal.locked(tmp_path) as journal:
        journal.begin_round(2)


def test_a_line_that_was_cut_off_wherever_it_was_is_dropped_and_the_run_goes_on(tmp_path, monkeypatch):
    """Nobody has acted upon it. Zeros are what a power cut may leave in place of the line's end."""
    path = begun(tmp_path / "whole")
    before = path.stat().st_size
    die_while_beginning(tmp_path / "whole", monkeypatch)
    content = path.read_bytes()
    cuts = [content[:end] for end in range(before, len(content))] + [content[: before + 9] + bytes(20)]
    for number, cut in enumerate(cuts):
        folder = shutil.copytree(tmp_path / "whole", tmp_path / f"{number}")
        (folder / "journal.jsonl").write_bytes(cut)
        with Journal.locked(folder) as journal:
            assert (journal.charge, journal.begun) == (CHARGE, 1)
            journal.begin_round(2)
        assert read(folder).begun == 2


def test_a_party_that_died_before_its_first_line_starts_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fdopen", lambda *_: (_ for _ in ()).throw(Killed()))
    with pytest.raises(Killed), Journal.locked(tmp_path) as journal:
        journal.enter_charge(CHARGE)
    monkeypatch.undo()
    begun(tmp_path)
    assert read(tmp_path).begun == 1
