"""A run between parties, in threads: agreement, crashes at every point, and that no round is ever opened twice."""

from __future__ import annotations

import json
import shutil
import threading

import numpy as np
import pytest

from thresher import load_model
from thresher.federated.aggregation import Aborted, Ended, dithered_binomial
from thresher.federated.journal import Journal
from thresher.federated.run import run_party
from thresher.federated.session import Session
from thresher.federated.task import JointTask
from thresher.vaults.randomness import NoiseSource
from waiting import MINUTES

NAMES = ("north", "south", "west")
TASK = """
task = "classification"
features = ["age", "dose", "sex"]
target = "ill"
sparsity = 2
epsilon = 2.0
delta = 1e-6
row_bound = 1.0
classes = [0, 1]
algorithm = "dp-ight"
rounds = 4
[[party]]
name = "north"
address = "127.0.0.1:9001"
rows = 60
[[party]]
name = "south"
address = "127.0.0.1:9002"
rows = 40
[[party]]
name = "west"
address = "127.0.0.1:9003"
rows = 50
"""


class Killed(BaseException):
    """What ends a party here in place of kill -9."""


class Table:
    """Where seats meet: what is said at each turn, who has left, and what was opened."""

    def __init__(self, seats=3, patience=MINUTES):
        self.seats, self.patience = seats, patience
        self.turns, self.left, self.opened = {}, set(), []
        self.changed = threading.Condition()

    def gather(self, at, turn, value):
        """Everybody's value at this turn; whoever left without one ends it for all."""
        with self.changed:
            said = self.turns.setdefault(turn, {})
            said[at] = value
            self.changed.notify_all()
            self.changed.wait_for(lambda: len(said) == self.seats or self.left - set(said), self.patience)
            if len(said) < self.seats:
                raise Aborted("a party is gone")
            return [said[seat] for seat in range(self.seats)]

    def leave(self, at):
        with self.changed:
            self.left.add(at)
            self.changed.notify_all()


class ThreadSeat:
    """Additive shares of sum and noise modulo 2^64; ``dies`` counts calls: before call 2, or after it at 2.5."""

    def __init__(self, at, table, dies=None, noise_seed=0):
        self.at, self.table, self.dies, self.calls = at, table, dies, 0
        self.noise = NoiseSource(1000 * noise_seed + at)

    def _step(self, work):
        self.calls += 1
        if self.dies == self.calls:
            raise Killed
        result = work()
        if self.dies == self.calls + 0.5:
            raise Killed
        return result

    def exchange(self, message):
        return self._step(lambda: self.table.gather(self.at, self.calls, message))

    def prepare(self, mine, law):
        def work():
            mask = self.noise.uniform_integers(2**62, mine.size)
            joint = dithered_binomial(self.noise, law, mine.size) if self.at == 0 else 0
            masks = self.table.gather(self.at, self.calls, mask)  # they cancel in the sum of all shares
            return (mine + joint + mask - masks[(self.at + 1) % len(masks)]).tobytes()

        return self._step(work)

    def open(self, share):
        def work():
            shares = self.table.gather(self.at, self.calls, share)
            total = sum(np.frombuffer(part, dtype=np.int64) for part in shares)
            self.table.opened.append(total.tolist())
            return total

        return self._step(work)

    def close(self):
        pass


@pytest.fixture
def task(tmp_path):
    path = tmp_path / "task.toml"
    path.write_text(TASK)
    return JointTask.read(path)


@pytest.fixture
def data(tmp_path, task):
    rng = np.random.default_rng(0)
    files = []
    for member in task.members:
        X = rng.normal(size=(member.rows, 3)) / 3
        ill = (X @ [3.0, -2.0, 0.0] > 0).astype(int)
        rows = [",".join([*map(repr, map(float, x)), str(y)]) for x, y in zip(X, ill, strict=True)]
        files.append(tmp_path / f"{member.name}.csv")
        files[-1].write_text("age,dose,sex,ill\n" + "\n".join(rows) + "\n")
    return files


