"""Small modules, made-up examples and vaults for the tests of thresher.torch; without torch these are skipped."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'thresher[torch]'")
pytest.importorskip("opacus", reason="opacus is not installed: pip install 'thresher[torch]'")

from opacus import PrivacyEngine  # noqa: E402, F401
from opacus.utils.batch_memory_manager import BatchMemoryManager  # noqa: E402, F401
from torch import nn  # noqa: E402
from torch.nn.functional import cross_entropy  # noqa: E402

from thresher.privacy.budget import Budget  # noqa: E402
from thresher.privacy.plan import Plan  # noqa: E402
from thresher.torch.examples import ArrayExamples  # noqa: E402
from thresher.torch.gradients import ByLayers, flattened, trainable_parameters  # noqa: E402
from thresher.torch.problem import ModuleProblem  # noqa: E402
from thresher.torch.vault import ModuleVault  # noqa: E402
from thresher.vaults.randomness import NoiseSource  # noqa: E402

CLASSES = 3


def perceptron(width=6):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, width), nn.Tanh(), nn.Linear(width, CLASSES))


def some_examples(n=12, seed=0, shape=(5,)):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, *shape)).astype(np.float32), rng.integers(0, CLASSES, n)


def gradient_alone(module, loss, x, y):
    """One example's gradient, flat, by plain autograd."""
    value = loss(module(torch.as_tensor(x)[None]), torch.as_tensor(y)[None]).sum()
    parts = torch.autograd.grad(value, trainable_parameters(module), allow_unused=True)
    whole = [
        torch.zeros_like(p) if part is None else part
        for p, part in zip(trainable_parameters(module), parts, strict=True)
    ]
    return flattened(whole)


def clipped(vector, clip):
    norm = np.linalg.norm(vector)
    return vector if norm <= clip else vector * (clip / norm)


def make_vault(X, y, *releases, module=None, adjacency="replace-one", noise=None, virtual_batch=256, epsilon=math.inf):
    module = module or perceptron()
    problem = ModuleProblem(len(X), flattened(trainable_parameters(module)))
    plan = Plan("test", problem, Budget(epsilon, 1e-6, adjacency), releases)
    gradients = ByLayers(module, cross_entropy)
    noise = noise or NoiseSource(0)
    return ModuleVault(ArrayExamples(X, y), module, gradients, plan, noise, virtual_batch=virtual_batch)


class GivenBatch(NoiseSource):
    """Draws the batch it was told to."""

    def __init__(self, rows):
        super().__init__(0)
        self._rows = np.asarray(rows, dtype=np.int64)

    def batch(self, rows, rate, sampling):
        return self._rows
