"""Private training of a small convolutional network on MNIST; needs the extra "torch"."""

from __future__ import annotations

from functools import cache
from typing import Any

from thresher.privacy.budget import Budget
from thresher_papers.datasets import load

__all__ = ["ALL_ROWS", "DELTA", "digits_error", "network"]

DELTA = 1e-5
ALL_ROWS = 60_000
MEAN, SD = 0.1307, 0.3081  # of MNIST's pixels, as published


def network(activation: str = "Tanh") -> Any:
    """The small network of the MNIST tutorials of TensorFlow Privacy and Opacus: 26,010 parameters.

    They have ReLU; tanh keeps activations bounded, which suits clipped gradients better.
    """
    from torch import nn

    bend = getattr(nn, activation)
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, padding=3), bend(), nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2), bend(), nn.MaxPool2d(2, 1),
        nn.Flatten(), nn.Linear(512, 32), bend(), nn.Linear(32, 10),
    )  # fmt: skip


@cache
def _digits() -> dict[str, Any]:
    import torch

    found = load("mnist")
    data = {"y": torch.from_numpy(found.y).long(), "y_test": torch.from_numpy(found.y_test).long()}
    for name, images in (("X", found.X), ("X_test", found.X_test)):
        pixels = torch.from_numpy(images).float().reshape(-1, 1, 28, 28) / 255
        data[name] = ((pixels - MEAN) / SD).contiguous(memory_format=torch.channels_last)
    return data


def digits_error(algorithm: Any, epsilon: float, rows: int, seed: int) -> tuple[float, float]:
    """Per cent of the test digits after a training on the first ``rows``, and the epsilon that it cost."""
    import torch
    from torch.nn.functional import cross_entropy

    from thresher.torch import PrivateTrainer

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    data = _digits()
    module = network().to(memory_format=torch.channels_last)
    trainer = PrivateTrainer(module, cross_entropy, algorithm, Budget(epsilon, DELTA), random_state=seed)
    trainer.fit(data["X"][:rows], data["y"][:rows])
    with torch.no_grad():
        wrong = module(data["X_test"]).argmax(dim=1) != data["y_test"]
    return 100 * float(wrong.float().mean()), trainer.plan_.epsilon
