"""Table 6.1 of the thesis with correct noise: what the printed noise costs, what would be sound, what is drawn."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from dp_accounting.pld import privacy_loss_distribution
from numpy.typing import NDArray

from accuracy import header, row
from parties import open_vault, plan_for
from thresher.accounting import gaussian_epsilon
from thresher.algorithms import DPGD, ObjectivePerturbation, OutputPerturbation
from thresher.budget import Budget
from thresher.clipping import Bounds
from thresher.federated.parties import DataSets
from thresher.federated.protocols import Noise
from thresher.federated.vault import parties_of
from thresher.plan import Plan, Problem
from thresher.randomness import NoiseSource

Floats = NDArray[np.float64]

M, EACH, RIDGE, EPSILON, G, ROUNDS, D = 100, 500, 0.01, 0.5, 1.0, 100, 122  # 122 columns: KDDCup99 in the thesis
DELTAS, DRAWS, FINENESS = (1e-3, 1e-6), 1000, 400
SEEDS = count()


class Column(NamedTuple):
    """A method of the table: its formula, the sd that the thesis measured, and how it runs here."""

    printed: float  # scale of Laplace noise, sd of Gaussian noise
    thesis: float
    law: str
    shift_over_scale: float  # how far one record moves what is released, in l2 norm, over that scale
    algorithm: Any
    noise: Noise


GRADIENT, MINIMISER, OBJECTIVE = (
    DPGD(passes=ROUNDS, clip=G), OutputPerturbation(ridge=RIDGE, clip=G), ObjectivePerturbation(ridge=RIDGE, clip=G),
)  # fmt: skip
_ALONE, _GRADIENT = 2 * G / (EACH * RIDGE * EPSILON), math.sqrt(2 * ROUNDS) * G / (EACH * EPSILON)
_ROOT = math.sqrt(M)
COLUMNS = {
    "Pathak": Column(_ALONE, 1.150, "L", EPSILON / M, MINIMISER, "smallest"),
    "Local Out P": Column(_ALONE / _ROOT, 0.112, "L", EPSILON, MINIMISER, "separate"),
    "Local Obj P": Column(_ALONE * RIDGE, 0.0116, "L", EPSILON, OBJECTIVE, "separate"),
    "Local Grad P": Column(_GRADIENT / _ROOT, 0.00563, "N", math.sqrt(2 / ROUNDS) * EPSILON, GRADIENT, "separate"),
    "MPC Out P": Column(_ALONE / M, 0.0122, "L", EPSILON, MINIMISER, "joint"),
    "MPC Grad P": Column(_GRADIENT / M, 0.000572, "N", math.sqrt(2 / ROUNDS) * EPSILON, GRADIENT, "joint"),
}


# -- what the printed noise costs -----------------------------------------------------------------------------------


def laplace_epsilon(shift: float, delta: float) -> float:
    """Of independent Laplace(1) coordinates and neighbours ``shift`` apart in l2 norm, in the worst of the directions
    with k equal entries: each moves by shift / sqrt(k). By privacy loss distributions, rounded up."""
    worst = 0.0
    for k in sorted({*(2**j for j in range(10) if 2**j < D), D}):
        each = shift / math.sqrt(k)
        one = privacy_loss_distribution.from_laplace_mechanism(1 / each, value_discretization_interval=each / FINENESS)
        worst = max(worst, one.self_compose(k).get_epsilon_for_delta(delta))
    return worst


def real_cost(column: Column, delta: float) -> float:
    if column.law == "N":
        return gaussian_epsilon(math.sqrt(ROUNDS) * column.shift_over_scale, delta)
    return laplace_epsilon(column.shift_over_scale, delta)


def pure_cost(column: Column) -> str:
    """At delta = 0: of independent Laplace coordinates, sqrt(d) times what an l2 sensitivity suggests."""
    return f"{math.sqrt(D) * column.shift_over_scale:.3g}" if column.law == "L" else "none"


# -- what would be sound, and what is drawn -------------------------------------------------------------------------


def answers(column: Column, delta: float) -> tuple[Floats, float]:
    """DRAWS coordinates of what is released about rows of zeros, which is the noise; and the sd it should have."""
    sizes = (EACH,) * M
    problem = Problem(M * EACH, D, D, "logistic", Bounds(row=1.0), intercept=False)
    plan = plan_for(column.algorithm, column.noise, problem, Budget(EPSILON, delta), sizes)
    drawn: list[Floats] = []
    for _ in range(math.ceil(DRAWS / D)):
        noise = NoiseSource(next(SEEDS))
        parties = parties_of(DataSets([np.zeros((EACH, D))] * M), np.zeros(M * EACH), plan, noise, sizes)
        vault = open_vault(column.noise, parties, sizes, plan, noise)
        drawn.append(asked(column.algorithm, plan, vault))
    copies = M if column.noise == "separate" else 1  # of which the mean is released
    return np.concatenate(drawn)[:DRAWS], vault.answers[-1].scale / math.sqrt(copies)


def asked(algorithm: Any, plan: Plan, vault: Any) -> Floats:
    """One answer; of a perturbed objective, its linear term: as the rows are zeros, -ridge times the minimiser."""
    if isinstance(algorithm, DPGD):
        answer: Floats = vault.gradient(plan.problem.origin(), plan.releases[0], G)
        return answer
    found: Floats = algorithm.run(vault)
    return found * (plan.settings["ridge"] if isinstance(algorithm, ObjectivePerturbation) else 1.0)


def in_thousandths(value: float) -> str:
    return f"{1e3 * value:.3g}" if value < 1 else f"{1e3 * value:.0f}"


def main() -> None:
    print(
        f"\nTable 6.1: m={M}, n(1)={EACH}, lambda={RIDGE:g}, epsilon={EPSILON:g}, G={G:g}, T={ROUNDS}, d={D}; x 1e-3\n"
    )
    header("", *COLUMNS)

    def line(title: str, cell: Callable[[Column], str]) -> None:
        row(title, *(cell(column) for column in COLUMNS.values()))

    line("printed scale (L: Laplace, N: Gaussian)", lambda c: f"{c.law} {in_thousandths(c.printed)}")
    line("its sd", lambda c: in_thousandths(c.printed * (math.sqrt(2) if c.law == "L" else 1)))
    line("sd of 1000 draws, as the thesis prints it", lambda c: in_thousandths(c.thesis))
    line("epsilon of the printed noise at delta 0", pure_cost)
    for delta in DELTAS:
        costs = (f"{real_cost(column, delta):.3g}" for column in COLUMNS.values())
        row(f"epsilon of the printed noise at delta {delta:g}", *costs)
    for delta in DELTAS:
        found = [answers(column, delta) for column in COLUMNS.values()]
        row(f"**sound sd** at delta {delta:g}", *(f"**{in_thousandths(scale)}**" for _, scale in found))
        row(f"sd of {DRAWS} draws of it", *(in_thousandths(noise.std()) for noise, _ in found))
    print(
        "\nLocal Obj P: of the linear term in the objective, the mean of all parties'; the model's noise is that over "
        f"lambda. What its printed noise costs is without the curvature's log(1 + 1/(4 n lambda)) = "
        f"{math.log1p(1 / (4 * EACH * RIDGE)):.3g}."
    )


if __name__ == "__main__":
    main()
