"""Trainings that are stopped go on, and never ask more than was paid for: also if they are killed at any moment."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from networks import perceptron, some_examples, torch
from thresher import Budget, Certificate
from thresher.algorithms import DPSGD, DPSRM, DPLSAdam
from thresher.privacy.plan import Answer
from thresher.torch import ModuleVault, PrivateTrainer
from thresher.torch.checkpoint import Checkpoint, TrainingState, facts_of
from thresher.torch.gradients import flattened, trainable_parameters

cross_entropy = torch.nn.functional.cross_entropy
ROUNDS = 30
ALGORITHMS = {
    "dp-sgd": DPSGD(passes=6, batch=20),
    "dp-srm": DPSRM(passes=6, batch=20, difference_clip=0.1),
    "dp-srm first": DPSRM(passes=6, batch=20, difference_clip=0.1, first_batch=50),
    "dp-lsadam": DPLSAdam(passes=6, batch=20, output="random"),
}


def make_trainer(path, algorithm="dp-sgd", every=4, epsilon=2.0, module=None, seed=None):
    budget = Budget(epsilon, 1e-5)
    return PrivateTrainer(
        module or perceptron(), cross_entropy, ALGORITHMS[algorithm], budget,
        checkpoint=path, checkpoint_every=every, random_state=seed,
    )  # fmt: skip


def charged_in(path):
    with np.load(path, allow_pickle=False) as file:
        return json.loads(str(file["header"]))["charged"]


class Stopped(BaseException):
    pass


def stop_after(monkeypatch, answers, when="after"):
    """Make the vault fail at an answer: before it is given, or after. Returns the list of answers really given."""
    given, noised = [], ModuleVault._sum

    def sum_and_stop(self, parts, release):
        if when == "before" and len(given) == answers:
            raise Stopped
        value = noised(self, parts, release)
        given.append(release)
        if when == "after" and len(given) == answers:
            raise Stopped
        return value

    monkeypatch.setattr(ModuleVault, "_sum", sum_and_stop)
    return given


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("stop", [1, 4, 13, 29])
def test_a_clean_stop_loses_at_most_the_answer_under_way(tmp_path, monkeypatch, algorithm, when, stop):
    X, y = some_examples(100)
    path = tmp_path / "run.npz"
    undisturbed = make_trainer(None, algorithm).fit(X, y).certificate_
    with monkeypatch.context() as patch:
        first = stop_after(patch, stop, when)
        with pytest.raises(Stopped):
            make_trainer(path, algorithm).fit(X, y)
    assert charged_in(path) == stop + (when == "before")
    with monkeypatch.context() as patch:
        second = stop_after(patch, ROUNDS + 1)
        trainer = make_trainer(path, algorithm).fit(X, y)
    assert len(first) + len(second) == ROUNDS - (when == "before")
    assert charged_in(path) == ROUNDS
    assert replace(trainer.certificate_, model=None) == replace(undisturbed, model=None)  # other noise, another model
    assert trainer.certificate_.verify()


def test_a_finished_training_is_not_asked_again(tmp_path, monkeypatch):
    X, y = some_examples(100)
    first = make_trainer(tmp_path / "run.npz").fit(X, y)
    given = stop_after(monkeypatch, 0)
    second = make_trainer(tmp_path / "run.npz").fit(X, y)
    assert given == []
    np.testing.assert_array_equal(
        flattened(trainable_parameters(first.module)), flattened(trainable_parameters(second.module))
    )
    assert first.certificate_ == second.certificate_


def test_without_a_stop_a_checkpoint_changes_nothing(tmp_path):
    X, y = some_examples(100)
    thetas = [
        flattened(trainable_parameters(make_trainer(path, seed=3).fit(X, y).module))
        for path in (None, tmp_path / "run.npz")
    ]
    np.testing.assert_array_equal(*thetas)


def test_noise_after_a_stop_is_not_the_noise_before(tmp_path, monkeypatch):
    """With a random_state, the noise of round 5 after a stop is another one than in the run that was stopped."""
    X, y = some_examples(100)
    heard = []
    question = ModuleVault.sampled_gradient
    monkeypatch.setattr(ModuleVault, "sampled_gradient", lambda *given: heard.append(question(*given)) or heard[-1])
    for _ in range(2):
        with monkeypatch.context() as patch:
            stop_after(patch, 4, "before")
            with pytest.raises(Stopped):
                make_trainer(tmp_path / "run.npz", seed=3).fit(X, y)
    answers = np.array([answer for answer in heard if answer.any()])
    assert len(answers) == 8
    assert len(np.unique(answers[:, 0])) == 8


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"epsilon": 1.0}, "budget"),
        ({"algorithm": "dp-srm"}, "algorithm"),
        ({"module": perceptron(width=7)}, "parameters"),
        ({"n": 99}, "examples"),
    ],
)
def test_another_training_is_refused_and_costs_nothing(tmp_path, monkeypatch, change, name):
    X, y = some_examples(100)
    path = tmp_path / "run.npz"
    make_trainer(path).fit(X, y)
    given = stop_after(monkeypatch, 0)
    n = change.pop("n", 100)
    with pytest.raises(ValueError, match=f"another training: its {name}"):
        make_trainer(path, **change).fit(X[:n], y[:n])
    assert given == []


def test_a_broken_file_is_refused(tmp_path):
    path = tmp_path / "run.npz"
    path.write_bytes(b"not a checkpoint")
    with pytest.raises(ValueError, match="cannot be read"):
        make_trainer(path).fit(*some_examples(100))


def test_two_trainings_cannot_hold_one_file(tmp_path):
    path = tmp_path / "run.npz"
    plan = make_trainer(path).plan(100)
    with Checkpoint(path, facts_of(plan, {})).held(), pytest.raises(RuntimeError, match="in use by another"):
        make_trainer(path).fit(*some_examples(100))


def test_what_is_written_is_read(tmp_path):
    plan = make_trainer(None, "dp-srm first").plan(100)
    checkpoint = Checkpoint(tmp_path / "run.npz", facts_of(plan, {"input": [5]}))
    assert checkpoint.read(plan) is None
    answers = tuple(Answer(plan.releases[at], 0.1, 0.2, 0.3 + at) for at in (0, 1, 1, 1))
    standing = TrainingState({"t": 4, "theta": np.arange(3.0), "reach": 0.5}, answers, charged=8)
    checkpoint.write(standing, plan)
    found = checkpoint.read(plan)
    assert (found.answers, found.charged, found.lost) == (answers, 8, 4)
    assert (found.state["t"], found.state["reach"]) == (4, 0.5)
    np.testing.assert_array_equal(found.state["theta"], np.arange(3.0))
    assert os.listdir(tmp_path) == ["run.npz"]


TRAINING = """
import os, sys, time
sys.path[:0] = [{tests!r}, {here!r}]
import torch
torch.set_num_threads(1)
from networks import some_examples
from thresher.torch import ModuleVault
import test_checkpoint as setup

