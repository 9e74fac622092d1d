"""The second figure of the DP-IGHT paper: sparse logistic regression."""

from __future__ import annotations

from thresher_papers.experiments.synthetic import Size, synthetic_experiment

__all__ = ["EXPERIMENT"]

EXPERIMENT = synthetic_experiment(
    "x2",
    "Sparse logistic regression, relative error against epsilon",
    "DP-IGHT paper, Figure 1c,d (thesis, Figure 2.1)",
    law="dp-ight",
    loss="logistic",
    sizes=(Size("(i)", 1000, 1000, 10, seeds=20), Size("(ii)", 5000, 5000, 30, seeds=10)),
    epsilons=(2.0, 4.0, 6.0, 8.0, 10.0),
    errata=("E-2", "E-4"),
    claim="DP-IGHT is accurate for large epsilon and better than the other private methods.",
)
