"""The front door: training learns, and its certificate holds."""

import dataclasses
import json
import math
import traceback

import numpy as np
import pytest

from networks import CLASSES, perceptron, some_examples, torch
from thresher import Budget, BudgetExceeded, Ledger, PrivacyWarning
from thresher.algorithms import DPSGD
from thresher.torch import ModuleVault, PrivateTrainer
from thresher.torch.checkpoint import Checkpoint
from thresher.torch.defaults import TRAINERS, trainable_algorithm, with_neural_defaults
from thresher.torch.gradients import flattened, trainable_parameters

nn, cross_entropy = torch.nn, torch.nn.functional.cross_entropy
BUDGET = Budget(3.0, 1e-5)


def blobs(n=4000, side=8, seed=0):
    """Pictures like digits: each class has a pattern of its own, under noise."""
    patterns = np.random.default_rng(99).normal(size=(CLASSES, 1, side, side))
    rng = np.random.default_rng(seed)
    y = rng.integers(0, CLASSES, n)
    return (patterns[y] + 1.5 * rng.normal(size=(n, 1, side, side))).astype(np.float32), y


def small_network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 8, 3, 2), nn.Tanh(), nn.Flatten(), nn.Linear(72, CLASSES))


def accuracy(module, X, y):
    return float((module(torch.from_numpy(X)).argmax(dim=1).numpy() == y).mean())


@pytest.mark.parametrize("optimizer", TRAINERS)
def test_every_algorithm_trains_a_network(optimizer):
    """Guessing is right in a third of the cases; of four runs of each algorithm none was below .98."""
    private = optimizer.startswith("dp-")
    budget = BUDGET if private else Budget(math.inf, 1e-5)
    trainer = PrivateTrainer(small_network(), cross_entropy, optimizer, budget)
    if private:
        trainer.fit(*blobs())
    else:
        with pytest.warns(PrivacyWarning, match="privacy is OFF"):
            trainer.fit(*blobs())
    assert accuracy(trainer.module, *blobs(seed=1)) > 0.85
    certificate = trainer.certificate_
    assert certificate.verify()
    assert certificate.epsilon == (3.0 if private else None)
    assert certificate.grade == ("conditional" if private else "none")
    assert (certificate.algorithm, trainer.algorithm_) == (optimizer, optimizer)
    assert certificate.n_features == trainer.plan_.problem.d == 8 * 9 + 8 + 72 * CLASSES + CLASSES
    assert trainer.plan_ == trainer.plan(4000)


def test_a_plan_needs_no_data():
    plan = PrivateTrainer(perceptron(), cross_entropy, "dp-srm", BUDGET).plan(50_000)
    assert plan.problem.n == 50_000
    assert 2.9 < plan.epsilon <= 3.0


@pytest.mark.parametrize("sampling", ["poisson", "fixed"])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_certificates_hold_for_every_way_to_draw_batches(sampling, adjacency):
    X, y = some_examples(400)
    algorithm = DPSGD(passes=2, batch=40, clip=1.0, sampling=sampling)
    trainer = PrivateTrainer(perceptron(), cross_entropy, algorithm, Budget(2.0, 1e-5, adjacency))
    if (sampling, adjacency) == ("fixed", "add-remove"):
        with pytest.raises(ValueError, match="replace-one"):
            trainer.fit(X, y)
        return
    certificate = trainer.fit(X, y).certificate_
    assert certificate.verify()
    (entry,) = certificate.releases
    assert [answer["count"] for answer in entry["answers"]] == [20]
    assert entry["answers"][0]["sensitivity"] == pytest.approx({"replace-one": 2, "add-remove": 1}[adjacency] / 40)
    assert certificate.bounds == {"gradient": "clipped per example, all parameters together"}
    assert ("public" in " ".join(certificate.assumptions)) == (adjacency == "add-remove")


def test_arrays_tensors_and_datasets_are_the_same_examples():
    X, y = some_examples(60)
    tensors = torch.from_numpy(X), torch.from_numpy(y)
    found = []
    doubles = X.astype(np.float64)
    for given in ((X, y), tensors, (torch.utils.data.TensorDataset(*tensors),), (doubles, y), (X.tolist(), list(y))):
        trainer = PrivateTrainer(perceptron(), cross_entropy, "dp-sgd", BUDGET, random_state=5)
        found.append(flattened(trainable_parameters(trainer.fit(*given).module)))
        assert "random_state" in " ".join(trainer.certificate_.assumptions)
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


