"""A stand-in for KDDCup98 in the thesis' chapter 6: ridge regression of many parties."""

from __future__ import annotations

from thresher_papers.experiments.chapter6_figures import DELTAS, TOP, Means, Printed, chapter6_experiment
from thresher_papers.experiments.experiment import Part, Verdict

__all__ = ["EXPERIMENT"]

STAND_IN = "On the stand-in for KDDCup98 (diabetes130): "


def _of_one_record(gaps: Means, parties: int) -> list[Part]:
    """What the thesis says of 50,000 parties, at its delta."""
    if not parties:
        return []
    objective, output, pathak = (gaps[name, parties, DELTAS[0]] for name in ("Local Obj P", "Local Out P", "Pathak"))
    return [
        Verdict(
            f"With one record for each party Local Obj P is worse than Local Out P: gaps of {objective} and {output}.",
            objective.value > output.value,
            ("E-22", "E-27"),
        ),
        Verdict(
            f"With one record for each party Pathak is off the plot: a gap of {pathak}, above {TOP:g}.",
            pathak.value > TOP,
        ),
    ]


EXPERIMENT = chapter6_experiment(
    "x22",
    "A stand-in for KDDCup98 (diabetes130, length of stay): ridge regression of many parties",
    "thesis, Figures 6.2, 6.5 and 6.6",
    data="diabetes130_stay",
    records=50_000,
    printed=Printed(gap=1e-3, loss=1e-2),
    claim="MPC Grad P has a gap of about 1e-3 and a loss of about 1e-2; with 50,000 parties Local Obj P is worse than "
    "Local Out P, and Pathak is off the plot.",
    about="STAND-IN: KDDCup98 is not among our data. The length of a patient's first stay in 130 hospitals stands in "
    "for it, one row for each patient, days 1 to 14 taken to -1 to 1, residuals clipped at 1 (the thesis' G = 1 does "
    "not hold for the squared loss: erratum E-22). The thesis' numbers are of KDDCup98 after a PCA to 95 features, "
    "which nobody paid for.",
    error="mean squared error",
    label=STAND_IN,
    more=_of_one_record,
)
