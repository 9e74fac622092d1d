"""Laplacian smoothing for users of Opacus: one line, no other privacy."""

from __future__ import annotations

import math

import torch
from opacus.optimizers import DPOptimizer
from torch import Tensor

__all__ = ["smoothed", "smoothed_vector"]


def smoothed(optimizer: DPOptimizer, sigma: float = 1.0) -> DPOptimizer:
    """The same Opacus optimizer, which from now on smooths each noisy gradient before its own update.

    All gradients, flattened one after the other, are multiplied by (I - sigma L)^-1 with L the periodic Laplacian in
    one dimension (DP-LSSGD, or DP-LSAdam where the wrapped optimizer is Adam). It is done after the noise is added:
    post-processing, which changes no privacy number.

    Parameters
    ----------
    optimizer : opacus.optimizers.DPOptimizer
        What ``PrivacyEngine.make_private`` returns.
    sigma : float
        How strongly; 0 changes nothing.

    Examples
    --------
    >>> import torch
    >>> from opacus.optimizers import DPOptimizer
    >>> from thresher.torch import smoothed
    >>> plain = torch.optim.SGD(torch.nn.Linear(3, 1).parameters(), lr=0.1)
    >>> private = DPOptimizer(plain, noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=10)
    >>> smoothed(private, sigma=1.0) is private
    True
    """
    if not isinstance(optimizer, DPOptimizer):
        raise TypeError(
            f"optimizer is a {type(optimizer).__name__}: without Opacus's noise there is nothing private to smooth; "
            "give the optimizer that PrivacyEngine.make_private returns"
        )
    if not (isinstance(sigma, (int, float)) and 0 <= sigma < math.inf):
        raise ValueError(f"sigma={sigma!r} must be a finite number of at least 0; 0 changes nothing")
    update = optimizer.original_optimizer

    def smooth(_: torch.optim.Optimizer, *__: object) -> None:
        parameters = [p for p in optimizer.params if p.grad is not None]
        noisy = torch.cat([p.grad.reshape(-1) for p in parameters])
        pieces = smoothed_vector(noisy, sigma).split([p.numel() for p in parameters])
        for parameter, piece in zip(parameters, pieces, strict=True):
            parameter.grad.copy_(piece.view_as(parameter))

    update.register_step_pre_hook(smooth)
    return optimizer


def smoothed_vector(vector: Tensor, sigma: float) -> Tensor:
    """(I - sigma L)^-1 ``vector``, by one Fourier transform: 1 + 2 sigma - 2 sigma cos(2 pi k / d) at frequency k."""
    d = len(vector)
    frequencies = torch.arange(d // 2 + 1, dtype=vector.dtype, device=vector.device)
    stretch = 1 + 4 * sigma * torch.sin(math.pi * frequencies / d) ** 2
    result: Tensor = torch.fft.irfft(torch.fft.rfft(vector) / stretch, n=d)
    return result
