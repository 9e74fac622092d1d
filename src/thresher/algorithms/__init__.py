"""The algorithms: each plans its releases and turns answers into a vector of coefficients. One file each."""

from __future__ import annotations

from collections.abc import Callable

from thresher.algorithms.auto import Auto, DenseAuto
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
from thresher.algorithms.one_vs_rest import OneVsRest
from thresher.algorithms.output_perturbation import OutputPerturbation
from thresher.algorithms.peeling import Peeling
from thresher.algorithms.protocol import Algorithm, LocalAlgorithm
from thresher.algorithms.pursuit import Pursuit
from thresher.algorithms.rajkumar_agarwal import RajkumarAgarwal
from thresher.algorithms.rrpsgd import RRPSGD
from thresher.algorithms.screened_ight import ScreenedIGHT
from thresher.algorithms.stochastic import Stochastic
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

REGISTRY: dict[str, Callable[[], Algorithm]] = {
    cls.name: cls
    for cls in (
        Newton,
        Pursuit,
        DPIGHT,
        ScreenedIGHT,
        Peeling,
        OutputPerturbation,
        TwoStage,
        DPSLKT,
        FrankWolfe,
        NoisyFrankWolfe,
        IGHT,
    )
}
"""The algorithms for sparse models, by name."""

DENSE: dict[str, Callable[[], Algorithm]] = {
    cls.name: cls
    for cls in (
        Newton, DPSRM, DPLSSGD, DPLSAdam, DPSGD, DPAdam, DPGD, DPAGD, RRPSGD, ObjectivePerturbation, STORM, SGD, LSSGD,
    )
}  # fmt: skip
"""The algorithms whose models use every feature."""

LOCAL: dict[str, Callable[[], LocalAlgorithm]] = {cls.name: cls for cls in (LDPIHT, LabelLDPIHT, LabelLasso)}
"""The algorithms of the local model, where nobody holds the rows or the labels."""


def resolve(algorithm: str | Algorithm, outputs: int = 1) -> Algorithm:
    """The algorithm behind a name or the instance itself; for several outputs, one per class if it knows no better.

    Parameters
    ----------
    algorithm : str or instance
        A name of ``REGISTRY``, or "auto".
    outputs : int
        Linear predictors that are fitted side by side: 1, or the number of more than two classes.

    Returns
    -------
    Algorithm

    Examples
    --------
    >>> from thresher.algorithms import resolve
    >>> resolve("peeling").name, resolve("peeling", outputs=3).each.name
    ('peeling', 'peeling')
    """
    found = _resolve_sparse(algorithm)
    return found if outputs == 1 or getattr(found, "many_outputs", False) else OneVsRest(found)


def resolve_dense(algorithm: str | Algorithm, outputs: int = 1) -> Algorithm:
    """The algorithm for dense models behind a name, or the instance; for several outputs, one per class if need be.

    Parameters
    ----------
    algorithm : str or instance
        A name of ``DENSE``, or "auto".
    outputs : int
        Linear predictors that are fitted side by side: 1, or the number of more than two classes.

    Returns
    -------
    Algorithm

    Examples
    --------
    >>> from thresher.algorithms import resolve_dense
    >>> resolve_dense("dp-sgd").momentum
    0.8
    """
    found = _resolve_dense(algorithm)
    return found if outputs == 1 or getattr(found, "many_outputs", True) else OneVsRest(found)


def _resolve_dense(algorithm: str | Algorithm) -> Algorithm:
    if isinstance(algorithm, str):
        if algorithm == "auto":
            return DenseAuto()
        if algorithm not in DENSE:
            elsewhere = "; SparseRegressor and SparseClassifier have that one" if algorithm in REGISTRY else ""
            names = ", ".join(map(repr, ("auto", *DENSE)))
            raise ValueError(f"algorithm={algorithm!r} must be one of {names}{elsewhere}")
        return DENSE[algorithm]()
    if not isinstance(algorithm, (Newton, Stochastic, DPAGD, ObjectivePerturbation)):
        raise ValueError(f"algorithm={algorithm!r} must be a name or an instance such as DPSGD(passes=10)")
    return algorithm


def resolve_local(algorithm: str | LocalAlgorithm) -> LocalAlgorithm:
    """The local algorithm behind a name, or the instance itself.

    Parameters
    ----------
    algorithm : str or instance
        A name of ``LOCAL``.

    Returns
    -------
    LocalAlgorithm

    Examples
    --------
    >>> from thresher.algorithms import resolve_local
    >>> resolve_local("ldp-iht").randomiser
    'auto'
    """
    if isinstance(algorithm, str):
        if algorithm not in LOCAL:
            elsewhere = "; SparseRegressor and SparseClassifier have that one" if algorithm in REGISTRY else ""
            raise ValueError(f"algorithm={algorithm!r} must be one of {', '.join(map(repr, LOCAL))}{elsewhere}")
        return LOCAL[algorithm]()
    if not isinstance(algorithm, (LDPIHT, LabelLDPIHT, LabelLasso)):
        raise ValueError(f"algorithm={algorithm!r} must be a name or an instance such as LDPIHT(iterations=5)")
    return algorithm


def _resolve_sparse(algorithm: str | Algorithm) -> Algorithm:
    if not isinstance(algorithm, str):
        if not (hasattr(algorithm, "plan") and hasattr(algorithm, "run")) or isinstance(algorithm, type):
            raise ValueError(f"algorithm={algorithm!r} must be a name or an instance such as DPIGHT(iterations=20)")
        return algorithm
    if algorithm == "auto":
        return Auto()
    if algorithm not in REGISTRY:
        doors = {**dict.fromkeys(LOCAL, "LocalSparse"), **dict.fromkeys(DENSE, "Dense")}
        door = doors.get(algorithm)
        elsewhere = f"; {door}Regressor and {door}Classifier have that one" if door else ""
        raise ValueError(
            f"algorithm={algorithm!r} must be one of {', '.join(map(repr, ('auto', *REGISTRY)))}{elsewhere}"
        )
    return REGISTRY[algorithm]()
