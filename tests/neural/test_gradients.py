"""Per-example gradients and their clipping, against a loop over the examples."""

import numpy as np
import pytest

from networks import CLASSES, clipped, gradient_alone, perceptron, some_examples, torch
from thresher.torch.gradients import ByFunctions, ByLayers, clipped_sum, flattened, set_parameters, trainable_parameters

nn, cross_entropy = torch.nn, torch.nn.functional.cross_entropy


class Twice(nn.Module):
    """One layer used twice, an inplace activation, a frozen layer."""

    def __init__(self):
        super().__init__()
        self.into, self.again, self.out = nn.Linear(5, 5), nn.Linear(5, 5), nn.Linear(5, CLASSES)
        self.fixed = nn.Linear(5, 5).requires_grad_(False)

    def forward(self, x):
        x = nn.functional.relu(self.into(x), inplace=True)
        return self.out(self.fixed(self.again(torch.tanh(self.again(x)))))


class Side(nn.Module):
    """Two layers whose outputs are added: their biases have the same gradient, in the same memory."""

    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(5, CLASSES), nn.Linear(5, CLASSES)

    def forward(self, x):
        return self.left(x) + self.right(x)


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.norm, self.out = nn.Embedding(7, 4), nn.LayerNorm(4), nn.Linear(4, CLASSES)

    def forward(self, x):
        return self.out(self.norm(self.table(x)).mean(dim=1))


class Bare(nn.Module):
    """A parameter of its own, for which no layer's formula is known."""

    def __init__(self):
        super().__init__()
        self.scale, self.out = nn.Parameter(torch.rand(5)), nn.Linear(5, CLASSES)

    def forward(self, x):
        return self.out(self.scale * x)


def images():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, 2, padding=1), nn.GroupNorm(2, 4), nn.ReLU(), nn.MaxPool2d(2, 1), nn.Flatten(),
        nn.Linear(36, CLASSES),
    )  # fmt: skip


NETWORKS = {
    "perceptron": (perceptron, (5,)),
    "images": (images, (1, 8, 8)),
    "twice": (Twice, (5,)),
    "side": (Side, (5,)),
    "words": (Words, None),
    "bare": (Bare, (5,)),
}
WAYS = {"by layers": ByLayers, "by functions": ByFunctions}


def case(name):
    torch.manual_seed(1)
    make, shape = NETWORKS[name]
    if shape is None:
        X, y = np.random.default_rng(0).integers(0, 7, (9, 6)), some_examples(9)[1]
    else:
        X, y = some_examples(9, shape=shape)
    return make(), torch.from_numpy(X), torch.from_numpy(y)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NETWORKS)
def test_each_example_has_the_gradient_it_has_by_itself(name, way):
    module, X, y = case(name)
    assert ByLayers.takes(module) == (
        name not in ("bare", "twice", "side", "words")
    )  # these have forwards of their own
    if way == "by layers" and name == "bare":  # a parameter outside any layer: there is no formula
        return
    alone = [gradient_alone(module, cross_entropy, *pair) for pair in zip(X, y, strict=True)]
    together = WAYS[way](module, cross_entropy)(X, y)
    found = np.stack([flattened([part[at] for part in together]) for at in range(len(X))])
    np.testing.assert_allclose(found, alone, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("clip", [1e-3, 0.7, 1e3])
def test_clipped_sum_is_the_sum_of_clipped_gradients(clip):
    module, X, y = case("images")
    expected = sum(clipped(gradient_alone(module, cross_entropy, *pair), clip) for pair in zip(X, y, strict=True))
    found = clipped_sum(ByLayers(module, cross_entropy)(X, y), clip, weight=0.5)
    np.testing.assert_allclose(found, 0.5 * expected, rtol=2e-3, atol=1e-5 * clip)


@pytest.mark.parametrize("clip", [1e-8, 1e-3, 1.0, 30.0])
@pytest.mark.parametrize("size", [1.0, 1e-12, 1e15])
def test_no_example_adds_more_than_the_clip(clip, size):
    rng = np.random.default_rng(0)
    for width in (3, 40_000):
        gradient = [torch.from_numpy((size * rng.normal(size=(1, width))).astype(np.float32))]
        norm = float(np.linalg.norm(gradient[0].double().numpy()))
        found = np.linalg.norm(clipped_sum(gradient, clip))
        assert found <= clip
        assert found >= 0.998 * min(clip, norm)


@pytest.mark.parametrize("wild", [np.nan, np.inf, -np.inf, 3e38])
def test_a_gradient_without_a_finite_norm_counts_as_zero(wild):
    gradients = [torch.ones(3, 4), torch.ones(3, 2)]
    gradients[1][1, 0] = wild
    np.testing.assert_allclose(clipped_sum(gradients, 100.0), 2 * np.ones(6))


@pytest.mark.parametrize("name", ["twice", "side"])
def test_nothing_of_a_module_is_kept_or_changed(name):
    module, X, y = case(name)
    before = flattened(list(module.parameters()))
    way = ByLayers(module, cross_entropy)
    first, second = way(X, y), way(X, y)
    for gradients in (first, second):
        clipped_sum(gradients, 0.1)
    np.testing.assert_array_equal(*(flattened([part[0] for part in gradients]) for gradients in (first, second)))
    np.testing.assert_array_equal(before, flattened(list(module.parameters())))
    assert not any(layer._forward_hooks for layer in module.modules())


def test_an_infinite_clip_leaves_gradients_alone():
    np.testing.assert_allclose(clipped_sum([torch.tensor([[3.0, 4.0], [0.0, 0.0]])], np.inf), [3, 4])


def test_parameters_go_into_one_vector_and_back():
    module, other = case("images")[0], case("images")[0]
    theta = np.random.default_rng(0).normal(size=sum(p.numel() for p in trainable_parameters(module)))
    set_parameters(trainable_parameters(other), theta)
    np.testing.assert_allclose(flattened(trainable_parameters(other)), theta, rtol=1e-7)
    assert {p.dtype for p in other.parameters()} == {torch.float32}
