"""The algorithms by name, as files, command lines and certificates know them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args

from thresher import algorithms
from thresher.algorithms.auto import Auto, DenseAuto
from thresher.algorithms.one_vs_rest import OneVsRest
from thresher.algorithms.protocol import Algorithm, LocalAlgorithm
from thresher.algorithms.stochastic import Stochastic

__all__ = ["DENSE", "LOCAL", "REGISTRY", "resolve", "resolve_dense", "resolve_local"]

_KINDS: Mapping[str, type[Any]] = {
    kind.name: kind for kinds in algorithms.FILES.values() for kind in (getattr(algorithms, each) for each in kinds)
}


def _named(names: object) -> dict[str, Any]:
    return {name: _KINDS[name] for name in get_args(names) if name != "auto"}


REGISTRY: dict[str, Callable[[], Algorithm]] = _named(algorithms.SparseName)
"""The algorithms for sparse models, by name."""

DENSE: dict[str, Callable[[], Algorithm]] = _named(algorithms.DenseName)
"""The algorithms whose models use every feature."""

LOCAL: dict[str, Callable[[], LocalAlgorithm]] = _named(algorithms.LocalName)
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
    found: Any = algorithm
    if isinstance(algorithm, str):
        if algorithm not in ("auto", *REGISTRY):
            doors = {**dict.fromkeys(LOCAL, "LocalSparse"), **dict.fromkeys(DENSE, "Dense")}
            door = doors.get(algorithm)
            elsewhere = f"; {door}Regressor and {door}Classifier have that one" if door else ""
            names = ", ".join(map(repr, ("auto", *REGISTRY)))
            raise ValueError(f"algorithm={algorithm!r} must be one of {names}{elsewhere}")
        found = Auto() if algorithm == "auto" else REGISTRY[algorithm]()
    elif not (hasattr(algorithm, "plan") and hasattr(algorithm, "run")) or isinstance(algorithm, type):
        raise ValueError(f"algorithm={algorithm!r} must be a name or an instance such as DPIGHT(iterations=20)")
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
    found: Any = algorithm
    if isinstance(algorithm, str):
        if algorithm not in ("auto", *DENSE):
            elsewhere = "; SparseRegressor and SparseClassifier have that one" if algorithm in REGISTRY else ""
            names = ", ".join(map(repr, ("auto", *DENSE)))
            raise ValueError(f"algorithm={algorithm!r} must be one of {names}{elsewhere}")
        found = DenseAuto() if algorithm == "auto" else DENSE[algorithm]()
    elif not isinstance(algorithm, (Stochastic, *(_KINDS[name] for name in DENSE))):
        raise ValueError(f"algorithm={algorithm!r} must be a name or an instance such as DPSGD(passes=10)")
    return found if outputs == 1 or getattr(found, "many_outputs", True) else OneVsRest(found)


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
    if not isinstance(algorithm, tuple(_KINDS[name] for name in LOCAL)):
        raise ValueError(f"algorithm={algorithm!r} must be a name or an instance such as LDPIHT(iterations=5)")
    return algorithm
