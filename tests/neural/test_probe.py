"""What cannot be trained privately is refused before anything is spent."""

import numpy as np
import pytest

from networks import CLASSES, perceptron, some_examples, torch
from thresher import Budget
from thresher.torch import PrivateTrainer
from thresher.torch.examples import examples_of
from thresher.torch.gradients import ByFunctions, ByLayers
from thresher.torch.probe import per_example_gradients

nn, cross_entropy = torch.nn, torch.nn.functional.cross_entropy
BUDGET = Budget(3.0, 1e-5)


def refused(module, match, loss=cross_entropy, X=None, y=None, error=ValueError):
    some = some_examples(40)
    X, y = (some[0] if X is None else X), (some[1] if y is None else y)
    trainer = PrivateTrainer(module, loss, "dp-sgd", BUDGET)
    with pytest.raises(error, match=match):
        trainer.fit(X, y)
    assert not hasattr(trainer, "certificate_")


class MeanOfBatch(nn.Module):
    """Mixes the examples of a batch without any layer that would say so."""

    def __init__(self):
        super().__init__()
        self.out = nn.Linear(5, CLASSES)

    def forward(self, x):
        return self.out(x - x.mean(dim=0, keepdim=True) / 2)


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(5, CLASSES)
        self.register_buffer("seen", torch.zeros(5))

    def forward(self, x):
        self.seen += x.detach().sum(dim=0)
        return self.out(x)


def with_layer(layer):
    return nn.Sequential(nn.Linear(5, 6), layer, nn.Linear(6, CLASSES))


def test_layers_that_mix_examples_are_refused_by_name():
    refused(with_layer(nn.BatchNorm1d(6)), "'1' is a BatchNorm1d.*GroupNorm")


def test_mixing_that_no_layer_tells_is_found_out():
    refused(MeanOfBatch(), "another output in a batch than by itself")


def test_a_frozen_batch_norm_is_fine():
    X, y = some_examples(40)
    module = with_layer(nn.BatchNorm1d(6)).eval()
    trainer = PrivateTrainer(module, cross_entropy, "dp-sgd", BUDGET).fit(X, y)
    assert trainer.certificate_.verify()
    assert not module[1].running_mean.any()


def test_dropout_is_refused_in_training_mode_and_off_in_eval_mode():
    refused(with_layer(nn.Dropout(0.5)), r"dropout.*module.eval\(\)")
    X, y = some_examples(40)
    assert PrivateTrainer(with_layer(nn.Dropout(0.5)).eval(), cross_entropy, "dp-sgd", BUDGET).fit(X, y).certificate_


def test_buffers_that_collect_examples_are_refused():
    module = Counts()
    refused(module, "buffer 'seen' changes")
    assert not module.seen.any()


@pytest.mark.parametrize(
    ("module", "match"),
    [
        (perceptron().requires_grad_(False), "no trainable parameters"),
        (nn.Sequential(nn.LazyLinear(CLASSES)), "lazy"),
        (perceptron().half(), r"float16.*module.float\(\)"),
        (nn.Linear(4, CLASSES), r"made-up input of shape \(1, 5\)"),
    ],
)
def test_modules_that_cannot_be_trained_are_refused(module, match):
    refused(module, match)


def test_a_loss_that_is_not_finite_is_refused():
    refused(perceptron(), "not finite", loss=lambda o, t: (o.sum() - o.sum()).log())
    broken = perceptron()
    torch.nn.init.constant_(broken[0].weight, torch.nan)
    refused(broken, "not finite")


def test_coarse_products_are_refused():
    torch.set_float32_matmul_precision("medium")
    try:
        refused(perceptron(), "matmul precision is 'medium'")
    finally:
        torch.set_float32_matmul_precision("highest")


def test_examples_that_make_no_sense_are_refused():
    X, y = some_examples(40)
    refused(perceptron(), "40 examples, y has 39", y=y[1:])
    for wild in (np.nan, np.inf):
        bad = X.copy()
        bad[3, 1] = wild
        refused(perceptron(), "X holds values that are not finite", X=bad)
    with pytest.raises(ValueError, match="y is missing"):
        examples_of(X, None)
    with pytest.raises(TypeError, match="map-style Dataset"):
        examples_of(iter(X), None)
    with pytest.raises(ValueError, match="at least 2"):
        examples_of(X[:1], y[:1])


def test_the_faster_way_is_taken_where_it_is_right():
    X, y = (torch.from_numpy(part) for part in some_examples(3))

    class Functional(nn.Module):
        """Uses a layer's parameters without the layer."""

        def __init__(self):
            super().__init__()
            self.out = nn.Linear(5, CLASSES)

        def forward(self, x):
            return x @ self.out.weight.T

    assert isinstance(per_example_gradients(perceptron(), cross_entropy, (X[0], y[0])), ByLayers)
    assert isinstance(per_example_gradients(Functional(), cross_entropy, (X[0], y[0])), ByFunctions)


def test_made_up_inputs_do_not_disturb_the_callers_random_numbers():
    X, y = some_examples(40)
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    PrivateTrainer(nn.Linear(5, CLASSES), cross_entropy, "dp-sgd", BUDGET)
    module = nn.Linear(5, CLASSES)
    torch.manual_seed(3)
    PrivateTrainer(module, cross_entropy, "dp-sgd", BUDGET).fit(X, y)
    assert torch.rand(1) == expected


class ScalesWhenLarge(nn.Module):
    """Mixes examples only where no made-up input is."""

    def __init__(self):
        super().__init__()
        self.out = nn.Linear(5, CLASSES)

    def forward(self, x):
        return self.out(x / x.max() if x.max() > 1 else x)


class SortsByLength(nn.Module):
    """Right for made-up inputs, which have no zeros; else it would hand one example's gradient to another."""

    def __init__(self):
        super().__init__()
        self.hidden, self.out = nn.Linear(5, 4), nn.Linear(4, CLASSES)

    def forward(self, x):
        order = (x != 0).sum(dim=1).argsort()
        return self.out(self.hidden(x[order])[order.argsort()].tanh())


def test_a_forward_of_the_users_own_is_never_trusted_to_keep_examples_apart():
    """Formulas for layers would be; torch.func keeps them apart by itself, or fails."""
    refused(ScalesWhenLarge(), "cannot be trained privately")
    X, y = some_examples(3)
    for module in (SortsByLength(), nn.Sequential(SortsByLength())):
        gradients = per_example_gradients(module, cross_entropy, (torch.tensor(X[0]), torch.tensor(y[0])))
        assert isinstance(gradients, ByFunctions)
    hooked = perceptron()
    hooked.register_forward_hook(lambda module, given, output: output)
    assert not ByLayers.takes(hooked)


def test_half_precision_by_autocast_is_refused():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        refused(perceptron(), "torch.autocast is on")
