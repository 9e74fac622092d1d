"""The page of reproduced experiments: HTML that stands alone, and the same as Markdown with its figures beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from thresher.report import page
from thresher.report.charts import Chart, draw
from thresher_papers.experiments.errata import ERRATA
from thresher_papers.experiments.experiment import Experiment, Grid, Note, Part, Row, Verdict

__all__ = ["Outcome", "markdown", "reproduction_page", "write_figures"]


@dataclass(frozen=True)
class Outcome:
    """What came of an experiment: rows, or the reason why there are none."""

    experiment: Experiment
    rows: Sequence[Row] = ()
    missing: str = ""
    seconds: float = 0.0

    @property
    def parts(self) -> list[Part]:
        return self.experiment.show(self.rows) if self.rows else []

    @property
    def seeds(self) -> int:
        return len({row.get("seed") for row in self.rows})

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the verdicts, or what is missing."""
        verdicts = [asdict(part) for part in self.parts if isinstance(part, Verdict)]
        told = {"missing": self.missing or None, "seconds": self.seconds, "seeds": self.seeds}
        return {"name": self.experiment.name, "title": self.experiment.title, **told, "verdicts": verdicts}


READING = (
    "Each section shows what a paper printed, what its formula really gives, and what noise that keeps its promise "
    "gives. Hyper-parameters are public rules of n, d, s, bounds and budget, the same for every table; their constants "
    "were chosen with these laws and sets in view, so no number here is held out. A verdict is computed from "
    "the rows of its section; E-numbers name the errata that it rests on, which stand at the end."
)


# -- HTML -----------------------------------------------------------------------------------------------------------


def reproduction_page(outcomes: Sequence[Outcome], told: str) -> str:
    """The whole page; ``told`` says how it was made."""
    names = [outcome.experiment.name for outcome in outcomes]
    parts = [page.contents((name.upper(), name) for name in names), page.paragraph(READING, "lead")]
    parts += [page.paragraph(told), page.table(("", "what", "verdicts"), map(_line, outcomes))]
    for outcome in outcomes:
        parts += _section(outcome)
    errata = _errata(outcomes)
    if errata:
        parts += [page.heading("Errata", "errata"), page.table(("", "what is wrong"), errata)]
    return page.page("The papers, reproduced", parts)


def _errata(outcomes: Sequence[Outcome]) -> list[tuple[str, str]]:
    """Those that a verdict rests on, in their order."""
    cited = {number for outcome in outcomes for part in outcome.parts if isinstance(part, Verdict)
             for number in part.errata}  # fmt: skip
    return [(number, text) for number, text in ERRATA.items() if number in cited]


def _title(experiment: Experiment) -> str:
    return f"{experiment.name.upper()}: {experiment.title}"


def _line(outcome: Outcome) -> tuple[str, str, str]:
    """An experiment in the summary."""
    verdicts = [part.holds for part in outcome.parts if isinstance(part, Verdict)]
    told = f"{sum(verdicts)} of {len(verdicts)} hold" if verdicts else "not run"
    return outcome.experiment.name.upper(), outcome.experiment.title, told


def _section(outcome: Outcome) -> list[str]:
    experiment = outcome.experiment
    parts = [
        page.heading(_title(experiment), experiment.name),
        page.paragraph(f"{experiment.source}. The claim: {experiment.claim}"),
    ]
    if outcome.missing:
        return [*parts, page.paragraph(f"Not run: {outcome.missing}", "bad")]
    shown = outcome.parts
    parts += [page.verdict(_verdict(part), part.holds) for part in shown if isinstance(part, Verdict)]
    parts.append(page.paragraph(experiment.about))
    charts = [page.figure(draw(part), _caption(part)) for part in shown if isinstance(part, Chart)]
    parts += [page.side_by_side(charts)] if charts else []
    for part in shown:
        if isinstance(part, Grid):
            parts += [page.paragraph(part.title, "caption"), page.table(part.columns, part.rows)]
        elif isinstance(part, Note):
            parts.append(page.paragraph(part.text))
    return [*parts, page.paragraph(_effort(outcome), "small")]


def _caption(chart: Chart) -> str:
    bars = any(line.errors is not None for line in chart.series.values())
    return f"{chart.y.capitalize()} against {chart.x}{'; bars: one standard error' if bars else ''}."


def _verdict(part: Verdict) -> str:
    return f"{part.text} ({', '.join(part.errata)})" if part.errata else part.text


def _effort(outcome: Outcome) -> str:
    return f"{len(outcome.rows)} measurements, {outcome.seeds} seed(s), {outcome.seconds:.0f} s of one core."


# -- Markdown -------------------------------------------------------------------------------------------------------


def markdown(outcomes: Sequence[Outcome], told: str) -> str:
    """The same, for the documentation; figures are where ``write_figures`` puts them."""
    lines = ["# The papers, reproduced", "", READING, "", told, ""]
    for outcome in outcomes:
        experiment = outcome.experiment
        lines += [f"## {_title(experiment)}", "", f"{experiment.source}. The claim: {experiment.claim}", ""]
        if outcome.missing:
            lines += [f"Not run: {outcome.missing}", ""]
            continue
        shown = outcome.parts
        for part in shown:
            if isinstance(part, Verdict):
                lines += [f"> **{'Holds' if part.holds else 'Does not hold'}.** {_verdict(part)}", ""]
        lines += [experiment.about, ""]
        charts = [part for part in shown if isinstance(part, Chart)]
        lines += [f"![{chart.title}](figures/{_file(experiment, at)})" for at, chart in enumerate(charts, 1)]
        lines += [""] if charts else []
        for part in shown:
            if isinstance(part, Grid):
                lines += [part.title, "", *_grid(part), ""]
            elif isinstance(part, Note):
                lines += [part.text, ""]
        lines += [_effort(outcome), ""]
    lines += ["## Errata", "", *(f"* **{number}** {text}" for number, text in _errata(outcomes)), ""]
    return "\n".join(lines).rstrip() + "\n"


def _grid(grid: Grid) -> Iterable[str]:
    yield "| " + " | ".join(map(str, grid.columns)) + " |"
    yield "|---" * len(grid.columns) + "|"
    for row in grid.rows:
        yield "| " + " | ".join(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row) + " |"


def write_figures(outcomes: Iterable[Outcome], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for outcome in outcomes:
        charts = [part for part in outcome.parts if isinstance(part, Chart)]
        for at, chart in enumerate(charts, 1):
            (folder / _file(outcome.experiment, at)).write_text(page.svg(draw(chart)))


def _file(experiment: Experiment, at: int) -> str:
    return f"{experiment.name}-{at}.svg"
