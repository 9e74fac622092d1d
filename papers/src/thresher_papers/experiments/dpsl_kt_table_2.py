"""Table 2 of the DPSL-KT paper: numbers from many sparse words, with a public half."""

from __future__ import annotations

from thresher_papers.experiments.text import TextStudy

__all__ = ["EXPERIMENT"]

STUDY = TextStudy(
    sets=("e2006", "imdb_rating"),
    columns=25_000,
    sparsity=2000,
    delta=1e-5,
    epsilons=(0.8, 1.5, 2.5, 3.5, 4.5),
    halved=True,
    seeds=10,
    printed={
        "IGHT": {0.8: 0.8541, 1.5: 0.8541, 2.5: 0.8541, 3.5: 0.8541, 4.5: 0.8541},
        "Frank-Wolfe": {0.8: 4.471, 1.5: 2.004, 2.5: 1.535, 3.5: 1.206, 4.5: 1.099},
        "Two stage": {0.8: 4.022, 1.5: 1.803, 2.5: 1.326, 3.5: 1.107, 4.5: 1.053},
        "DP-IGHT": {0.8: 3.731, 1.5: 1.687, 2.5: 1.304, 3.5: 1.067, 4.5: 0.968},
        "DPSL-KT": {0.8: 1.227, 1.5: 1.178, 2.5: 1.065, 3.5: 0.971, 4.5: 0.952},
    },
    errata=("E-1", "E-5", "E-9", "E-10"),
)

EXPERIMENT = STUDY.experiment(
    "x7",
    "E2006-tfidf with a public half: knowledge transfer",
    "DPSL-KT paper, Table 2 (thesis, Table 3.2)",
    "DPSL-KT is far better than all others at epsilon .8.",
)
