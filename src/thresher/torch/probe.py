"""What a module must be to be trained privately: an example's gradient depends on that example alone.

This is tried out on made-up inputs of the shape and kind of the real ones, before anything is spent.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from thresher.torch.gradients import ByFunctions, ByLayers, Loss, PerExample, trainable_parameters

__all__ = ["check_parameters", "per_example_gradients"]

PROBES = 3
FAILURES = (RuntimeError, ValueError, TypeError, IndexError)  # of a module that is given what it does not take
TOLERANCE = 1e-3  # of a gradient's norm: single precision agrees to about 1e-6, a mixed batch by nothing like it


def check_parameters(module: nn.Module) -> None:
    """Refuse what can be seen without an example."""
    if any(isinstance(p, nn.parameter.UninitializedParameter) for p in module.parameters()):
        raise ValueError("module has lazy layers that do not know their shapes yet; run it once on a made-up input")
    if torch.get_float32_matmul_precision() != "highest":
        raise ValueError(
            f"torch's float32 matmul precision is {torch.get_float32_matmul_precision()!r}, too coarse for clips to "
            "hold; call torch.set_float32_matmul_precision('highest')"
        )
    if not trainable_parameters(module):
        raise ValueError("module has no trainable parameters (requires_grad=True), so there is nothing to train")
    if torch.is_autocast_enabled(trainable_parameters(module)[0].device.type):
        raise ValueError("torch.autocast is on: clipped gradients would be summed in half precision; fit outside of it")
    for name, parameter in module.named_parameters():
        if parameter.requires_grad and parameter.dtype not in (torch.float32, torch.float64):
            raise ValueError(
                f"module's parameter {name!r} is {parameter.dtype}: norms are computed in single or double precision, "
                "so that clips hold; call module.float()"
            )
    for name, layer in module.named_modules():
        if layer.training and isinstance(layer, nn.modules.batchnorm._BatchNorm):
            raise ValueError(
                f"module's layer {name!r} is a {type(layer).__name__} in training mode: it mixes the examples of a "
                "batch, so no example's gradient can be clipped; use GroupNorm, or module.eval() to freeze it"
            )


def per_example_gradients(module: nn.Module, loss: Loss, example: tuple[Tensor, Tensor]) -> PerExample:
    """The way of computing them that gives each made-up example's gradient, the faster one if both do.

    Of ``example``, an input and a target, only shapes and kinds are used. The module's buffers may change: give a copy.
    """
    inputs, targets = probe_examples(example)
    before = {name: buffer.clone() for name, buffer in module.named_buffers()}
    alone = [_gradient(module, loss, inputs[at : at + 1], targets[at : at + 1]) for at in range(PROBES)]
    _check_randomness(module, loss, inputs, targets, alone[0])
    _check_mixing(module, inputs)
    _check_buffers(module, before)
    reasons = []
    for way in (ByLayers, ByFunctions):
        if way is ByLayers and not ByLayers.takes(module):
            continue
        try:
            gradients: PerExample = way(module, loss)
            together = gradients(inputs, targets)
        except FAILURES as error:
            reasons.append(str(error).partition("\n")[0])
            continue
        if all(_agree([part[at] for part in together], alone[at]) for at in range(PROBES)):
            return gradients
        reasons.append("in a batch, an example's gradient is another one than by itself")
    raise ValueError(f"module cannot be trained privately: {'; '.join(dict.fromkeys(reasons))}")


def _check_randomness(module: nn.Module, loss: Loss, inputs: Tensor, targets: Tensor, first: list[Tensor]) -> None:
    if not _agree(_gradient(module, loss, inputs[:1], targets[:1]), first):
        raise ValueError(
            "module gives another gradient when it is asked again: it draws random numbers (dropout?); call "
            "module.eval() before training, or take such layers out"
        )


def _check_mixing(module: nn.Module, inputs: Tensor) -> None:
    with torch.no_grad():
        together, alone = module(inputs), [module(inputs[at : at + 1]) for at in range(PROBES)]
    if len(together) != PROBES or not all(_agree([together[at]], [alone[at]]) for at in range(PROBES)):
        raise ValueError(
            "module gives an example another output in a batch than by itself: it mixes examples, so no example's "
            "gradient can be clipped; take that layer out, or module.eval() if that makes it stop"
        )


def _check_buffers(module: nn.Module, before: dict[str, Tensor]) -> None:
    for name, buffer in module.named_buffers():
        if not torch.equal(buffer, before[name]):
            raise ValueError(
                f"module's buffer {name!r} changes when the module is used: it would carry examples out of the "
                "training without noise; call module.eval() before training, or take that layer out"
            )


def probe_examples(example: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Inputs between 0 and 1, or 0 and 1 where they are whole numbers; targets 0, which is a class as well."""
    coins = torch.Generator().manual_seed(1)  # public, and not the caller's generator
    shape = (PROBES, *example[0].shape)
    drawn = torch.rand(shape, generator=coins)
    inputs = drawn if example[0].is_floating_point() else drawn.round()
    targets = torch.zeros((PROBES, *example[1].shape), dtype=example[1].dtype, device=example[1].device)
    return inputs.to(example[0]), targets


def _gradient(module: nn.Module, loss: Loss, inputs: Tensor, targets: Tensor) -> list[Tensor]:
    """That of one example, by autograd."""
    try:
        value = loss(module(inputs), targets).sum()
        slopes = torch.autograd.grad(value, trainable_parameters(module), allow_unused=True)
    except FAILURES as error:
        raise ValueError(
            f"module and loss fail on a made-up input of shape {tuple(inputs.shape)} ({inputs.dtype}) and target of "
            f"shape {tuple(targets.shape)} ({targets.dtype}): {error}"
        ) from error
    found = [torch.zeros_like(p) if s is None else s for p, s in zip(trainable_parameters(module), slopes, strict=True)]
    if not (torch.isfinite(value) and all(bool(torch.isfinite(part).all()) for part in found)):
        raise ValueError(
            f"loss={value.item():g} of a made-up input, or its gradient, is not finite; start from other parameters"
        )
    return found


def _agree(some: list[Tensor], others: list[Tensor]) -> bool:
    one, other = (torch.cat([part.detach().reshape(-1).double() for part in parts]) for parts in (some, others))
    return len(one) == len(other) and bool((one - other).norm() <= TOLERANCE * other.norm())
