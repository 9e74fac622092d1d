"""The page of a fitted model: coefficients, what was released and what it cost. Built from its file, without data."""

from __future__ import annotations

import math

from thresher.privacy.certificate import Certificate
from thresher.report import page
from thresher.report.charts import dots
from thresher.report.spending import budget_parts, other_epsilon_parts, released_parts
from thresher.report.summary import Coefficient, FittedModel, Summary
from thresher.report.words import BOUNDS, GRADES, UNITS, setting_text, value_text
from thresher.vaults.problem import LinearProblem

__all__ = ["model_page"]

LEVEL = 0.9  # of the intervals
MOST_DRAWN = 40  # coefficients of a chart, and rows of a table that is not folded
MOST_CHARTS = 6  # classes; the others have their tables


def model_page(model: FittedModel, problem: LinearProblem | None) -> str:
    """The whole page of any linear model that carries a certificate, and was fitted to ``problem`` if by a curator."""
    certificate: Certificate = model.certificate_
    sections = {
        "Coefficients": _coefficients(model),
        "What was released": released_parts(certificate),
        "What it cost": budget_parts(certificate),
        "With another epsilon": other_epsilon_parts(model, problem),
        "What it rests on": _foundations(certificate),
        "Certificate": _certificate(certificate),
    }
    anchors = {title: title.lower().replace(" ", "-") for title in sections}
    parts = [page.contents(anchors.items()), *_summary(model, certificate)]
    for title, section in sections.items():
        parts += [page.heading(title, anchors[title]), *section]
    return page.page("A private model and what it cost", parts)


# -- summary --------------------------------------------------------------------------------------------------------


def _summary(model: FittedModel, certificate: Certificate) -> list[str]:
    size = f"{certificate.n_samples:,} {certificate.counted} and {certificate.n_features:,} columns"
    used = f"{len(model.support_):,} of the columns" if len(model.support_) else "none of the columns"
    words = f"{_kind(model)}, fitted by {certificate.algorithm} to a table of {size}. It uses {used}. "
    words += f"{_guarantee(certificate)} Grade: {certificate.grade}; {GRADES[certificate.grade]}."
    return [page.paragraph(words, "lead"), _may_be_published(certificate), page.paragraph(_what_it_means(certificate))]


def _kind(model: FittedModel) -> str:
    classes = getattr(model, "classes_", None)
    if classes is None:
        return "A linear regression"
    if len(classes) == 2:
        return f"A logistic regression that tells {classes[1]} from {classes[0]}"
    return f"A logistic regression with {len(classes)} classes"


def _guarantee(certificate: Certificate) -> str:
    if certificate.epsilon is None:
        claimed = certificate.claimed_epsilon
        return "It has no privacy guarantee" + (f"; epsilon {claimed:g} was asked for." if claimed is not None else ".")
    return (
        f"It is differentially private with epsilon {certificate.epsilon:g} and delta {certificate.delta:.3g} for "
        f"{certificate.adjacency} neighbours. Protected is {certificate.trust['protected']}."
    )


def _may_be_published(certificate: Certificate) -> str:
    words = ("May be published:", "Do not publish.")
    if certificate.epsilon is None:
        return page.verdict("Whoever sees this model may learn about single people in the table.", False, words)
    text = (
        "the model, its certificate, this page, and predictions for other people's rows. Not the table, and nothing "
        "else that is computed from it, such as test scores. Each further fit on the same rows adds to the cost."
    )
    if certificate.assumptions:
        text += f" This rests on what is assumed: {'; '.join(certificate.assumptions)}."
    return page.verdict(text, True, words)


def _what_it_means(certificate: Certificate) -> str:
    """What an attacker can do at best: tell two neighbours apart with this chance."""
    if certificate.epsilon is None:
        return "The certificate below says what was released nevertheless."
    odds = math.exp(-min(certificate.epsilon, 700.0))
    right = 100 * (1 + certificate.delta * odds) / (1 + odds)
    return (
        f"What that means: someone who knows everything but {_secret(certificate)}, with even odds beforehand, and "
        f"sees all that was released, guesses right at most {right:.3g} % of the time. Without seeing anything it is "
        "50 %."
    )


def _secret(certificate: Certificate) -> str:
    """What neighbours differ in, in words."""
    if certificate.trust["model"] == "labels":
        return "which of two labels one person has"
    if certificate.trust["model"] == "local":
        return "which of two records one person has"
    if certificate.adjacency == "add-remove":
        whose = "one person's records are" if certificate.unit == "person" else "one row is"
        return f"whether {whose} in the table or not"
    return "which of two sets of records one person has" if certificate.unit == "person" else "which of two one row is"


# -- coefficients ---------------------------------------------------------------------------------------------------


def _row(c: Coefficient, certain: bool) -> tuple[object, ...]:
    if not certain:
        return (c.title, c.value)
    stability = "unknown" if math.isnan(c.stability) else f"{100 * c.stability:.0f} %"
    if c.interval is None:
        return (c.title, c.value, "unknown", "", "", "", stability)
    low, high = c.interval
    error = math.hypot(c.noise, c.sampling)
    return (c.title, c.value, f"{low:.4g} to {high:.4g}", error, c.noise, c.sampling, stability)


