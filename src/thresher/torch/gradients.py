"""Per-example gradients of a module, and how they are clipped.

Two ways. By layers: one pass back to the outputs of the layers, from which Opacus's formulas make each example's
gradient; the sum over the batch, which autograd would compute as well, is left out. By functions: torch.func, which
takes any module but is slower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import torch
from opacus import GradSampleModule
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge

from thresher.privacy.arrays import Floats

__all__ = [
    "LEAST_CLIP",
    "ByFunctions",
    "ByLayers",
    "Loss",
    "PerExample",
    "clipped_sum",
    "flattened",
    "set_parameters",
    "trainable_parameters",
]

Loss = Callable[[Tensor, Tensor], Tensor]

PIECE = 2**14  # squares summed up at a time: in single precision the sum's relative error is at most PIECE * 2^-24 ...
INWARD = 1 - 2.0**-10  # ... so norms are understated by less than this
LEAST_CLIP = 1e-10  # squares of what is much smaller are lost in single precision


class PerExample(Protocol):
    """Each example's gradient of its own loss, for each trainable parameter a tensor (examples, *shape)."""

    def __call__(self, inputs: Tensor, targets: Tensor) -> list[Tensor]: ...


class ByLayers:
    """By Opacus's formulas for layers, from what goes into each layer and the gradient of what comes out of it."""

    def __init__(self, module: nn.Module, loss: Loss) -> None:
        self._module, self._loss = module, loss
        self._uses: list[tuple[nn.Module, list[Tensor], GradientEdge]] = []

    @staticmethod
    def takes(module: nn.Module) -> bool:
        """Whether there is a formula for every layer with trainable parameters, and nothing but torch's own forwards.

        No probe can prove that a user's forward, or hook, never mixes examples; torch.func keeps them apart by itself.
        """
        return all(_is_torchs_own(part) for part in module.modules()) and all(
            type(layer) in GradSampleModule.GRAD_SAMPLERS for layer in trainable_layers(module)
        )

    def _note_use(self, layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        # the edge, not the tensor: a later layer may work in place
        self._uses.append((layer, [given.detach() for given in inputs], get_gradient_edge(output)))

    def __call__(self, inputs: Tensor, targets: Tensor) -> list[Tensor]:
        self._uses.clear()
        hooks = [layer.register_forward_hook(self._note_use) for layer in trainable_layers(self._module)]
        try:
            total = losses(self._loss, self._module(inputs), targets).sum()
        finally:
            for hook in hooks:
                hook.remove()
        slopes = torch.autograd.grad(total, [edge for _, _, edge in self._uses], allow_unused=True)
        found: dict[nn.Parameter, Tensor] = {}
        with torch.no_grad():
            for (layer, given, _), slope in zip(self._uses, slopes, strict=True):
                if slope is None:
                    continue
                for parameter, part in GradSampleModule.GRAD_SAMPLERS[type(layer)](layer, given, slope).items():
                    found[parameter] = found[parameter] + part if parameter in found else part
        self._uses.clear()
        return [
            found[p] if p in found else p.new_zeros((len(inputs), *p.shape)) for p in trainable_parameters(self._module)
        ]


class ByFunctions:
    """By torch.func: the gradient of one example's loss, vectorised over examples."""

    def __init__(self, module: nn.Module, loss: Loss) -> None:
        self._module = module
        self._names = [name for name, p in module.named_parameters() if p.requires_grad]

        def one(parameters: dict[str, Tensor], x: Tensor, target: Tensor) -> Tensor:
            output = torch.func.functional_call(module, parameters, (x[None],))
            return loss(output, target[None]).sum()

        self._gradients = torch.func.vmap(torch.func.grad(one), in_dims=(None, 0, 0))

    def __call__(self, inputs: Tensor, targets: Tensor) -> list[Tensor]:
        current = dict(self._module.named_parameters())
        found = self._gradients({name: current[name].detach() for name in self._names}, inputs, targets)
        return [found[name] for name in self._names]


def losses(loss: Loss, outputs: Tensor, targets: Tensor) -> Tensor:
    """The loss of every example by itself, whatever ``loss`` would do to a batch (take its mean, mostly)."""
    each: Tensor = torch.vmap(lambda output, target: loss(output[None], target[None]).sum())(outputs, targets)
    return each


def norms(gradients: list[Tensor]) -> Tensor:
    """Each example's l2 norm over all parameters. A gradient without a finite one becomes zero in the list."""
    squares = torch.zeros(len(gradients[0]), dtype=torch.float64, device=gradients[0].device)
    for gradient in gradients:
        for piece in gradient.flatten(1).split(PIECE, dim=1):
            squares += torch.linalg.vector_norm(piece, dim=1).double() ** 2
    broken = ~torch.isfinite(squares)
    if bool(broken.any()):
        squares[broken] = 0
        # new tensors: two parameters' gradients may share their memory, and an expanded one cannot be written to
        gradients[:] = [torch.where(broken.view(-1, *[1] * (g.ndim - 1)), 0, g) for g in gradients]
    return squares.sqrt()


def clipped_sum(gradients: list[Tensor], clip: float, weight: float = 1.0) -> Floats:
    """``weight`` times the sum over examples, each clipped to l2 norm ``clip``, as one vector in double precision."""
    factors = weight * (clip * INWARD / norms(gradients)).clamp(max=1.0)
    return flattened([factors.to(gradient.dtype) @ gradient.flatten(1) for gradient in gradients])


def _is_torchs_own(module: nn.Module) -> bool:
    hooked = module._forward_hooks or module._forward_pre_hooks
    return type(module).__module__.startswith("torch.nn.modules.") and not hooked


def trainable_parameters(module: nn.Module) -> list[nn.Parameter]:
    return [parameter for parameter in module.parameters() if parameter.requires_grad]


def trainable_layers(module: nn.Module) -> Iterator[nn.Module]:
    """The layers: modules that hold trainable parameters themselves."""
    return (layer for layer in module.modules() if any(p.requires_grad for p in layer.parameters(recurse=False)))


def flattened(tensors: list[Tensor]) -> Floats:
    """One vector, in double precision."""
    vector: Floats = torch.cat([tensor.detach().reshape(-1).double().cpu() for tensor in tensors]).numpy()
    return vector


def set_parameters(parameters: list[nn.Parameter], theta: Floats) -> None:
    """The inverse: ``theta`` into the parameters, each in its own precision."""
    pieces = torch.tensor(theta).split([parameter.numel() for parameter in parameters])
    with torch.no_grad():
        for parameter, piece in zip(parameters, pieces, strict=True):
            parameter.copy_(piece.view(parameter.shape))
