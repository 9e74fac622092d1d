"""LDP-IHT, whose experiments stand in the appendix of the LDP paper: whole records are private."""

from __future__ import annotations

from collections.abc import Sequence

from thresher_papers.experiments.experiment import Cell, Experiment, Grid, Part, Row, Verdict
from thresher_papers.experiments.local_model import (
    EXACT,
    METHODS,
    Panel,
    cells_of,
    chart,
    exponents,
    grid,
    panel_means,
    run,
)

__all__ = ["EXPERIMENT"]

BASE = {"n": 400_000, "d": 16, "s": 3, "epsilon": 0.5}
PANELS = (
    Panel("theorem", "n", (100_000, 200_000, 400_000, 800_000), BASE),
    Panel("theorem", "d", (8, 16, 32, 64), BASE),
    Panel("theorem", "epsilon", (0.25, 0.5, 0.7, 1.0), BASE),
)
QUICK = (
    Panel("theorem", "n", (100_000, 400_000), BASE),
    Panel("theorem", "d", (8, 16, 64), BASE),
    Panel("theorem", "epsilon", (0.25, 0.5, 1.0), BASE),
)
CLAIMS = {"n": -1.0, "d": 1.0, "epsilon": -2.0}
LOOPS = [method for method in METHODS["records"] if method != EXACT]
NAMES = {"n": "n", "d": "p", "epsilon": "epsilon"}
FAR = 3.0  # standard errors


def cells(quick: bool) -> list[Cell]:
    return cells_of("records", QUICK, 8) if quick else cells_of("records", PANELS, 12)


def show(rows: Sequence[Row]) -> list[Part]:
    parts: list[Part] = [*(_rate(rows, panel) for panel in PANELS), _better(rows), _budget(rows)]
    parts += [chart(rows, panel) for panel in PANELS] + [_exponents(rows)]
    return parts + [grid(rows, panel) for panel in PANELS]


def _rate(rows: Sequence[Row], panel: Panel) -> Verdict:
    found, claim = exponents(rows, panel, LOOPS[1]), CLAIMS[panel.axis]
    return Verdict(
        f"The squared error of the paper's loop goes like {NAMES[panel.axis]}^{claim:g}, as its bound says: measured "
        f"exponent {found} (it holds within {FAR:g} standard errors).",
        found.deviates(claim) <= FAR,
        ("E-14",),
    )  # fmt: skip


def _better(rows: Sequence[Row]) -> Verdict:
    ratios = [
        points[LOOPS[1]][value].value / points[LOOPS[0]][value].value
        for points in (panel_means(rows, panel) for panel in PANELS)
        for value in points[LOOPS[0]]
    ]
    return Verdict(
        f"The default (residuals clipped lower, a randomiser of least error, steps that follow the reports) has less "
        f"error than the paper's loop at every point: {min(ratios):.2g} to {max(ratios):.2g} times less.",
        min(ratios) > 1,
    )


def _budget(rows: Sequence[Row]) -> Verdict:
    mine = [row for row in rows if row["method"] != EXACT]
    worst = max(row["real epsilon"] / row["epsilon"] for row in mine)
    return Verdict(
        f"Nobody reports twice, so all rounds together cost epsilon once: at most {worst:.3g} times what is claimed.",
        worst <= 1,
    )


def _exponents(rows: Sequence[Row]) -> Grid:
    lines = [
        (NAMES[panel.axis], CLAIMS[panel.axis], *(str(exponents(rows, panel, loop)) for loop in LOOPS))
        for panel in PANELS
    ]
    return Grid("Exponents of the squared error, with one standard error", ("in", "claimed", *LOOPS), lines)


EXPERIMENT = Experiment(
    "x11",
    "Sparse regression with private records",
    "LDP paper (Wang and Xu, ICML 2019), LDP-IHT; its experiments stand in an appendix that is not at hand",
    "The squared error grows like p and falls like 1/(n epsilon^2).",
    "A reconstruction: x uniform on {-1, 1}^p, theta* with s=3 coefficients +-1/sqrt(3), noise U[-.05, .05], targets "
    "within sqrt(s)+.05, which no target exceeds. Each person reports one randomised gradient in their life; the "
    "residual is clipped, so that the radius that the randomiser needs is real (erratum E-14). The paper's loop: two "
    "rounds, step 1, residuals clipped at 1.5. Error bars: one standard error.",
    cells,
    run,
    show,
)