def _coefficients(model: FittedModel) -> list[str]:
    summary = model.summary(LEVEL)
    names = [f"Class {output.label}" for output in summary.outputs] if len(summary.outputs) > 1 else [""]
    classes = dict(zip(names, summary.outputs, strict=True))
    sure = model.uncertainty_ if summary.why_no_intervals is None else None
    certain = sure is not None
    parts = [page.paragraph(_how_to_read(summary))]
    if not len(model.support_):
        words = "No feature stood out of the noise: this is the zero model."
        more = f"More {model.certificate_.counted}, a larger epsilon or tighter bounds help."
        parts.append(page.paragraph(f"{words} {more}"))
    if sure is not None:
        parts.append(page.paragraph(f"How the intervals were computed: {sure.method}"))
    else:
        parts.append(
            page.paragraph(
                f"There are no intervals: {summary.why_no_intervals}. To look at the rows again would cost privacy."
            )
        )
    top = list(classes.items())[:MOST_CHARTS]
    drawn = [_chart(name, output.coefficients, certain) for name, output in top if output.coefficients]
    parts.append(page.side_by_side(drawn) if len(drawn) > 1 else "".join(drawn))
    for name, output in classes.items():
        parts += [page.subheading(name)] if name else []
        parts.append(_table(output.coefficients, output.intercept, certain))
    return parts


def _chart(name: str, found: tuple[Coefficient, ...], certain: bool) -> str:
    top = found[:MOST_DRAWN]
    intervals = [c.interval or (c.value, c.value) for c in top] if certain else None
    drawing = dots([c.title for c in top], [c.value for c in top], intervals, "coefficient", name)
    caption = f"The {len(top)} largest of {len(found)} coefficients" if len(found) > len(top) else "All coefficients"
    return page.figure(drawing, f"{caption}{f', with {100 * LEVEL:g} % intervals' if certain else ''}.")


def _table(found: tuple[Coefficient, ...], intercept: float, certain: bool) -> str:
    columns = ["feature", "coefficient"]
    if certain:
        columns += [f"{100 * LEVEL:g} % interval", "standard error", "of privacy noise", "of sampling", "stability"]
    rows = [_row(c, certain) for c in found] + [("(intercept)", intercept, *[""] * (len(columns) - 2))]
    whole = page.table(columns, rows)
    return whole if len(found) <= MOST_DRAWN else page.collapsible(f"All {len(found)} coefficients", whole, "table")


def _how_to_read(summary: Summary) -> str:
    if summary.why_no_intervals is not None:
        return summary.effect
    counted = summary.certificate.counted
    return (
        f"{summary.effect} The standard error has two independent parts: the noise that was added for privacy, and "
        f"that other {counted} of the same kind would have given other values. Stability is the chance that a fresh "
        f"run on fresh {counted} would keep the feature, if it is as strong as found."
    )


# -- what it rests on -----------------------------------------------------------------------------------------------


def _foundations(certificate: Certificate) -> list[str]:
    bounds = [(BOUNDS.get(name, name), setting_text(v)) for name, v in certificate.bounds.items() if v is not None]
    settings = [(name.replace("_", " "), setting_text(v)) for name, v in certificate.settings.items() if v is not None]
    versions = ", ".join(f"{name} {number}" for name, number in certificate.versions.items())
    paid = certificate.ledger and "data set {dataset} of a ledger, entry {entry}".format(**certificate.ledger)
    return [
        page.paragraph("Bounds, which are enforced: what is larger is clipped before anything is computed from it."),
        page.facts(bounds),
        page.paragraph("Who sees what, what is taken for granted, and what it ran on:"),
        page.facts([
            ("unit of privacy", UNITS.get(str(certificate.unit), str(certificate.unit))),
            *certificate.trust.items(),
            *[("assumed", words) for words in certificate.assumptions or ("nothing beside the code",)],
            *[("note", words) for words in certificate.notes],
            ("randomness", certificate.randomness),
            ("versions", versions),
            *([("paid by", paid)] if paid else []),
        ]),
        page.paragraph("Settings, all of them public rules or choices:") if settings else "",
        page.facts(settings) if settings else "",
    ]  # fmt: skip


def _certificate(certificate: Certificate) -> list[str]:
    return [
        _verification(certificate),
        page.paragraph(
            "Check it yourself: `thresher verify model.json` recomputes the cost from the listed releases alone. It "
            "takes a model file, or a file with the certificate below."
        ),
        page.collapsible("The certificate as JSON", page.listing(certificate.to_json()), "text"),
        page.paragraph(
            "Everything on this page is computed from the model file and public facts; no row was read for it.", "small"
        ),
    ]


def _verification(certificate: Certificate) -> str:
    check = certificate.verify()
    price = f"epsilon {value_text(check.epsilon)} at delta {certificate.delta:.3g}"
    words = f"the listed releases cost {price} by {check.method}"
    if certificate.epsilon is None and check:
        return page.paragraph("The certificate claims no guarantee, so there is none to verify.")
    text = f"{'; '.join((words, *check.problems))}."
    return page.verdict(text, bool(check), ("Verified:", "Does not verify:"))
