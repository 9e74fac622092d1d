"""What users choose of a fit: one field each, which constructors, files and the command line take from here.

Imports nothing that takes long: the command line reads names, defaults and help from it before it runs anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from thresher.algorithms import Algorithm
    from thresher.data.schema import Schema
    from thresher.ledger import Ledger
    from thresher.privacy.arrays import Floats

    Bound = float | Sequence[float] | Floats | None
    """One number, or one per column."""

    Target = float | tuple[float, float] | None
    """B for [-B, B], or (low, high)."""

    Labels = Sequence[Any] | NDArray[Any] | None
    LedgerLike = Ledger | str | Path | None
    SchemaLike = Schema | str | Path | Mapping[str, Any] | None
    LogisticName = Literal["logistic", "nonconvex-logistic"]
    Seed = int | None

__all__ = ["AdjacencyName", "CentralOptions", "DenseName", "DenseOptions", "FitOptions", "SparseName", "SparseOptions"]

AdjacencyName = Literal["replace-one", "add-remove"]
SparseName = Literal[
    "auto", "newton", "pursuit", "dp-ight", "screened-ight", "peeling", "output-perturbation", "two-stage", "dpsl-kt",
    "frank-wolfe", "noisy-frank-wolfe", "ight",
]  # fmt: skip
DenseName = Literal[
    "auto", "newton", "dp-srm", "dp-lssgd", "dp-lsadam", "dp-sgd", "dp-adam", "dp-gd", "dp-agd", "rrpsgd",
    "objective-perturbation", "storm", "sgd", "lssgd",
]  # fmt: skip


def _help(text: str, **other: object) -> dict[str, object]:
    """What the command line says of a field, which makes it an option there: its ``kind`` if that is another than the
    field's type, its ``flag`` if it has another name."""
    return {"help": text, **other}


@dataclass(eq=False, repr=False, kw_only=True)
class FitOptions:
    """Of every fit: its budget, who pays, and how it runs."""

    epsilon: float = field(default=1.0, metadata=_help("Privacy budget. Smaller is more private; 0.5 to 8 is usual."))
    delta: float | None = field(
        default=None, metadata=_help("Probability with which epsilon may fail. Default: 1/n^2.")
    )
    ledger: LedgerLike = None
    dataset: str | None = field(default=None, metadata=_help("The name of DATA in the ledger."))
    random_state: Seed = None
    verbose: int = 0


@dataclass(eq=False, repr=False, kw_only=True)
class CentralOptions(FitOptions):
    """Of a fit by a curator, who holds the rows."""

    feature_bound: Bound = field(
        default=None, metadata=_help("Public bound on every |x_ij|; larger values are clipped.", kind=float | None)
    )
    adjacency: AdjacencyName = field(
        default="replace-one",
        metadata=_help("replace-one: one row has other values. add-remove: one row more.", kind=AdjacencyName),
    )
    n_public: int | None = None
    hardened: bool = field(
        default=True,
        metadata=_help("Noise on an exact grid: floating point cannot leak. Without, a grade lower."),
    )


@dataclass(eq=False, repr=False, kw_only=True)
class ModelOptions(CentralOptions):
    """Of a linear model."""

    row_bound: float | None = field(
        default=None, metadata=_help("Public bound on every row's l2 norm; longer rows are scaled down.")
    )
    fit_intercept: bool = field(
        default=True, metadata=_help("Fit a constant as well (0.8 % more noise).", flag="intercept")
    )
    schema: SchemaLike = None


@dataclass(eq=False, repr=False)
class SparseOptions(ModelOptions):
    """Of a sparse model."""

    sparsity: int = field(default=10, metadata=_help("How many features the model may use."))
    algorithm: SparseName | Algorithm = field(default="auto", kw_only=True)


@dataclass(eq=False, repr=False)
class DenseOptions(ModelOptions):
    """Of a model with a coefficient for every column."""

    epsilon: float = 1.0
    delta: float | None = None
    algorithm: DenseName | Algorithm = field(default="auto", kw_only=True)
    penalty: float = field(default=0.0, kw_only=True)
