"""Options that several commands share, and the estimator that they describe."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thresher.privacy.budget import Adjacency

if TYPE_CHECKING:
    from thresher.ledger import Ledger
    from thresher.models.dense import DenseClassifier, DenseRegressor
    from thresher.models.sparse import SparseClassifier, SparseRegressor

    Estimator = SparseRegressor | SparseClassifier | DenseRegressor | DenseClassifier

SPARSE = (
    "pursuit", "dp-ight", "peeling", "output-perturbation", "two-stage", "dpsl-kt", "frank-wolfe", "noisy-frank-wolfe",
    "ight",
)  # fmt: skip
DENSE = (
    "dp-srm", "dp-lssgd", "dp-lsadam", "dp-sgd", "dp-adam", "dp-gd", "dp-agd", "rrpsgd", "storm", "sgd", "lssgd",
)  # fmt: skip
"""The registered algorithms by name, for help that imports none of them; a test compares them with the registry."""


class TaskKind(StrEnum):
    REGRESSION = "regression"
    CLASSIFICATION = "classification"


Sparsity = Annotated[int, typer.Option(help="How many features the model may use.")]
Epsilon = Annotated[float, typer.Option(help="Privacy budget. Smaller is more private; 0.5 to 8 is usual.")]
Delta = Annotated[float | None, typer.Option(help="Probability with which epsilon may fail. Default: 1/n^2.")]
FeatureBound = Annotated[float | None, typer.Option(help="Public bound on every |x_ij|; larger values are clipped.")]
RowBound = Annotated[
    float | None, typer.Option(help="Public bound on every row's l2 norm; longer rows are scaled down.")
]
TargetBound = Annotated[
    str | None, typer.Option(help="Public range of the target: B for [-B, B], or LOW,HIGH. Regression only.")
]
TaskOption = Annotated[TaskKind, typer.Option(help="What to fit.")]
AlgorithmOption = Annotated[
    str,
    typer.Option(
        help=f"Sparse: auto, {', '.join(SPARSE)}. With a coefficient for every column: {', '.join(DENSE)}.",
        autocompletion=lambda: ["auto", *SPARSE, *DENSE],
    ),
]
AdjacencyOption = Annotated[
    str,
    typer.Option(
        help="replace-one: one row has other values. add-remove: one row more.", autocompletion=lambda: list(Adjacency)
    ),
]
Intercept = Annotated[bool, typer.Option(help="Fit a constant as well (0.8 % more noise).")]
Report = Annotated[Path | None, typer.Option(help="Write a page with tables and plots here.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")]
LedgerUrl = Annotated[
    str | None,
    typer.Option("--ledger", help="The account book that pays: a file such as budget.db, or postgresql://..."),
]
Dataset = Annotated[str | None, typer.Option(help="The name of DATA in the ledger.")]
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
    if params.get("algorithm") in DENSE:
        classifier, regressor = DenseClassifier, DenseRegressor
        del params["sparsity"]
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
