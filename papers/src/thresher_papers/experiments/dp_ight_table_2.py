"""Table 2 of the DP-IGHT paper: numbers from many sparse words."""

from __future__ import annotations

from thresher_papers.experiments.text import TextStudy

__all__ = ["EXPERIMENT"]

STUDY = TextStudy(
    sets=("e2006", "imdb_rating"),
    columns=50_000,
    sparsity=2000,
    delta=0.01,
    epsilons=(2.0, 4.0, 6.0, 8.0, 10.0),
    halved=False,
    seeds=10,
    printed={
        "IGHT": {2.0: 0.785, 4.0: 0.785, 6.0: 0.785, 8.0: 0.785, 10.0: 0.785},
        "Frank-Wolfe": {2.0: 1.514, 4.0: 1.32, 6.0: 1.21, 8.0: 1.105, 10.0: 1.094},
        "Two stage": {2.0: 1.286, 4.0: 1.072, 6.0: 1.042, 8.0: 0.997, 10.0: 0.986},
        "DP-IGHT": {2.0: 1.057, 4.0: 0.89, 6.0: 0.854, 8.0: 0.823, 10.0: 0.81},
    },
    errata=("E-1", "E-3", "E-4"),
)

EXPERIMENT = STUDY.experiment(
    "x3",
    "E2006-tfidf: sparse linear regression on texts",
    "DP-IGHT paper, Table 2 (thesis, Table 2.2)",
    "DP-IGHT is better than Frank-Wolfe and two-stage at every epsilon.",
)