log = os.open({log!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
summed, left = ModuleVault._sum, int(sys.argv[1])

def told(self, parts, release):
    global left
    value = summed(self, parts, release)
    os.write(log, b"answer\\n")  # before anybody hears it
    os.write(1, b"answered\\n")
    left -= 1
    while left == 0:  # it goes no further, and is killed
        time.sleep(1)
    return value

ModuleVault._sum = told
trainer = setup.make_trainer({path!r}, {algorithm!r}).fit(*some_examples(100))
print(trainer.certificate_.to_json())
"""


@pytest.mark.parametrize("algorithm", ["dp-sgd", "dp-srm first"])
def test_killed_at_any_moment_it_goes_on_and_never_asks_more_than_was_paid_for(tmp_path, algorithm):
    """kill -9 at random moments of each start, soon after its fifth answer, then a start that is left in peace."""
    path, log, here = tmp_path / "run.npz", tmp_path / "answers", Path(__file__).parent
    code = TRAINING.format(tests=str(here.parent), here=str(here), log=str(log), path=str(path), algorithm=algorithm)
    moments = np.random.default_rng(7)
    for kill in (True, True, True, False):
        most = 7 if kill else ROUNDS + 1  # of four and four that are charged at a time
        command = [sys.executable, "-W", "ignore", "-c", code, str(most)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        if kill and all(child.stdout.readline() == "answered\n" for _ in range(5)):
            time.sleep(moments.uniform(0.0, 0.12))
            child.send_signal(signal.SIGKILL)
        printed = child.communicate()[0]
        assert (child.returncode == -signal.SIGKILL) == kill
        answers = log.read_text().count("\n")
        assert 0 < answers <= charged_in(path) <= ROUNDS
    assert answers < ROUNDS  # some were lost
    undisturbed = make_trainer(None, algorithm).fit(*some_examples(100)).certificate_
    survived = Certificate.from_json(printed.replace("answered\n", ""))
    assert json.loads(replace(survived, model=None).to_json()) == json.loads(replace(undisturbed, model=None).to_json())


def test_a_link_to_a_checkpoint_is_the_checkpoint(tmp_path):
    """Replacing the link instead of the file would leave the file behind, saying less than was asked."""
    X, y = some_examples(60)
    facts = {"optimizer": "dp-sgd", "budget": Budget(3.0, 1e-5)}
    (tmp_path / "latest.npz").symlink_to(tmp_path / "run.npz")
    PrivateTrainer(perceptron(), torch.nn.functional.cross_entropy, checkpoint=tmp_path / "latest.npz", **facts).fit(
        X, y
    )
    assert (tmp_path / "latest.npz").is_symlink()
    assert (tmp_path / "run.npz").exists()
