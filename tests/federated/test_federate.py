"""Real processes: the command line over TLS, kill -9 at random moments, and what one party gets to see."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from multiprocessing import get_context

import numpy as np
import pytest
from typer.testing import CliRunner

pytest.importorskip("mpyc")
pytest.importorskip("cryptography")

from federated.party_processes import NAMES, take_part, write_data, write_task
from thresher import load_model
from thresher.cli.app import app
from thresher.federated.endpoints import free_ports
from thresher.federated.journal import Journal
from thresher.federated.run import rows_of_party
from thresher.federated.task import JointTask
from thresher.federated.vault import DataSets, GatheredVault, parties_of
from thresher.vaults.randomness import NoiseSource
from waiting import MINUTES, eventually

ROWS = (300, 200, 250)
COMMAND = [sys.executable, "-c", "from thresher.cli.app import main; main()", "federate"]

forked = get_context("forkserver")  # loads thresher once, and starts a party in milliseconds
forked.set_forkserver_preload(["federated.party_processes"])


def start(task, data, folder, at, patience=MINUTES, transcript=None):
    process = forked.Process(target=take_part, args=(task, at, data[at], folder / NAMES[at], patience, transcript))
    process.start()
    return process


def end(processes):
    """Exit statuses, once all have ended; none may hang."""
    for process in processes:
        process.join(2 * MINUTES)
    late = [process for process in processes if process.is_alive()]
    for process in late:
        process.kill()
    assert not late
    return [process.exitcode for process in processes]


def answers_of(folder):
    """What each party has heard so far."""
    heard = []
    for name in NAMES:
        with Journal.locked(folder / name) as journal:
            heard.append([tuple(answer.tolist()) for answer in journal.answers])
    return heard


# -- the command line ---------------------------------------------------------------------------------------------


def run_commands(tmp_path, task, data, accepts, tls=True, timeout=MINUTES):
    """All parties by the command line; finished processes."""
    started = []
    for at, name in enumerate(NAMES):
        files = [f"--{what}={tmp_path / 'certificates' / file}" for what, file in (
            ("certificate", f"{name}.pem"), ("key", f"{name}.key"), ("authority", "authority.pem"),
        )]  # fmt: skip
        command = [
            *COMMAND, "run", str(task if not isinstance(task, list) else task[at]), str(data[at]), f"--me={name}",
            f"--folder={tmp_path / name}", f"--accept={accepts[at]}", f"--out={tmp_path / name}.json",
            f"--timeout={timeout}", *(files if tls else []),
        ]  # fmt: skip
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    return [(process.communicate(timeout=2 * MINUTES), process.returncode) for process in started]


def test_three_commands_over_tls_end_in_the_same_model(tmp_path):
    data = write_data(tmp_path, ROWS)
    task = write_task(tmp_path, free_ports(3), ROWS, rounds=3)
    shown = subprocess.run([*COMMAND, "plan", str(task)], capture_output=True, text=True, check=True).stdout
    assert "3 x gradient" in shown
    assert "at most 300 rows" in shown
    assert "row 1.0" in shown
    accepted = shown.split()[-1]
    assert accepted == JointTask.read(task).hash
    made = [*COMMAND, "certificates", str(task), f"--folder={tmp_path / 'certificates'}"]
    subprocess.run(made, capture_output=True, check=True)
    ended = run_commands(tmp_path, task, data, [accepted] * 3)
    assert [status for _, status in ended] == [0, 0, 0], ended
    models = [(tmp_path / f"{name}.json").read_text() for name in NAMES]
    assert models[0] == models[1] == models[2]
    model = load_model(tmp_path / "north.json")
    assert model.certificate_.verify()
    assert model.certificate_.trust["model"] == "federated, Shamir shares (MPyC)"
    assert set(model.support_) == {0, 1}
    assert all("proved" in out for (out, _), _ in ended)


def test_parties_with_different_plans_part_with_a_word(tmp_path):
    data = write_data(tmp_path, ROWS)
    (tmp_path / "other").mkdir()
    ports = free_ports(3)
    task = write_task(tmp_path, ports, ROWS, rounds=3)
    other = write_task(tmp_path / "other", ports, ROWS, rounds=3, epsilon=20.0)
    accepts = [JointTask.read(path).hash for path in (task, other, task)]
    ended = run_commands(tmp_path, [task, other, task], data, accepts, tls=False)
    assert [status for _, status in ended] == [3, 3, 3]
    for at in (0, 2):
        assert "party 'south' has another plan" in ended[at][0][1]
    assert not any((tmp_path / name / "journal.jsonl").exists() for name in NAMES)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"--accept": "0" * 64}, "is not the hash of this task and plan"),
        ({"--accept": None}, "--accept is missing"),
        ({"--me": "east"}, "--me='east' is none of the task's parties: north, south, west"),
        ({"--certificate": "absent.pem"}, "--certificate='absent.pem' does not exist"),
        ({"--key": __file__}, "--certificate is missing"),
        ({"--out": "absent/model.json"}, "--out='absent/model.json' cannot be written"),
    ],
)
def test_bad_arguments_end_in_one_line(tmp_path, changes, message):
    task = write_task(tmp_path, (9001, 9002, 9003), ROWS, rounds=3)
    (data, *_) = write_data(tmp_path, ROWS)
    given = {"--me": "north", "--folder": str(tmp_path / "run"), "--accept": JointTask.read(task).hash, **changes}
    options = [f"{name}={value}" for name, value in given.items() if value is not None]
    ended = CliRunner().invoke(app, ["federate", "run", str(task), str(data), *options])
    assert (ended.exit_code, len(ended.stderr.splitlines())) == (2, 1), ended.stderr
    assert message in ended.stderr
    assert not (tmp_path / "run").exists()


def test_other_machines_need_tls(tmp_path):
    task = write_task(tmp_path, (9001, 9002, 9003), ROWS, rounds=3)
    task.write_text(task.read_text().replace("127.0.0.1:9003", "10.9.8.7:9003"))
    (data, *_) = write_data(tmp_path, ROWS)
    options = ["--me=north", f"--folder={tmp_path / 'run'}", f"--accept={JointTask.read(task).hash}"]
    ended = CliRunner().invoke(app, ["federate", "run", str(task), str(data), *options])
    assert ended.exit_code == 2
    assert "--certificate" in ended.stderr


# -- kill -9 ------------------------------------------------------------------------------------------------------


def entries(folder, name):
    """How many entries the journal of a party has."""
    path = folder / name / "journal.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def kill_later(process, folder, name, more):
    """Kill a party as soon as its journal has so many entries more, or some moments later."""
    goal = entries(folder, name) + more
    assert eventually(lambda: entries(folder, name) >= goal or not process.is_alive(), pause=0.001)
    process.kill()


def test_kill_9_of_a_party_at_twenty_random_moments(tmp_path):
    """No hang, no round answered in two ways, the charge always on disk, and in the end a model."""
    rng = np.random.default_rng()
    data = write_data(tmp_path, ROWS)
    kills, finished, patience = 0, 0, 6.0
    while kills < 20 or finished == 0:
        folder = tmp_path / f"run{finished}"
        folder.mkdir(exist_ok=True)
        task = write_task(folder, free_ports(3), ROWS, rounds=25)
        if (folder / "task.frozen").exists():
            task.write_text((folder / "task.frozen").read_text())
        (folder / "task.frozen").write_text(task.read_text())
        before = answers_of(folder)
        parties = [start(task, data, folder, at, patience) for at in range(3)]
        if kills < 20:
            victim = rng.integers(3)
            kill_later(parties[victim], folder, NAMES[victim], more=rng.integers(12))
            kills += 1
        statuses = end(parties)
        assert all(status in (0, 3, -9) for status in statuses)
        if -9 not in statuses and 3 in statuses:
            patience *= 2  # a busy machine
        after = answers_of(folder)
        longest = max(after, key=len)
        for was, now in zip(before, after, strict=True):
            assert now[: len(was)] == was  # nothing is taken back
            assert now == longest[: len(now)]  # nothing is answered in two ways
            assert len(longest) - len(now) <= 1
        for name, heard in zip(NAMES, after, strict=True):
            lines = (folder / name / "journal.jsonl").read_text().splitlines() if heard else []
            assert not heard or json.loads(lines[0])["charge"]["epsilon"] == 2.0
        if statuses == [0, 0, 0]:
            finished += 1
            assert len(longest) == 25
            for name in NAMES:
                assert load_model(folder / name / "model.json").certificate_.verify()
    assert kills == 20


# -- what is seen -------------------------------------------------------------------------------------------------


class Overheard:
    """An aggregation that keeps the parts, as no real one does."""

    randomness = "none"

    def __init__(self):
        self.parts = []

    def noisy_sum(self, parts, law):
        self.parts.append(parts)
        return np.sum(parts, axis=0)

    def close(self):
        pass


def first_parts(task, data, sizes):
    """What the parties put into the first round, before noise: theta is 0 there, so it can be computed again."""
    plan, noise, heard = task.plan, NoiseSource(), Overheard()
    rows = [rows_of_party(task, task.model(), file, most) for file, most in zip(data, sizes, strict=True)]
    parties = parties_of(DataSets([X for X, _ in rows]), np.concatenate([y for _, y in rows]), plan, noise, sizes)
    with GatheredVault(parties, sizes, heard, plan, noise) as vault:
        vault.gradient(plan.problem.origin(), plan.releases[0], plan.settings["clip"])
    return heard.parts[0]


def holds(haystack, number):
    """Whether these bytes hold the number: as a 64-bit integer, modulo 2^61 - 1, or in decimal digits."""
    forms = [int(number).to_bytes(8, "little", signed=True), (int(number) % (2**61 - 1)).to_bytes(8, "little")]
    return any(form in haystack for form in forms) or bool(re.search(rb"(?<!\d)%d(?!\d)" % int(number), haystack))


def test_one_partys_transcript_journal_and_words_hold_no_sum_without_noise(tmp_path):
    sizes = (1200, 800, 1000)  # so many that the sums of both columns that matter are long numbers, whatever the grid
    data = write_data(tmp_path, sizes)
    task = write_task(tmp_path, free_ports(3), sizes, rounds=2)
    transcript = tmp_path / "transcript"
    parties = [start(task, data, tmp_path, at, transcript=transcript if at == 1 else None) for at in range(3)]
    assert end(parties) == [0, 0, 0]
    parts = first_parts(JointTask.read(task), data, sizes)
    total = np.sum(parts, axis=0)
    (answer, _), *_ = answers_of(tmp_path)
    seen = transcript.read_bytes()
    for name in NAMES:
        seen += b"".join(file.read_bytes() for file in (tmp_path / name).iterdir())
    assert len(transcript.read_bytes()) > 50_000
    assert holds(seen, answer[0])  # the scan sees what is there
    others = [parts[0], parts[2], total, parts[0] + parts[1], parts[1] + parts[2], parts[0] + parts[2]]
    telling = [secret[np.abs(secret) > 2**13] for secret in others]  # a smaller number may be the length of a message
    assert sum(map(len, telling)) >= 12
    for number in np.concatenate(telling):
        assert not holds(seen, number)