def attend(task, data, folder, table, dies=None, seed=0, tasks=None):
    """All parties run; what each ended with: a model or an exception."""
    ends = [None] * len(NAMES)

    def party(at):
        seat = ThreadSeat(at, table, (dies or {}).get(at), seed)
        try:
            own = (tasks or {}).get(at, task)
            ends[at] = run_party(own, NAMES[at], data[at], folder / NAMES[at], lambda: seat)
        except (Killed, Aborted, ValueError) as end:
            ends[at] = end
        finally:
            table.leave(at)

    threads = [threading.Thread(target=party, args=(at,)) for at in range(len(NAMES))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(MINUTES)
        assert not thread.is_alive()
    return ends


def journal_of(folder, name):
    with Journal.locked(folder / name) as journal:
        return journal


def test_every_party_gets_the_same_model_and_certificate(task, data, tmp_path):
    models = attend(task, data, tmp_path, Table())
    for model in models:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)
        assert model.certificate_.verify()
        assert (model.certificate_.epsilon, model.certificate_.grade) == (2.0, "proved")
        assert model.certificate_.trust["model"] == "federated, Shamir shares (MPyC)"
        assert model.certificate_.n_samples == 150
    models[0].save(tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(again.coef_, models[1].coef_)


def test_the_model_is_as_good_as_that_of_one_curator(task, data, tmp_path):
    (model, *_) = attend(task, data, tmp_path, Table())
    assert set(model.support_) == {0, 1}
    assert model.coef_[0, 0] > 0 > model.coef_[0, 1]


ROUNDS = 4
LAST_CALL = 1 + 4 * ROUNDS + 1  # meet; point, prepare, written, open; part


def test_the_number_of_calls_is_as_counted(task, data, tmp_path):
    assert [release.times for release in task.plan.releases] == [ROUNDS]
    seats = []
    table = Table()

    class Counted(ThreadSeat):
        def __init__(self, *args):
            super().__init__(*args)
            seats.append(self)

    threads = [
        threading.Thread(
            target=run_party,
            args=(task, NAMES[at], data[at], tmp_path / NAMES[at], lambda at=at: Counted(at, table)),
        )
        for at in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(MINUTES)
    assert [seat.calls for seat in seats] == [LAST_CALL] * 3


@pytest.mark.parametrize("who", [0, 1, 2])
@pytest.mark.parametrize(
    "when", [0, 0.5, *(k + half for k in range(1, 10) for half in (0, 0.5)), LAST_CALL - 2, LAST_CALL - 1.5]
)
def test_a_crash_anywhere_opens_no_round_twice(task, data, tmp_path, who, when):
    """Killed before or after any call of the first two rounds, and at the last opening; then everybody starts again.

    Whoever dies with the last answer unwritten is told it by the others, who had it and were done.
    """
    table = Table()
    ends = attend(task, data, tmp_path, table, dies={who: 1 + when})
    assert isinstance(ends[who], Killed)
    for at, end in enumerate(ends):
        if at != who:
            assert isinstance(end, Aborted) == (when != LAST_CALL - 1.5)
    again = Table()
    models = attend(task, data, tmp_path, again, seed=1)
    opened = {tuple(vector) for vector in table.opened + again.opened}
    assert len(opened) == ROUNDS
    assert not [model for model in models if isinstance(model, BaseException)]
    answers = [journal_of(tmp_path, name).answers for name in NAMES]
    assert {tuple(answer.tolist()) for answer in answers[0]} == opened
    for model in models:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)
        assert model.certificate_.verify()


def test_crash_after_crash_is_survived(task, data, tmp_path):
    """Twenty runs in a row end at a random moment, each of another party."""
    rng = np.random.default_rng(7)
    opened = set()
    for seed in range(20):
        table = Table()
        attend(task, data, tmp_path, table, dies={int(rng.integers(3)): 1 + rng.integers(12) / 2}, seed=seed)
        opened |= {tuple(vector) for vector in table.opened}
    table = Table()
    models = attend(task, data, tmp_path, table, seed=99)
    opened |= {tuple(vector) for vector in table.opened}
    assert len(opened) == ROUNDS
    assert all(model.certificate_.verify() for model in models)


def test_the_charge_is_on_disk_before_a_row_is_clipped(task, data, tmp_path, monkeypatch):
    from thresher.federated import run

    charged = []

    class Watched(run.Party):
        def __init__(self, *args):
            charged.append([(tmp_path / name / "journal.jsonl").exists() for name in NAMES])
            super().__init__(*args)

    monkeypatch.setattr(run, "Party", Watched)
    attend(task, data, tmp_path, Table())
    assert len(charged) == 3
    for name in NAMES:
        first = json.loads((tmp_path / name / "journal.jsonl").read_text().splitlines()[0])
        assert first["what"] == "charge"
        assert (first["charge"]["epsilon"], first["charge"]["plan"]) == (2.0, task.hash)
    assert all(any(seen) for seen in charged)


def test_no_share_and_no_part_stays_on_disk(task, data, tmp_path):
    attend(task, data, tmp_path, Table())
    for name in NAMES:
        assert {path.name for path in (tmp_path / name).iterdir()} == {
            "journal.jsonl", "journal.key", "journal.head", "journal.lock",
        }  # fmt: skip


def test_a_party_with_another_plan_is_named_at_every_party(task, data, tmp_path):
    other = tmp_path / "other.toml"
    other.write_text(TASK.replace("epsilon = 2.0", "epsilon = 20.0"))
    ends = attend(task, data, tmp_path, Table(), tasks={1: JointTask.read(other)})
    for at in (0, 2):
        assert "party 'south' has another plan" in str(ends[at])
    assert "has another plan" in str(ends[1])
    assert not any((tmp_path / name / "journal.jsonl").exists() for name in NAMES)


def test_nonsense_from_a_party_ends_the_run_and_names_it(task, data, tmp_path):
    class Babbling(Table):
        def gather(self, at, turn, value):
            return super().gather(at, turn, b"\xff\x00nonsense" if at == 1 else value)

    ends = attend(task, data, tmp_path, Babbling())
    assert all("party 'south' sent nonsense" in str(end) for end in ends)


def test_a_lost_share_of_an_opened_round_ends_the_run(task, data, tmp_path):
    """Asking again would be a second release that nobody paid for."""
    attend(task, data, tmp_path, Table(), dies={0: 5, 1: 5, 2: 5})  # before the first opening is heard
    (tmp_path / "west" / "share.bin").unlink()
    ends = attend(task, data, tmp_path, Table(), seed=1)
    assert all("the share of west is gone though its round was opened" in str(end) for end in ends)


def test_a_lost_journal_is_noticed(task, data, tmp_path):
    attend(task, data, tmp_path, Table(), dies={0: 14})
    shutil.rmtree(tmp_path / "south")
    ends = attend(task, data, tmp_path, Table(), seed=1)
    assert all("party 'south' is rounds behind" in str(end) for end in ends)


def test_an_answer_that_its_owner_changed_is_noticed(task, data, tmp_path):
    """The owner has the key, and writes a journal anew that nobody else can tell from a true one."""
    attend(task, data, tmp_path, Table(), dies={0: 14})
    lines = (tmp_path / "south" / "journal.jsonl").read_text().splitlines()
    entries = [{name: value for name, value in json.loads(line).items() if name != "seal"} for line in lines]
    next(entry for entry in entries if entry["what"] == "answer")["answer"][0] += 1
    shutil.rmtree(tmp_path / "south")
    with Journal.locked(tmp_path / "south") as journal:
        for entry in entries:
            journal._write(entry)
    ends = attend(task, data, tmp_path, Table(), seed=1)
    assert all("heard other answers than the rest" in str(end) for end in ends)


def test_a_finished_party_needs_nobody(task, data, tmp_path):
    models = attend(task, data, tmp_path, Table())

    def no_watch():
        raise AssertionError("it must not sit down")

    again = run_party(task, "south", data[1], tmp_path / "south", no_watch)
    np.testing.assert_array_equal(again.coef_, models[1].coef_)


def test_a_finished_run_whose_journal_was_changed_is_not_believed(task, data, tmp_path):
    attend(task, data, tmp_path, Table())
    path = tmp_path / "south" / "journal.jsonl"
    first = next(line for line in path.read_text().splitlines() if '"answer"' in line)
    number = json.loads(first)["answer"][0]
    path.write_text(path.read_text().replace(f'"answer": [{number},', f'"answer": [{number + 10**6},'))
    with pytest.raises(ValueError, match="is damaged"):
        run_party(task, "south", data[1], tmp_path / "south", lambda: None)


def test_parties_that_heard_different_answers_do_not_part_in_peace(tmp_path):
    """What each has heard is compared once more at the end."""

    class Liars:
        def exchange(self, message):
            return [message, b"done " + b"0" * 64, message]

    with Journal.locked(tmp_path) as journal:
        journal.enter_answer(np.arange(4))
        with pytest.raises(Ended, match="party 'south' heard other answers"):
            Session(Liars(), 0, NAMES, "plan", journal, 4).part()
        assert not journal.parted


def test_a_complete_party_waits_for_nobody_but_offers_its_help(task, data, tmp_path):
    """One dies before it says it is done: the others have the model, and on a new start they sit down once more."""
    ends = attend(task, data, tmp_path, Table(), dies={2: LAST_CALL})
    assert isinstance(ends[2], Killed)
    assert all(hasattr(model, "certificate_") for model in ends[:2])
    alone = Table()
    alone.left = {0, 2}
    again = run_party(task, "south", data[1], tmp_path / "south", lambda: ThreadSeat(1, alone))
    np.testing.assert_array_equal(again.coef_, ends[1].coef_)
    assert alone.turns


def test_a_second_process_of_the_same_party_is_refused(task, data, tmp_path):
    with Journal.locked(tmp_path / "north"), pytest.raises(ValueError, match="in use by another process"):
        run_party(task, "north", data[0], tmp_path / "north", lambda: None)


def test_a_folder_of_another_plan_is_refused(task, data, tmp_path):
    attend(task, data, tmp_path, Table())
    other = tmp_path / "other.toml"
    other.write_text(TASK.replace("epsilon = 2.0", "epsilon = 1.0"))
    with pytest.raises(ValueError, match="is of another plan"):
        run_party(JointTask.read(other), "north", data[0], tmp_path / "north", lambda: None)


def test_an_entry_cut_off_by_a_crash_is_dropped(tmp_path):
    with Journal.locked(tmp_path) as journal:
        journal.enter_charge({"plan": "p"})
        journal.prepare(1, "a", b"share")
    path = tmp_path / "journal.jsonl"
    path.write_bytes(path.read_bytes() + b'{"what": "open')
    with Journal.locked(tmp_path) as journal:
        assert (journal.charge, journal.prepared.round, journal.prepared.opening) == ({"plan": "p"}, 1, False)
        assert journal.kept_share() == b"share"
        journal.announce_opening()
    with Journal.locked(tmp_path) as journal:
        assert journal.prepared.opening


def test_a_damaged_journal_is_refused(tmp_path):
    (tmp_path / "journal.jsonl").write_text('{"what": "answer", "round": 7, "answer": [1]}\n')
    with pytest.raises(ValueError, match="is damaged"), Journal.locked(tmp_path):
        pass


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("ill", "sick"), "'ill'"),
        (lambda text: text.replace("age", "weight"), "age"),
        (lambda text: text.replace(",1\n", ",2\n"), r"not in classes"),
        (lambda text: text + text.split("\n", 1)[1], "more rows than the 40 this party declared"),
    ],
)
def test_bad_data_is_refused_before_anything_is_said(task, data, tmp_path, change, message):
    data[1].write_text(change(data[1].read_text()))
    with pytest.raises(ValueError, match=message):
        run_party(task, "south", data[1], tmp_path / "south", lambda: pytest.fail("it sat down"))
    assert not (tmp_path / "south").exists()
