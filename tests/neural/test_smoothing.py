"""Laplacian smoothing of an Opacus optimizer: the same privacy, the smoothed step."""

import numpy as np
import pytest

from networks import BatchMemoryManager, PrivacyEngine, perceptron, some_examples, torch
from thresher.algorithms.dp_lssgd import smooth as smooth_array
from thresher.torch import smoothed
from thresher.torch.smoothing import smoothed_vector

cross_entropy = torch.nn.functional.cross_entropy
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")


def private_parts(n=300, batch=50, update=torch.optim.SGD, noise_multiplier=1.0):
    """What PrivacyEngine makes of a perceptron, an optimizer and a loader."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5)).astype(np.float32)
    y = (X[:, 0] > 0).astype(np.int64) + (X[:, 1] > 0.5)
    module = perceptron()
    data = torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(y))
    loader = torch.utils.data.DataLoader(data, batch_size=batch)
    engine = PrivacyEngine()
    optimizer = update(module.parameters(), lr=0.5 if update is torch.optim.SGD else 0.05)
    private = engine.make_private(
        module=module, optimizer=optimizer, data_loader=loader, noise_multiplier=noise_multiplier, max_grad_norm=1.0
    )
    return engine, *private


def train(module, optimizer, loader, passes=1):
    for _ in range(passes):
        for inputs, targets in loader:
            optimizer.zero_grad()
            cross_entropy(module(inputs), targets).backward()
            optimizer.step()


@pytest.mark.parametrize("d", [2, 7, 100, 1001])
@pytest.mark.parametrize("sigma", [0.0, 0.5, 10.0])
def test_torch_and_numpy_smooth_alike(d, sigma):
    vector = np.random.default_rng(d).normal(size=d)
    found = smoothed_vector(torch.from_numpy(vector), sigma).numpy()
    np.testing.assert_allclose(found, smooth_array(vector, sigma), rtol=1e-10, atol=1e-12)
    ring = (1 + 2 * sigma) * found - sigma * (np.roll(found, 1) + np.roll(found, -1))
    np.testing.assert_allclose(ring, vector, rtol=1e-9, atol=1e-10)


def test_the_noisy_gradient_is_smoothed_right_before_the_update():
    _, module, optimizer, _ = private_parts()
    optimizer = smoothed(optimizer, sigma=3.0)
    noisy = []
    optimizer.attach_step_hook(lambda opt: noisy.append(torch.cat([p.grad.reshape(-1) for p in opt.params]).clone()))
    before = torch.cat([p.detach().reshape(-1).clone() for p in optimizer.params])
    inputs, targets = (torch.from_numpy(part) for part in some_examples(50))
    cross_entropy(module(inputs), targets).backward()
    optimizer.step()
    after = torch.cat([p.detach().reshape(-1) for p in optimizer.params])
    expected = smooth_array(noisy[0].double().numpy(), 3.0)
    np.testing.assert_allclose((before - after).numpy() / 0.5, expected, rtol=1e-3, atol=1e-6)


def test_the_accountant_does_not_notice():
    spent = []
    for change in (lambda optimizer: optimizer, smoothed):
        engine, module, optimizer, loader = private_parts()
        train(module, change(optimizer), loader, passes=2)
        spent.append(engine.get_epsilon(1e-5))
    assert spent[0] == spent[1] > 0


@pytest.mark.parametrize("update", [torch.optim.SGD, torch.optim.Adam])
def test_one_line_is_changed_and_it_trains(update):
    torch.manual_seed(0)
    _, module, optimizer, loader = private_parts(n=2000, batch=200, update=update)
    optimizer = smoothed(optimizer, sigma=1.0)
    train(module, optimizer, loader, passes=15)
    inputs, targets = loader.dataset.tensors
    right = (module(inputs).argmax(dim=1) == targets).float().mean()
    assert right > 0.75  # the largest class holds half


def test_virtual_steps_are_smoothed_once():
    engine, module, optimizer, loader = private_parts()
    optimizer = smoothed(optimizer)
    updates = []
    optimizer.original_optimizer.register_step_post_hook(lambda *_: updates.append(1))
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=8, optimizer=optimizer) as small:
        train(module, optimizer, small)
    assert len(updates) == sum(steps for _, _, steps in engine.accountant.history)


def test_what_is_not_private_is_not_smoothed():
    with pytest.raises(TypeError, match="make_private"):
        smoothed(torch.optim.SGD(perceptron().parameters(), lr=0.1))
    for sigma in (-1.0, float("nan"), float("inf"), "1"):
        with pytest.raises(ValueError, match="sigma"):
            smoothed(private_parts()[2], sigma=sigma)
