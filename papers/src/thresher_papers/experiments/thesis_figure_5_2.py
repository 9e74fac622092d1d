"""Figure 5.2 of the thesis: what Laplacian smoothing does to noise, and to a signal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from thresher.algorithms import DPLSSGD, DPSGD
from thresher.algorithms.dp_lssgd import smooth, spectral_means
from thresher.privacy.arrays import Floats
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.report.charts import Chart, Series
from thresher.vaults.losses import LOGISTIC
from thresher.vaults.problem import LinearProblem
from thresher_papers.experiments.experiment import Cell, Experiment, Grid, Part, Row, Verdict
from thresher_papers.experiments.rows import Mean, means

__all__ = ["EXPERIMENT"]

SETTINGS = {"wave": (0.1, 10.0), "image": (0.2, 100.0)}  # the noise's sd, and sigma
ACROSS, SHOWN = 100, 25  # points in a period; the row of the image that is shown
DRAWS = 50  # of noise, in one cell
FAR = 4.0  # standard errors


def cells(quick: bool) -> list[Cell]:
    return [{"signal": name, "seed": seed} for name in SETTINGS for seed in range(5 if quick else 20)]


def run(signal: str, seed: int) -> list[Row]:
    """What smoothing leaves of noise and signal; the first seed also has the curves and the plans."""
    sd, sigma = SETTINGS[signal]
    clean = _clean(signal)
    rng = np.random.default_rng(seed)
    noises = rng.normal(0, sd, (DRAWS, len(clean)))
    left = np.array([smooth(noise, sigma) for noise in noises])
    bias = smooth(clean, sigma) - clean
    rows: list[Row] = [{
        "kind": "power", "signal": signal, "seed": seed, "left": float(np.sum(left**2) / np.sum(noises**2)),
        "beta": spectral_means(len(clean), sigma)[1], "before": _rms(noises), "after": _rms(left + bias),
        "bias": _rms(bias),
    }]  # fmt: skip
    if seed == 0:
        noisy, after = clean + noises[0], clean + bias + left[0]
        start = SHOWN * ACROSS if signal == "image" else 0
        rows += [
            {"kind": "curve", "signal": signal, "seed": seed, "at": at - start, "clean": float(clean[at]),
             "noisy": float(noisy[at]), "smoothed": float(after[at])}
            for at in range(start, start + ACROSS)
        ]  # fmt: skip
        rows += [_plan(signal, 0.0, DPSGD()), _plan(signal, sigma, DPLSSGD(smoothing=sigma))]
    return rows


def _clean(signal: str) -> Floats:
    wave: Floats = np.sin(2 * np.pi * np.arange(ACROSS) / ACROSS)
    return wave if signal == "wave" else np.outer(wave, wave).ravel()


def _rms(values: Floats) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _plan(signal: str, sigma: float, algorithm: Any) -> Row:
    """What a fit of as many coefficients would cost, with smoothing and without."""
    problem = LinearProblem(10_000, ACROSS, Bounds(row=1.0), sparsity=ACROSS, loss=LOGISTIC)
    plan = algorithm.plan(problem, Budget(0.5, 1e-5))
    (release,) = plan.releases
    return {
        "kind": "plan", "signal": signal, "seed": 0, "method": algorithm.name, "sigma": sigma,
        "real epsilon": plan.epsilon, "multiplier": release.multiplier,
    }  # fmt: skip


def show(rows: Sequence[Row]) -> list[Part]:
    power = [row for row in rows if row["kind"] == "power"]
    found = {column: means(power, ("signal",), column) for column in ("left", "beta", "before", "after", "bias")}
    table = Grid(
        "Smoothing of the two signals: what is left of the noise's power, and root mean squared errors",
        ("signal", "sigma", "power left", "closed form", "error of the noisy", "of the smoothed", "of it, bias"),
        [(name, SETTINGS[name][1], *(str(found[column][(name,)]) for column in found)) for name in SETTINGS],
    )
    verdicts: list[Part] = [_closed_form(found), _denoised(found), _same_price(rows)]
    return [*verdicts, *(_chart(rows, name) for name in SETTINGS), table, _prices(rows)]


def _closed_form(found: dict[str, dict[tuple[Any, ...], Mean]]) -> Verdict:
    told = [f"{found['left'][(name,)]} against {found['beta'][(name,)].value:.4g} ({name})" for name in SETTINGS]
    holds = all(
        abs(found["left"][(name,)].value - found["beta"][(name,)].value) <= FAR * found["left"][(name,)].error
        for name in SETTINGS
    )
    return Verdict(
        f"Smoothing leaves of white noise's power what the closed form says: {', '.join(told)} (within {FAR:g} "
        "standard errors).",
        holds,
    )


def _denoised(found: dict[str, dict[tuple[Any, ...], Mean]]) -> Verdict:
    told = [
        f"{found['before'][(name,)].value:.3g} to {found['after'][(name,)].value:.3g}, of which "
        f"{found['bias'][(name,)].value:.3g} is the signal's own loss ({name})"
        for name in SETTINGS
    ]
    holds = all(found["after"][(name,)].value < found["before"][(name,)].value for name in SETTINGS)
    return Verdict(
        f"Smoothing brings a noisy smooth signal closer to the true one: error from {', '.join(told)}.", holds
    )


def _same_price(rows: Sequence[Row]) -> Verdict:
    plans = [row for row in rows if row["kind"] == "plan"]
    epsilons, multipliers = ({row[column] for row in plans} for column in ("real epsilon", "multiplier"))
    same = len(epsilons) == len(multipliers) == 1
    return Verdict(
        f"Smoothing makes the same noise more private (Remark 5.5.6): with and without it the plans have epsilon "
        f"{_told(epsilons)} and noise multiplier {_told(multipliers)}, {'equal' if same else 'unequal'} to the digit, "
        "for it is an invertible map of what is released.",
        not same,
        ("E-21",),
    )  # fmt: skip


def _told(values: set[float]) -> str:
    return " and ".join(f"{value:.6g}" for value in sorted(values))


def _prices(rows: Sequence[Row]) -> Grid:
    plans = [row for row in rows if row["kind"] == "plan"]
    lines = [(row["method"], f"{row['sigma']:g}", row["real epsilon"], row["multiplier"]) for row in plans]
    return Grid(
        "Plans for 10,000 rows and 100 coefficients, delta 1e-5",
        ("method", "sigma", "epsilon", "noise multiplier"),
        lines,
    )


def _chart(rows: Sequence[Row], name: str) -> Chart:
    points = [row for row in rows if row["kind"] == "curve" and row["signal"] == name]
    at = [row["at"] for row in points]
    lines = {"noisy": "noisy", "smooth": "smoothed", "signal": "clean"}
    series = {label: Series(at, [row[column] for row in points]) for label, column in lines.items()}
    what = f"row {SHOWN} of the image" if name == "image" else "the wave"
    return Chart(f"Smoothing with sigma {SETTINGS[name][1]:g}: {what}", "coordinate", "value", series)


EXPERIMENT = Experiment(
    "x20",
    "Laplacian smoothing as a filter of noise",
    "Thesis, Figure 5.2 and section 5.2",
    "Smoothing removes noise while it keeps the signal.",
    "The wave is sin(2 pi i/100) plus .1 N(0, 1), 100 points, sigma 10; the image is the product of two such waves "
    "plus .2 N(0, 1), 100 x 100 points read row by row as one vector, sigma 100, as in the thesis. So an image is "
    "smoothed along its rows only.",
    cells,
    run,
    show,
)
