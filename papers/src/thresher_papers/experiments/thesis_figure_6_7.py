"""Adult in the thesis' chapter 6: logistic regression of many parties."""

from __future__ import annotations

from thresher_papers.experiments.chapter6_figures import Printed, chapter6_experiment

__all__ = ["EXPERIMENT"]

EXPERIMENT = chapter6_experiment(
    "x23",
    "Adult: logistic regression of many parties",
    "thesis, Figures 6.7 to 6.9",
    data="adult",
    records=30_000,
    printed=Printed(gap=1e-2, loss=1e-4),
    claim="MPC Grad P has a gap of about 1e-2 and an accuracy loss of about 1e-4 for every m.",
    about="30,000 of the training rows and the official test rows; does a person earn more than 50,000 dollars a year?",
    error="share of test rows misclassified",
)
