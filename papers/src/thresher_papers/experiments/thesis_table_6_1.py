"""Table 6.1 of the thesis with correct noise: what the printed noise costs, what would be sound, what is drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from thresher.algorithms import DPGD, ObjectivePerturbation, OutputPerturbation
from thresher.federated.protocols import Noise
from thresher.federated.vault import DataSets, parties_of
from thresher.privacy.arrays import Floats
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.privacy.conversions import gaussian_epsilon
from thresher.privacy.plan import Plan
from thresher.vaults.losses import LOGISTIC
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource
from thresher_papers.experiments.experiment import Cell, Experiment, Grid, Note, Part, Row, Verdict
from thresher_papers.experiments.parties import open_vault, plan_for
from thresher_papers.experiments.rows import values_of

__all__ = ["COLUMNS", "EXPERIMENT", "PRINTED"]


M, EACH, RIDGE, EPSILON, G, ROUNDS, D = 100, 500, 0.01, 0.5, 1.0, 100, 122  # 122 columns: KDDCup99 in the thesis
DELTAS, DRAWS, FINENESS = (1e-3, 1e-6), 1000, 400
SPREAD = 5 / math.sqrt(2 * DRAWS)  # of an sd of so many draws: five of its standard errors

PRINTED = {
    "Pathak": (0.800, 1.150), "Local Out P": (0.0800, 0.112), "Local Obj P": (0.00800, 0.0116),
    "Local Grad P": (0.00566, 0.00563), "MPC Out P": (0.00800, 0.0122), "MPC Grad P": (0.00057, 0.000572),
}  # fmt: skip
"""Table 6.1: the scale, and the sd of 1000 samples."""


class Column(NamedTuple):
    """A method of the table: its formula, and how it runs here."""

    formula: float  # scale of Laplace noise, sd of Gaussian noise
    law: str
    shift_over_scale: float  # how far one record moves what is released, in l2 norm, over that scale
    algorithm: Any
    noise: Noise

    @property
    def sd(self) -> float:
        return self.formula * (math.sqrt(2) if self.law == "Laplace" else 1)


GRADIENT, MINIMISER, OBJECTIVE = (
    DPGD(passes=ROUNDS, clip=G), OutputPerturbation(ridge=RIDGE, clip=G), ObjectivePerturbation(ridge=RIDGE, clip=G),
)  # fmt: skip
_ALONE, _GRADIENT = 2 * G / (EACH * RIDGE * EPSILON), math.sqrt(2 * ROUNDS) * G / (EACH * EPSILON)
_ROOT, _TIMES = math.sqrt(M), math.sqrt(2 / ROUNDS)
COLUMNS = {
    "Pathak": Column(_ALONE, "Laplace", EPSILON / M, MINIMISER, "smallest"),
    "Local Out P": Column(_ALONE / _ROOT, "Laplace", EPSILON, MINIMISER, "separate"),
    "Local Obj P": Column(_ALONE * RIDGE, "Laplace", EPSILON, OBJECTIVE, "separate"),
    "Local Grad P": Column(_GRADIENT / _ROOT, "Gaussian", _TIMES * EPSILON, GRADIENT, "separate"),
    "MPC Out P": Column(_ALONE / M, "Laplace", EPSILON, MINIMISER, "joint"),
    "MPC Grad P": Column(_GRADIENT / M, "Gaussian", _TIMES * EPSILON, GRADIENT, "joint"),
}


def cells(quick: bool) -> list[Cell]:
    """1000 draws of each law, as in the thesis; other bits for each."""
    every = [(method, delta) for method in COLUMNS for delta in DELTAS]
    return [{"method": method, "delta": delta, "seed": seed} for seed, (method, delta) in enumerate(every)]


def run(method: str, delta: float, seed: int) -> list[Row]:
    column = COLUMNS[method]
    noise, sound = answers(column, delta, seed)
    return [{
        "method": method, "delta": delta, "seed": seed, "law": column.law, "formula": column.formula,
        "printed sd": column.sd, "cost at delta 0": pure_cost(column), "cost": real_cost(column, delta),
        "sound sd": sound, "drawn sd": float(noise.std()),
    }]  # fmt: skip


# -- what the printed noise costs -----------------------------------------------------------------------------------


@cache  # three methods have the same
def laplace_epsilon(shift: float, delta: float, dimension: int = D) -> float:
    """Of independent Laplace(1) coordinates and neighbours ``shift`` apart in l2 norm, in the worst of the directions
    with k equal entries: each moves by shift / sqrt(k). By privacy loss distributions, rounded up."""
    from dp_accounting.pld import privacy_loss_distribution

    worst = 0.0
    for k in sorted({*(2**j for j in range(10) if 2**j < dimension), dimension}):
        each = shift / math.sqrt(k)
        one = privacy_loss_distribution.from_laplace_mechanism(1 / each, value_discretization_interval=each / FINENESS)
        worst = max(worst, one.self_compose(k).get_epsilon_for_delta(delta))
    return worst


def real_cost(column: Column, delta: float) -> float:
    if column.law == "Gaussian":
        return gaussian_epsilon(math.sqrt(ROUNDS) * column.shift_over_scale, delta)
    return laplace_epsilon(column.shift_over_scale, delta)


def pure_cost(column: Column) -> float:
    """At delta = 0: of independent Laplace coordinates, sqrt(d) times what an l2 sensitivity suggests."""
    return math.sqrt(D) * column.shift_over_scale if column.law == "Laplace" else math.inf


# -- what would be sound, and what is drawn -------------------------------------------------------------------------


def answers(column: Column, delta: float, seed: int) -> tuple[Floats, float]:
    """DRAWS coordinates of what is released about rows of zeros, which is the noise; and the sd it should have."""
    sizes = (EACH,) * M
    problem = LinearProblem(M * EACH, D, Bounds(row=1.0), sparsity=D, loss=LOGISTIC, intercept=False)
    plan = plan_for(column.algorithm, column.noise, problem, Budget(EPSILON, delta), sizes)
    drawn: list[Floats] = []
    noise = NoiseSource(seed)
    for _ in range(math.ceil(DRAWS / D)):
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


# -- what the rows show ---------------------------------------------------------------------------------------------


def show(rows: Sequence[Row]) -> list[Part]:
    deltas, by = values_of(rows, "delta"), {(row["method"], row["delta"]): row for row in rows}
    methods = values_of(rows, "method")

    def line(title: str, what: str, delta: float = deltas[0], told: Callable[[Any], str] = _thousandths) -> list[str]:
        return [title, *(told(by[method, delta][what]) for method in methods)]

    lines = [
        ["thesis: scale", *(_thousandths(PRINTED[method][0]) for method in methods)],
        ["thesis: sd of 1000 draws", *(_thousandths(PRINTED[method][1]) for method in methods)],
        line("its law", "law", told=str),
        line("its formula: scale", "formula"),
        line("its formula: sd", "printed sd"),
        line("epsilon of that noise, delta 0", "cost at delta 0", told=_cost),
    ]
    for delta in deltas:
        lines += [
            line(f"epsilon of that noise, delta {delta:g}", "cost", delta, _cost),
            line(f"sound sd, delta {delta:g}", "sound sd", delta),
            line(f"sd of {DRAWS} draws of it, delta {delta:g}", "drawn sd", delta),
        ]
    title = f"x 1e-3; m = {M}, n(1) = {EACH}, lambda = {RIDGE:g}, epsilon {EPSILON:g}, G = {G:g}, T = {ROUNDS}, d = {D}"
    verdicts = [_formulas(rows), *(_kept(rows, delta) for delta in deltas), _order(rows), _joint(rows), _truth(rows)]
    return [*verdicts, Grid(title, ("", *methods), lines), NOTE]


def _formulas(rows: Sequence[Row]) -> Verdict:
    """Half a unit of the last digit printed is 1 % of .57."""
    off = max(abs(row["formula"] / PRINTED[row["method"]][0] - 1) for row in rows)
    text = f"The thesis' formulas give the scales that it prints, but for {off:.2%} at most, which is rounding."
    return Verdict(text, off <= 0.01)


def _kept(rows: Sequence[Row], delta: float) -> Verdict:
    costs = {row["method"]: row["cost"] for row in rows if row["delta"] == delta}
    told = ", ".join(f"{method} {cost:.3g}" for method, cost in costs.items())
    text = f"The noise as printed keeps epsilon {EPSILON:g} at delta {delta:g}. What it costs: {told}."
    return Verdict(text, max(costs.values()) <= EPSILON, ("E-22", "E-23"))


def _order(rows: Sequence[Row]) -> Verdict:
    """At the first delta."""
    mine = {row["method"]: row for row in rows if row["delta"] == rows[0]["delta"]}
    printed, sound = (sorted(mine, key=lambda method: -mine[method][what]) for what in ("printed sd", "sound sd"))
    text = f"Sound noise leaves the methods in the printed order. From most noise to least, sound: {', '.join(sound)}; "
    same = all(mine[a]["sound sd"] >= mine[b]["sound sd"] for a, b in pairwise(printed))
    return Verdict(f"{text}as printed: {', '.join(printed)}.", same, ("E-22", "E-27"))


def _joint(rows: Sequence[Row]) -> Verdict:
    sd = {(row["method"], row["delta"]): row["sound sd"] for row in rows}
    ratios = [
        sd[f"Local {kind} P", delta] / sd[f"MPC {kind} P", delta] for kind in ("Out", "Grad")
        for delta in values_of(rows, "delta")
    ]  # fmt: skip
    text = (
        f"Joint noise is below that of each party's own, {min(ratios):.3g} to {max(ratios):.3g} times; printed: "
        f"sqrt(m) = {_ROOT:g} times, the limit. The joint law is priced by its Renyi curve, the Gaussian by its exact "
        "one."
    )
    return Verdict(text, min(ratios) > 1)


def _truth(rows: Sequence[Row]) -> Verdict:
    """Five standard errors of one sd: a false alarm in 10^6 for each."""
    off = max(abs(row["drawn sd"] / row["sound sd"] - 1) for row in rows)
    text = f"What is drawn has the sd that is stated: {DRAWS} draws are {off:.1%} off at most (bound: {SPREAD:.1%})."
    return Verdict(text, off <= SPREAD)


def _thousandths(value: float) -> str:
    return f"{1e3 * value:.3g}" if value < 1 else f"{1e3 * value:.0f}"


def _cost(epsilon: float) -> str:
    return f"{epsilon:.3g}" if math.isfinite(epsilon) else "not finite"


NOTE = Note(
    "Local Obj P: of the linear term in the objective, the mean of all parties'; the model's noise is that over "
    "lambda. Sound noise is less than printed there, because parties draw noise of their own, which averages out, "
    "where the thesis' code adds one vector to all of them. What its printed noise costs is without the curvature's "
    f"log(1 + 1/(4 n lambda)) = {math.log1p(1 / (4 * EACH * RIDGE)):.3g}. Laplace noise has independent coordinates "
    "and the scale of an l2 sensitivity; its cost is that of the worst of the directions with k equal entries."
)

EXPERIMENT = Experiment(
    "x24",
    "Noise magnitudes of many parties",
    "thesis, Table 6.1",
    "Joint noise is sqrt(m) times below that of each party's own, and MPC Grad P needs the least.",
    "The noise of one release, for the thesis' own parameters: what its formulas give, what that noise really costs, "
    "and the sd of noise that keeps the budget, asked of this library's vaults about rows of zeros. Quick and full "
    "runs are the same.",
    cells,
    run,
    show,
)
