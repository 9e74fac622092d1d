"""KDDCup99 in the thesis' chapter 6: logistic regression of many parties."""

from __future__ import annotations

from thresher_papers.experiments.chapter6_figures import Printed, chapter6_experiment

__all__ = ["EXPERIMENT"]

EXPERIMENT = chapter6_experiment(
    "x21",
    "KDDCup99: logistic regression of many parties",
    "thesis, Figures 6.1, 6.3 and 6.4",
    data="kddcup99",
    records=50_000,
    printed=Printed(gap=1e-3, loss=1e-4),
    claim="At m = 1000 MPC Grad P has a gap of about 1e-3 and an accuracy loss of about 1e-4; MPC Out P is in the same "
    "range.",
    about="50,000 training and 20,000 test rows, drawn from the same 70,000; is a connection an attack?",
    error="share of test rows misclassified",
)