def test_noise_is_fresh_without_a_random_state_and_modules_are_left_as_they_are():
    X, y = some_examples(60)
    found = []
    for _ in range(2):
        module = perceptron()
        PrivateTrainer(module, cross_entropy, "dp-sgd", BUDGET).fit(X, y)
        assert not module._forward_hooks
        assert not any(layer._forward_hooks for layer in module.modules())
        found.append(flattened(trainable_parameters(module)))
    assert not np.any(found[0] == found[1])


def test_a_loss_is_taken_example_by_example():
    """Means and sums over a batch are the same then, and so is a loss that mixes examples where it is given several."""
    X, y = some_examples(60)
    plain = nn.CrossEntropyLoss(reduction="sum")
    mixing = lambda outputs, targets: cross_entropy(outputs - outputs.mean(dim=0) + outputs[:1], targets)  # noqa: E731
    thetas = [
        flattened(
            trainable_parameters(PrivateTrainer(perceptron(), loss, "dp-sgd", BUDGET, random_state=1).fit(X, y).module)
        )
        for loss in (cross_entropy, plain, mixing)
    ]
    np.testing.assert_allclose(thetas[1], thetas[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(thetas[2], thetas[0], rtol=1e-4, atol=1e-5)


def test_a_label_that_a_loss_refuses_is_not_quoted():
    """PyTorch says "index 91827 is out of bounds"."""
    X, y = some_examples(60)
    stray = np.full_like(y, 91_000 + 827)  # tracebacks quote source lines
    with pytest.raises(RuntimeError, match=r"fail on an example \(\w+\); .*labels below the number") as refused:
        PrivateTrainer(perceptron(), cross_entropy, "dp-sgd", BUDGET).fit(X, stray)
    assert "91827" not in "".join(traceback.format_exception(refused.value))


def test_warnings_are_given():
    X, y = some_examples(60)
    with pytest.warns(PrivacyWarning, match="not below 1/n"):
        PrivateTrainer(perceptron(), cross_entropy, "dp-sgd", Budget(1.0, 0.1)).fit(X, y)


@pytest.mark.parametrize(
    ("settings", "match", "error"),
    [
        ({"optimizer": "adam"}, "optimizer='adam' must be one of", ValueError),
        ({"optimizer": torch.optim.SGD}, "must be a name", TypeError),
        ({"budget": 3.0}, "budget=3.0 must be a thresher.Budget", TypeError),
        ({"virtual_batch": 0}, "virtual_batch=0", ValueError),
        ({"checkpoint_every": 1.5}, "checkpoint_every=1.5", ValueError),
    ],
)
def test_what_makes_no_sense_is_refused(settings, match, error):
    given = {"module": perceptron(), "loss": cross_entropy, "optimizer": "dp-sgd", "budget": BUDGET}
    with pytest.raises(error, match=match):
        PrivateTrainer(**{**given, **settings})


@pytest.mark.parametrize("name", TRAINERS)
def test_only_what_is_open_gets_a_default(name):
    for algorithm in (
        trainable_algorithm(name),
        dataclasses.replace(trainable_algorithm(name), step=0.3, clip=7.0, passes=2.0),
    ):
        filled = with_neural_defaults(algorithm, 6000, BUDGET)
        for field in dataclasses.fields(algorithm):
            value = getattr(algorithm, field.name)
            assert value is None or getattr(filled, field.name) == value
        assert None not in (filled.step, filled.clip, filled.passes)


def test_less_budget_means_shorter_steps():
    steps = [with_neural_defaults(DPSGD(), 6000, Budget(epsilon, 1e-5)).step for epsilon in (0.5, 1, 8, math.inf)]
    assert steps[0] < steps[1] < steps[2]
    assert steps[3] < math.inf


def test_cifar_is_trained_on(data_dir):
    """The shape of CIFAR-10 and a real subset of it; a few rounds learn more than nothing."""
    path = data_dir / "cifar10_subset.npz"
    if not path.exists():
        pytest.skip(f"no CIFAR-10: {path} does not exist")
    with np.load(path) as file:
        X, y = file["X_train"][:2000], file["y_train"][:2000].astype(np.int64)
    X = (X.transpose(0, 3, 1, 2) / np.float32(127.5) - 1).astype(np.float32)
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(3, 8, 5, 4), nn.Tanh(), nn.Flatten(), nn.Linear(8 * 49, 10))
    algorithm = DPSGD(passes=3, batch=200)
    trainer = PrivateTrainer(module, cross_entropy, algorithm, Budget(8.0, 1e-5), virtual_batch=64).fit(X, y)
    assert trainer.certificate_.verify()
    assert accuracy(module, X, y) > 0.15  # a tenth by guessing


# -- the ledger -------------------------------------------------------------------------------------------------


def paying(tmp_path, module=None, checkpoint=None, dataset="people"):
    return PrivateTrainer(
        module or perceptron(), cross_entropy, DPSGD(passes=6, batch=20), Budget(2.0, 1e-5),
        ledger=tmp_path / "budget.db", dataset=dataset, checkpoint=checkpoint, checkpoint_every=2,
    )  # fmt: skip


def test_a_training_is_paid_by_a_ledger(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.grant("people", 2.5, 1e-5)
    trainer = paying(tmp_path).fit(*some_examples())
    assert ledger.verify(certificate=trainer.certificate_)
    with pytest.raises(BudgetExceeded, match="this fit costs"):
        paying(tmp_path).fit(*some_examples())
    assert [entry.status for entry in ledger.history("people")] == ["granted", "committed"]


def test_a_training_that_goes_on_pays_once(tmp_path, monkeypatch):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.grant("people", 2.5, 1e-5)
    noised, asked = ModuleVault._sum, []

    def stop_at_the_third(self, *arguments):
        asked.append(1)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return noised(self, *arguments)

    monkeypatch.setattr(ModuleVault, "_sum", stop_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        paying(tmp_path, checkpoint=tmp_path / "run.npz").fit(*some_examples())
    assert [entry.status for entry in ledger.history("people")] == ["granted", "reserved"]
    trainer = paying(tmp_path, checkpoint=tmp_path / "run.npz").fit(*some_examples())
    assert [entry.status for entry in ledger.history("people")] == ["granted", "committed"]
    assert ledger.verify(certificate=trainer.certificate_)
    with pytest.raises(ValueError, match="its dataset is 'people', this one's 'others'"):
        paying(tmp_path, checkpoint=tmp_path / "run.npz", dataset="others").fit(*some_examples())
    (tmp_path / "budget.db").unlink()
    Ledger(tmp_path / "budget.db").grant("people", 2.5, 1e-5)  # another book: it has not paid
    with pytest.raises(ValueError, match="is not in the ledger; begin the fit anew"):
        paying(tmp_path, checkpoint=tmp_path / "run.npz").fit(*some_examples())


# -- one entry, one training ------------------------------------------------------------------------------------

ROUNDS = 30  # of ``paying``


class Stopped(BaseException):
    pass


def stop_at(monkeypatch, round_):
    """Make the vault stop before it answers the round of this number; the list of rounds really answered."""
    answered, summed = [], ModuleVault._sum

    def sum_or_stop(self, parts, release):
        if len(answered) == round_:
            raise Stopped
        answered.append(release)
        return summed(self, parts, release)

    monkeypatch.setattr(ModuleVault, "_sum", sum_or_stop)
    return answered


def stopped(tmp_path, monkeypatch, round_=4):
    """A training that was stopped; its checkpoint."""
    path = tmp_path / "run.npz"
    with monkeypatch.context() as patch:
        stop_at(patch, round_)
        with pytest.raises(Stopped):
            paying(tmp_path, checkpoint=path).fit(*some_examples(100))
    return path


def rewritten(path, seal=None, **changes):
    """As somebody would write it by hand, who has the key if there is a ``seal``."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    header = {**json.loads(str(arrays.pop("header"))), **changes}
    if seal is not None:
        text, arrays = json.dumps(header), {name: value for name, value in arrays.items() if name != "seal"}
        arrays["seal"] = np.array(Checkpoint(path, {}, seal).seal_of(text, arrays))
    with open(path, "wb") as file:
        np.savez(file, header=np.array(json.dumps(header)), **arrays)


@pytest.fixture
def granted(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.grant("people", 2.5, 1e-5)
    return ledger


def test_a_checkpoint_that_was_written_by_hand_is_refused(tmp_path, granted, monkeypatch):
    path = stopped(tmp_path, monkeypatch)
    rewritten(path, charged=0, answers=[])
    answered = stop_at(monkeypatch, None)
    with pytest.raises(ValueError, match="was changed, or not written with this ledger's key"):
        paying(tmp_path, checkpoint=path).fit(*some_examples(100))
    assert answered == []


def test_a_committed_entry_pays_for_nothing_more(tmp_path, granted, monkeypatch):
    """Not even for whoever has the key."""
    path = tmp_path / "run.npz"
    trainer = paying(tmp_path, checkpoint=path).fit(*some_examples(100))
    rewritten(path, granted.seal, charged=0, answers=[], account=trainer.certificate_.ledger)
    answered = stop_at(monkeypatch, None)
    with pytest.raises(ValueError, match="is committed: its fit is done"):
        paying(tmp_path, checkpoint=path).fit(*some_examples(100))
    assert answered == []


def test_a_checkpoint_cannot_lower_what_the_ledger_has_charged(tmp_path, granted, monkeypatch):
    """An older copy of the file, or a number changed by whoever has the key, costs rounds and gives none back."""
    early = stopped(tmp_path, monkeypatch).read_bytes()  # four rounds of thirty were heard
    path = stopped(tmp_path, monkeypatch, 16)  # two were lost, sixteen more heard, and the next block is charged
    account = {"entry": granted.history("people")[1].id}
    assert granted.charged(account) == 24
    path.write_bytes(early)
    rewritten(path, granted.seal, charged=4)
    answered = stop_at(monkeypatch, None)
    trainer = paying(tmp_path, checkpoint=path).fit(*some_examples(100))
    assert len(answered) == ROUNDS - 24
    assert trainer.certificate_.verify()
    assert granted.charged(account) == ROUNDS


def test_copies_of_a_checkpoint_do_not_go_on_side_by_side(tmp_path, granted, monkeypatch):
    path = stopped(tmp_path, monkeypatch)
    copy = tmp_path / "copy.npz"
    copy.write_bytes(path.read_bytes())
    charge, gone_on = Ledger.charge, []

    def another_first(self, account, before, rounds):
        if not gone_on:
            gone_on.append(True)
            charge(Ledger(tmp_path / "budget.db"), account, before, rounds)
        charge(self, account, before, rounds)

    monkeypatch.setattr(Ledger, "charge", another_first)
    answered = stop_at(monkeypatch, None)
    with pytest.raises(ValueError, match="was gone on with elsewhere"):
        paying(tmp_path, checkpoint=copy).fit(*some_examples(100))
    assert answered == []


@pytest.mark.parametrize("other", ["another plan", "no checkpoint", "another data set"])
def test_an_entry_of_another_fit_does_not_pay(tmp_path, granted, monkeypatch, other):
    """A cheap training's entry, or one of a fit that cannot go on, in a file sealed by whoever has the key."""
    path = tmp_path / "run.npz"
    granted.grant("people", 9.0, 1e-5)
    granted.grant("others", 9.0, 1e-5)
    trainer = paying(
        tmp_path, checkpoint=None if other == "no checkpoint" else tmp_path / "cheap.npz",
        dataset="others" if other == "another data set" else "people",
    )  # fmt: skip
    if other == "another plan":
        trainer.budget = Budget(0.1, 1e-5)
    with monkeypatch.context() as patch:
        stop_at(patch, 2)
        with pytest.raises(Stopped):
            trainer.fit(*some_examples(100))
    (cheap,) = [entry for entry in granted.history(trainer.dataset) if entry.kind == "fit"]
    stopped(tmp_path, monkeypatch)
    account = {"dataset": trainer.dataset, "entry": cheap.id, "hash": cheap.hash}
    rewritten(path, granted.seal, charged=0, answers=[], account=account)
    answered = stop_at(monkeypatch, None)
    with pytest.raises(ValueError, match="begin the fit anew"):
        paying(tmp_path, checkpoint=path).fit(*some_examples(100))
    assert answered == []
