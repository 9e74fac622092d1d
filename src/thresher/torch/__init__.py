"""Private training of PyTorch modules: torch is one more vault, so the algorithms are those of every other model."""

try:
    import opacus as _opacus
    import torch as _torch
except ImportError as error:
    raise ImportError(
        f"thresher.torch needs one more package ({error.name}); run: pip install 'thresher[torch]'"
    ) from None

from thresher.torch.problem import ModuleProblem
from thresher.torch.smoothing import smoothed
from thresher.torch.trainer import PrivateTrainer
from thresher.torch.vault import ModuleVault

__all__ = ["ModuleProblem", "ModuleVault", "PrivateTrainer", "smoothed"]

del _opacus, _torch
