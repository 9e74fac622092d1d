"""The algorithms: each plans its releases and turns answers into a vector of coefficients. One file each, listed here.

Classes are imported when they are first used: what needs their names alone, such as the command line, starts at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:  # type checkers and editors read this; FILES says the same to Python
    from thresher.algorithms.dp_adam import DPAdam, DPLSAdam
    from thresher.algorithms.dp_agd import DPAGD
    from thresher.algorithms.dp_ight import DPIGHT
    from thresher.algorithms.dp_lssgd import DPLSSGD, LSSGD
    from thresher.algorithms.dp_sgd import DPGD, DPSGD, SGD
    from thresher.algorithms.dp_srm import DPSRM, STORM
    from thresher.algorithms.dpsl_kt import DPSLKT
    from thresher.algorithms.frank_wolfe import FrankWolfe
    from thresher.algorithms.ight import IGHT
    from thresher.algorithms.label_lasso import LabelLasso
    from thresher.algorithms.label_ldp_iht import LabelLDPIHT
    from thresher.algorithms.ldp_iht import LDPIHT
    from thresher.algorithms.newton import Newton
    from thresher.algorithms.noisy_frank_wolfe import NoisyFrankWolfe
    from thresher.algorithms.objective_perturbation import ObjectivePerturbation
    from thresher.algorithms.output_perturbation import OutputPerturbation
    from thresher.algorithms.peeling import Peeling
    from thresher.algorithms.protocol import Algorithm, LocalAlgorithm
    from thresher.algorithms.pursuit import Pursuit
    from thresher.algorithms.rajkumar_agarwal import RajkumarAgarwal
    from thresher.algorithms.registry import DENSE, LOCAL, REGISTRY, resolve, resolve_dense, resolve_local
    from thresher.algorithms.rrpsgd import RRPSGD
    from thresher.algorithms.screened_ight import ScreenedIGHT
    from thresher.algorithms.two_stage import TwoStage

__all__ = [
    "DENSE",
    "DPAGD",
    "DPGD",
    "DPIGHT",
    "DPLSSGD",
    "DPSGD",
    "DPSLKT",
    "DPSRM",
    "IGHT",
    "LDPIHT",
    "LOCAL",
    "LSSGD",
    "REGISTRY",
    "RRPSGD",
    "SGD",
    "STORM",
    "Algorithm",
    "DPAdam",
    "DPLSAdam",
    "FrankWolfe",
    "LabelLDPIHT",
    "LabelLasso",
    "LocalAlgorithm",
    "Newton",
    "NoisyFrankWolfe",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "Peeling",
    "Pursuit",
    "RajkumarAgarwal",
    "ScreenedIGHT",
    "TwoStage",
    "resolve",
    "resolve_dense",
    "resolve_local",
]

SparseName = Literal[
    "auto", "newton", "pursuit", "dp-ight", "screened-ight", "peeling", "output-perturbation", "two-stage", "dpsl-kt",
    "frank-wolfe", "noisy-frank-wolfe", "ight",
]  # fmt: skip
"""The algorithms for sparse models."""

DenseName = Literal[
    "auto", "newton", "dp-srm", "dp-lssgd", "dp-lsadam", "dp-sgd", "dp-adam", "dp-gd", "dp-agd", "rrpsgd",
    "objective-perturbation", "storm", "sgd", "lssgd",
]  # fmt: skip
"""The algorithms whose models use every feature."""

LocalName = Literal["ldp-iht", "label-ldp-iht", "label-lasso"]
"""The algorithms of the local model, where nobody holds the rows or the labels."""

FILES = {
    "dp_adam": ("DPAdam", "DPLSAdam"),
    "dp_agd": ("DPAGD",),
    "dp_ight": ("DPIGHT",),
    "dp_lssgd": ("DPLSSGD", "LSSGD"),
    "dp_sgd": ("DPGD", "DPSGD", "SGD"),
    "dp_srm": ("DPSRM", "STORM"),
    "dpsl_kt": ("DPSLKT",),
    "frank_wolfe": ("FrankWolfe",),
    "ight": ("IGHT",),
    "label_lasso": ("LabelLasso",),
    "label_ldp_iht": ("LabelLDPIHT",),
    "ldp_iht": ("LDPIHT",),
    "newton": ("Newton",),
    "noisy_frank_wolfe": ("NoisyFrankWolfe",),
    "objective_perturbation": ("ObjectivePerturbation",),
    "output_perturbation": ("OutputPerturbation",),
    "peeling": ("Peeling",),
    "pursuit": ("Pursuit",),
    "rajkumar_agarwal": ("RajkumarAgarwal",),
    "rrpsgd": ("RRPSGD",),
    "screened_ight": ("ScreenedIGHT",),
    "two_stage": ("TwoStage",),
}
"""The algorithms by the file that defines them."""

OTHERS = {
    "protocol": ("Algorithm", "LocalAlgorithm"),
    "registry": ("DENSE", "LOCAL", "REGISTRY", "resolve", "resolve_dense", "resolve_local"),
}


if not TYPE_CHECKING:  # which would take every name for one of ours

    def __getattr__(name: str) -> Any:
        for file, names in (*FILES.items(), *OTHERS.items()):
            if name in names:
                globals()[name] = getattr(import_module(f"thresher.algorithms.{file}"), name)
                return globals()[name]
        raise AttributeError(f"module 'thresher.algorithms' has no attribute {name!r}")
