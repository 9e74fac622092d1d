"""What a model's privacy was spent on, and what another budget would buy: from its certificate and public facts."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtri

from thresher.algorithms.signal_to_noise import noise_over_signal, relative_noise
from thresher.privacy.accounting import Cost
from thresher.privacy.budget import Adjacency, Budget
from thresher.privacy.certificate import Certificate
from thresher.privacy.releases import RandomTrials, Release, ZCDPFilter, release_from_dict
from thresher.privacy.trust import Unit
from thresher.report import page
from thresher.report.charts import Chart, Series, bars, draw
from thresher.report.summary import FittedModel
from thresher.report.words import range_text
from thresher.vaults.problem import LinearProblem

__all__ = ["budget_parts", "other_epsilon_parts", "released_parts"]

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of epsilon
NORMAL = float(ndtri(0.95))  # half a 90 % interval, in standard errors


@dataclass
class _Kind:
    """Releases of one question with one law of noise."""

    releases: list[Release] = field(default_factory=list)
    answers: list[dict[str, float]] = field(default_factory=list)

    @property
    def rho(self) -> float:
        """Together, in zCDP; infinite where there is no such price."""
        costs = [release.cost() for release in self.releases]
        return math.fsum(math.inf if cost.sampled else cost.rho for cost in costs)


# -- what was released ----------------------------------------------------------------------------------------------


def released_parts(certificate: Certificate) -> list[str]:
    """What was asked of the rows, how often, and with what noise."""
    kinds, cap = _kinds(certificate)
    total = math.fsum(kind.rho for kind in kinds.values()) if cap is None else cap
    clipped = "what one row can contribute was clipped"
    if certificate.unit == "person":
        clipped += ", and all rows of a person together count as one"
    words = (
        f"All that ever left the rows. Before each answer, {clipped}; sensitivity is how far one person can then move "
        "the answer, and the noise is scaled to that."
    )
    if any(entry.get("within") == "trials" for entry in certificate.releases):
        words += " This is the best of a secret number of trials; the cost below is that of all of them."
    facts = [_row_of(kind, certificate.unit) for kind in kinds.values()]
    parts = [page.paragraph(words), page.facts(facts), _kinds_table(kinds)]
    if cap is not None:
        parts.append(page.paragraph(f"Questions were chosen while running, within a cap of rho = {cap:.3g} in zCDP."))
    if not math.isfinite(total):
        return [*parts, page.paragraph("These releases are priced together; the budget has no parts to show.")]
    shares = {name: kind.rho / total for name, kind in kinds.items()}
    if cap is not None and cap > math.fsum(kind.rho for kind in kinds.values()):
        shares["not spent"] = 1 - math.fsum(shares.values())
    if len(shares) > 1:
        drawing = bars(list(shares), list(shares.values()), "% of the budget, in zCDP")
        parts.append(page.figure(drawing, "How the budget is divided among the questions."))
    return parts


def _kinds(certificate: Certificate) -> tuple[dict[str, _Kind], float | None]:
    """By question and noise; and the cap, where spending was decided while running."""
    kinds: dict[str, _Kind] = {}
    caps = []
    for entry in certificate.releases:
        release = release_from_dict(entry["release"])
        if isinstance(release, ZCDPFilter):
            caps.append(release.rho)
            continue
        if isinstance(release, RandomTrials):  # of which one trial's answers are listed
            continue
        kind = kinds.setdefault(f"{release.question}, {release.noise}", _Kind())
        kind.releases.append(release)
        kind.answers += entry["answers"]
    return kinds, math.fsum(caps) if caps else None


def _row_of(kind: _Kind, unit: Unit) -> tuple[str, str]:
    question = kind.releases[0].question
    given = sum(answer["count"] for answer in kind.answers)
    paid = sum(release.times for release in kind.releases)
    count = f"{given:,} of {paid:,} answers" if given < paid else f"{given:,} answer{'s' if given > 1 else ''}"
    return question.name, f"{count}, {kind.releases[0].noise} noise: {question.asked(unit)}"


def _kinds_table(kinds: dict[str, _Kind]) -> str:
    columns = ("question, noise", "clip", "sensitivity", "noise scale", "scale over sensitivity")
    rows = [
        (
            name, *(range_text(answer[of] for answer in kind.answers) for of in ("clip", "sensitivity", "scale")),
            range_text(release.multiplier for release in kind.releases),
        )
        for name, kind in kinds.items()
    ]  # fmt: skip
    return page.table(columns, rows)


# -- what it cost ---------------------------------------------------------------------------------------------------


def budget_parts(certificate: Certificate) -> list[str]:
    """What that cost, at any delta."""
    counted = [release_from_dict(entry["release"]) for entry in certificate.releases if "within" not in entry]
    cost = sum((release.cost() for release in counted), Cost())
    parts = [page.paragraph(f"Composed: {certificate.composition}.")]
    deltas = np.geomspace(1e-12, 1e-2, 6 if cost.sampled else 21)
    curve = [(delta, epsilon) for delta in deltas.tolist() if math.isfinite(epsilon := cost.epsilon(delta)[0])]
    if not curve:
        return [*parts, page.paragraph("The releases have no finite price at any delta.")]
    x, y = zip(*curve, strict=True)
    if max(y) <= 1.001 * min(y):
        return [*parts, page.paragraph("Epsilon is the same at every delta: nothing can fail.")]
    series = {"these releases": Series(x, y)}
    if certificate.epsilon is not None and certificate.delta > 0:
        series["as stated"] = Series([certificate.delta], [certificate.epsilon])
    chart = Chart("", "delta", "epsilon", series, log_x=True)
    rows = [(f"{delta:.0e}", f"{cost.epsilon(delta)[0]:.3g}") for delta in (1e-10, 1e-8, 1e-6, 1e-4)]
    words = (
        "The same releases can be read at any delta, the chance that epsilon may fail to hold: the smaller delta, the "
        "larger epsilon. All of these statements are true at once."
    )
    return [
        *parts,
        page.paragraph(words),
        page.side_by_side([
            page.figure(draw(chart), "Epsilon against delta, from the certificate alone."),
            page.table(("at delta", "epsilon is"), rows),
        ]),
    ]  # fmt: skip


# -- what another budget would give ---------------------------------------------------------------------------------


def other_epsilon_parts(model: FittedModel, problem: LinearProblem | None) -> list[str]:
    """What the noise would be with another epsilon; nothing where no problem of a curator is known."""
    certificate = model.certificate_
    if certificate.epsilon is None:
        return [page.paragraph("Without a guarantee there is no noise that epsilon would explain.")]
    if problem is None:
        return [page.paragraph("Not predicted where people randomise their own records; `model.plan` shows the noise.")]
    budget = Budget(certificate.epsilon, certificate.delta, Adjacency(certificate.adjacency))
    epsilons = [budget.epsilon * factor for factor in FACTORS]
    noise = [relative_noise(budget, epsilon) for epsilon in epsilons]
    ratios, widths = _ratios(problem, budget, epsilons), _widths(model, noise)
    columns = {"epsilon": epsilons, "noise, times this model's": noise, **ratios, **widths}
    here = ["this model" if factor == 1 else "" for factor in FACTORS]
    drawn = [
        ("half-width of the interval", widths, "Half the 90 % interval of a typical coefficient (the median)."),
        ("noise, times this model's", {} if widths else {"noise": noise}, "The noise on every answer."),
        (
            "noise over signal", ratios and {**ratios, "features drown (limit)": [1.0] * len(epsilons)},
            "Noise over the signal of equally strong features; above 1 they drown.",
        ),
    ]  # fmt: skip
    return [
        page.paragraph(PREDICTED),
        page.side_by_side(_chart(y, series, epsilons, caption) for y, series, caption in drawn if series),
        page.table([*columns, ""], zip(*columns.values(), here, strict=True)),
    ]


PREDICTED = (
    "A prediction, not a measurement: from public facts (size, bounds, epsilon) and values that were released "
    "anyway. It costs nothing. The same answers are taken to be asked with the noise that another epsilon needs at the "
    "same delta."
)


def _chart(y: str, values: dict[str, list[float]], epsilons: list[float], caption: str) -> str:
    series = {name: Series(epsilons, each) for name, each in values.items()}
    return page.figure(draw(Chart("", "epsilon", y, series, log_x=True, log_y=True)), caption)


def _ratios(problem: LinearProblem, budget: Budget, epsilons: list[float]) -> dict[str, list[float]]:
    """Noise over signal, where features are selected."""
    if problem.sparsity == problem.d or budget.delta == 0:
        return {}
    budgets = [Budget(epsilon, budget.delta, budget.adjacency) for epsilon in epsilons]
    return {"noise over signal": [noise_over_signal(problem, each) for each in budgets]}


def _widths(model: FittedModel, factors: list[float]) -> dict[str, list[float]]:
    """Half the interval of the median coefficient, with privacy noise that is so many times as large."""
    sure = model.uncertainty_
    if sure is None or not np.isfinite(sure.noise).any():
        return {}
    noise = [factor * sure.noise for factor in factors]
    return {
        "half-width": [NORMAL * float(np.nanmedian(np.hypot(each, sure.sampling))) for each in noise],
        "by privacy noise alone": [NORMAL * float(np.nanmedian(each)) for each in noise],
    }
