"""Table 3 of the DPSL-KT paper: classes from many sparse words, with a public half."""

from __future__ import annotations

from thresher_papers.experiments.text import TextStudy

__all__ = ["EXPERIMENT"]

STUDY = TextStudy(
    sets=("rcv1", "imdb"),
    columns=20_000,
    sparsity=500,
    delta=1e-5,
    epsilons=(2.0, 4.0, 6.0, 8.0),
    halved=True,
    seeds=10,
    printed={
        "IGHT": {2.0: 0.0645, 4.0: 0.0645, 6.0: 0.0645, 8.0: 0.0645},
        "Frank-Wolfe": {2.0: 0.1381, 4.0: 0.1134, 6.0: 0.0978, 8.0: 0.0882},
        "Two stage": {2.0: 0.1272, 4.0: 0.1061, 6.0: 0.0949, 8.0: 0.0866},
        "DP-IGHT": {2.0: 0.1179, 4.0: 0.1026, 6.0: 0.0922, 8.0: 0.0824},
        "DPSL-KT": {2.0: 0.1105, 4.0: 0.0974, 6.0: 0.0885, 8.0: 0.0787},
    },
    errata=("E-2", "E-5", "E-11"),
)

EXPERIMENT = STUDY.experiment(
    "x8",
    "RCV1 with a public half: knowledge transfer",
    "DPSL-KT paper, Table 3 (thesis, Table 3.3)",
    "DPSL-KT is better than all others at every epsilon.",
)
