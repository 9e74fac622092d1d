"""The page of an audit: what was claimed, what was measured, and what that means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from thresher.audit import MembershipResult
from thresher.audit.catalogue import Finding, verdict
from thresher.report.page import figure, heading, page, paragraph, table

__all__ = ["audit_page"]

GROUPS = {
    "algorithm": (
        "Algorithms",
        "Whole runs, every answer in view. A bound below its claim is what a sound algorithm looks like; how close it "
        "comes says how hard the audit tries.",
    ),
    "question": ("Single questions", "Each question a vault answers, asked once, on the data sets furthest apart."),
    "printed": ("Formulas as printed", "Noise as the papers print it. Some of it does not give what it claims."),
    "broken": (
        "Broken copies",
        "The same questions over deliberately broken vaults: 0.7 of the noise, no clip, an exact sign for free, a "
        "choice drawn again until it looks good. An audit that does not catch these would prove nothing.",
    ),
}
SOUND, DISPROVED, CLAIMED = "#3b7dd8", "#c0392b", "#1d2433"


def audit_page(
    findings: Sequence[Finding], confidence: float, memberships: Mapping[str, MembershipResult] | None = None
) -> str:
    """The whole page."""
    parts = [paragraph(text, "lead") for text in _summary(findings, confidence)]
    for kind, (title, words) in GROUPS.items():
        members = [finding for finding in findings if finding.case.kind == kind]
        if members:
            parts += [heading(title), paragraph(words), figure(_bars(members), CAPTION), _findings_table(members)]
    if memberships:
        parts += _membership_parts(memberships)
    parts += [heading("How to read this"), *map(paragraph, READING)]
    return page("Audit of privacy claims", parts)


CAPTION = "Bar: with the stated confidence, epsilon is above this. Diamond: the claim. Red bars disprove their claim."

READING = (
    "Every run flips a coin, runs the mechanism on one of two neighbouring data sets, and lets an attacker guess "
    "which. The rule for guessing is fixed before the runs that are counted: from algebra, or on runs that "
    "are not counted. A Clopper-Pearson bound on how often a guess is right becomes a lower bound on epsilon.",
    "Where all noise is Gaussian the bound is on mu of Gaussian DP, turned into epsilon at the claimed delta. That mu "
    "is exceeded needs no assumption; that epsilon follows from it assumes that the release is Gaussian.",
    "A bound below the claim is no proof of privacy: another pair, or more runs, might do better. The proofs are in "
    "the documentation; this page tries to refute them.",
)


def _summary(findings: Sequence[Finding], confidence: float) -> list[str]:
    lines = []
    sound = [finding for finding in findings if finding.case.sound]
    if sound:
        fell = sum(finding.result.violated for finding in sound)
        lines.append(f"{len(sound)} claims of this library were attacked: {fell or 'none'} disproved.")
    for kind, words in (("printed", "formulas as printed were disproved"), ("broken", "broken copies were caught")):
        members = [finding for finding in findings if finding.case.kind == kind]
        if members:
            lines.append(f"{sum(f.result.violated for f in members)} of {len(members)} {words}.")
    lines.append(f"With confidence {confidence:g}, no true claim on this page is called disproved.")
    return [" ".join(lines)]


def _bars(findings: Sequence[Finding]) -> Any:
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(8.5, 0.9 + 0.3 * len(findings)))
    ax = drawing.subplots()
    results = [finding.result for finding in findings]
    at = list(range(len(findings)))[::-1]
    colours = [DISPROVED if result.violated else SOUND for result in results]
    ax.barh(at, [result.epsilon_lower for result in results], color=colours, height=0.6)
    ax.plot([result.claimed_epsilon for result in results], at, "D", color=CLAIMED, markersize=5)
    ax.set_yticks(at, [f"{result.target}: {result.pair}" for result in results])
    ax.set_xlabel("epsilon at the claimed delta")
    if max(result.epsilon_lower for result in results) > 15:
        ax.set_xscale("symlog", linthresh=10)
        ax.set_xticks([0, 2, 4, 6, 8, 10, 20, 40], ["0", "2", "4", "6", "8", "10", "20", "40"])
    ax.set_xlim(left=0)
    ax.set_ylim(-0.6, len(findings) - 0.4)
    ax.spines[["top", "right"]].set_visible(False)
    return drawing


def _findings_table(findings: Sequence[Finding]) -> str:
    columns = (
        "name", "pair", "claimed epsilon", "delta", "epsilon is above", "confidence", "guesses right", "runs", "note",
        "verdict",
    )  # fmt: skip
    rows, kinds = [], []
    for finding in findings:
        result = finding.result
        rows.append((
            result.target, result.pair, result.claimed_epsilon, result.delta, result.epsilon_lower,
            f"{100 * result.confidence:.4g} %", f"{result.right} of {result.right + result.wrong}", result.runs,
            _note(finding), verdict(finding),
        ))  # fmt: skip
        as_hoped = result.violated == (finding.case.kind == "broken")
        kinds.append("good" if as_hoped else "bad")
    return table(columns, rows, kinds)


def _note(finding: Finding) -> str:
    return "; ".join(filter(None, [finding.case.note, "by mu" if finding.result.mu_lower is not None else ""]))


def _membership_parts(memberships: Mapping[str, MembershipResult]) -> list[str]:
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(8.5, 3.6))
    panels = drawing.subplots(1, len(memberships), squeeze=False, sharey=True)[0]
    for ax, (name, result) in zip(panels, memberships.items(), strict=True):
        result.plot(ax)
        ax.set_title(name)
    rows = [
        (
            name, result.advantage, f"{result.advantage_interval[0]:.3f} to {result.advantage_interval[1]:.3f}",
            "-" if result.advantage_bound is None else result.advantage_bound,
            *("-" if value is None else value for value in result.predictive_values),
        )
        for name, result in memberships.items()
    ]  # fmt: skip
    priors = next(iter(memberships.values())).priors
    columns = ("model", "advantage", "interval", "bound", *(f"right at 1:{prior:g}" for prior in priors))
    words = (
        "An outsider sees the model and asks who was in the table. The rarer members are among those asked about, the "
        "less an alarm means: the share of right alarms (positive predictive value) against how many non-members there "
        "are for each member, with the most that the guarantee allows."
    )
    return [
        heading("Membership inference with skewed priors"),
        paragraph(words),
        figure(drawing, "Positive predictive value of the best attack; dashed: the bound."),
        table(columns, rows),
    ]
