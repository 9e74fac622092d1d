"""Options that several commands share, and the estimator that they describe."""

from __future__ import annotations

from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from thresher.algorithms import DenseName, SparseName
from thresher.models.options import DenseOptions, SparseOptions

if TYPE_CHECKING:
    from thresher.ledger import Ledger
    from thresher.models.dense import DenseClassifier, DenseRegressor
    from thresher.models.sparse import SparseClassifier, SparseRegressor

    Estimator = SparseRegressor | SparseClassifier | DenseRegressor | DenseClassifier

SPARSE, DENSE = get_args(SparseName), get_args(DenseName)
NAMES = list(dict.fromkeys((*SPARSE, *DENSE)))
HELP: dict[str, str] = {each.name: each.metadata.get("help", "") for each in fields(SparseOptions)}
SPARSE_ONLY = set(HELP) - {each.name for each in fields(DenseOptions)}


class TaskKind(StrEnum):
    """What the target is: a number, or a class."""

    REGRESSION = "regression"
    CLASSIFICATION = "classification"


Epsilon = Annotated[float, typer.Option(help=HELP["epsilon"])]
Delta = Annotated[float | None, typer.Option(help=HELP["delta"])]
TargetBound = Annotated[
    str | None, typer.Option(help="Public range of the target: B for [-B, B], or LOW,HIGH. Regression only.")
]
TaskOption = Annotated[TaskKind, typer.Option(help="What to fit.")]
AlgorithmOption = Annotated[
    str,
    typer.Option(
        help=f"Sparse: {', '.join(SPARSE)}. With a coefficient for every column: {', '.join(NAMES[len(SPARSE) :])}.",
        autocompletion=lambda: NAMES,
    ),
]
Report = Annotated[Path | None, typer.Option(help="Write a page with tables and plots here.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")]
LedgerUrl = Annotated[
    str | None,
    typer.Option("--ledger", help="The account book that pays: a file such as budget.db, or postgresql://..."),
]
Dataset = Annotated[str | None, typer.Option(help=HELP["dataset"])]
Analyst = Annotated[str | None, typer.Option(help="Who asks, where the ledger grants analyst by analyst.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Data = Annotated[
    Path,
    typer.Argument(
        help=".csv, .parquet, .svm/.libsvm, .npz (a SciPy CSR matrix with its target), or a folder that holds a table "
        "in parts, all .parquet or all .svm/.libsvm; it may be larger than memory."
    ),
]


def estimator_for(task: TaskKind, target_bound: str | None, **params: Any) -> Estimator:
    """The front door for a task and an algorithm, unfitted."""
    from thresher.models.dense import DenseClassifier, DenseRegressor
    from thresher.models.sparse import SparseClassifier, SparseRegressor

    classifier: type[SparseClassifier | DenseClassifier] = SparseClassifier
    regressor: type[SparseRegressor | DenseRegressor] = SparseRegressor
    if params.get("algorithm") in DENSE and params["algorithm"] not in SPARSE:  # what both have makes a sparse model
        classifier, regressor = DenseClassifier, DenseRegressor
        params = {name: value for name, value in params.items() if name not in SPARSE_ONLY}
    if task is TaskKind.CLASSIFICATION:
        if target_bound is not None:
            raise ValueError(f"--target-bound={target_bound}: class labels need no bound; leave it out")
        return classifier(**params)
    return regressor(target_bound=_range(target_bound), **params)


def ledger_of(url: str | None, analyst: str | None) -> Ledger | None:
    """The ledger that pays, if there is one."""
    if url is None and analyst is not None:
        raise ValueError(f"--analyst={analyst!r} has a meaning only with --ledger; leave it out")
    if url is None:
        return None
    from thresher.ledger import Ledger

    return Ledger(url, analyst=analyst)


def _range(text: str | None) -> float | tuple[float, float] | None:
    """B or LOW,HIGH as numbers."""
    if text is None:
        return None
    try:
        numbers = [float(part) for part in text.split(",")]
        low, high = numbers if len(numbers) == 2 else (-numbers[0], numbers[0])
        return (low, high)
    except (ValueError, TypeError):
        raise ValueError(f"--target-bound={text!r} must be a number B or a pair LOW,HIGH") from None
