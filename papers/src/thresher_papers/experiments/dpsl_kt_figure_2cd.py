"""The second figure of the DPSL-KT paper: sparse logistic regression."""

from __future__ import annotations

from thresher_papers.experiments.synthetic import Size, synthetic_experiment

__all__ = ["EXPERIMENT"]

EXPERIMENT = synthetic_experiment(
    "x6",
    "Sparse logistic regression with knowledge transfer",
    "DPSL-KT paper, Figure 2c,d (thesis, Figure 3.2)",
    law="dpsl-kt",
    loss="logistic",
    sizes=(Size("(i)", 800, 1000, 10, seeds=20), Size("(ii)", 4000, 5000, 50, seeds=10)),
    epsilons=(2.0, 4.0, 6.0, 8.0, 10.0),
    errata=("E-2", "E-4", "E-5", "E-11"),
    claim="DPSL-KT is accurate for large epsilon and better than DP-IGHT.",
)
