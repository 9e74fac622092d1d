"""The first figure of the DPSL-KT paper: sparse linear regression."""

from __future__ import annotations

from thresher_papers.experiments.synthetic import Size, synthetic_experiment

__all__ = ["EXPERIMENT"]

EXPERIMENT = synthetic_experiment(
    "x5",
    "Sparse linear regression with knowledge transfer",
    "DPSL-KT paper, Figure 2a,b (thesis, Figure 3.2)",
    law="dpsl-kt",
    loss="squared",
    sizes=(
        Size("(i)", 800, 1000, 10, seeds=20, close_from=5.0),
        Size("(ii)", 4000, 5000, 50, seeds=10, close_from=2.0),
    ),
    epsilons=(0.8, 1.5, 2.0, 3.0, 4.0, 5.0),
    errata=("E-4", "E-5", "E-6", "E-9", "E-10"),
    claim="DPSL-KT is close to non-private, and fine at epsilon .8 where all others fail.",
)
