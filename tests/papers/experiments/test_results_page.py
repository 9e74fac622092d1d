"""The results page of the documentation is what its measurements say, to the letter."""

from repository import DOCS
from thresher.report.charts import Chart
from thresher_papers.experiments.experiment import Verdict
from thresher_papers.experiments.reproduce import outcomes_in
from thresher_papers.page import markdown

RESULTS = DOCS / "results"
SYNTHETIC = {"x1", "x2", "x5", "x6"}


def test_the_page_is_what_its_rows_give():
    assert (RESULTS / "results.md").read_text() == markdown(*outcomes_in(RESULTS))


def test_the_full_synthetic_figures_are_there_with_the_papers_ten_trials():
    outcomes = {outcome.experiment.name: outcome for outcome in outcomes_in(RESULTS)[0]}
    assert set(outcomes) >= SYNTHETIC
    for name in SYNTHETIC:
        asked = {(cell["size"], cell["seed"], e) for cell in outcomes[name].experiment.cells(False)
                 for e in cell["epsilons"]}  # fmt: skip
        assert asked <= {(row["size"], row["seed"], row["epsilon"]) for row in outcomes[name].rows}
        charts = [part for part in outcomes[name].parts if isinstance(part, Chart)]
        assert all((RESULTS / "figures" / f"{name}-{at}.svg").exists() for at in range(1, len(charts) + 1))


def test_pursuit_is_the_best_private_method_and_close_to_no_privacy_where_it_should_be():
    """On the synthetic figures: at every epsilon, and from epsilon 5 (X5 i) and 2 (X5 ii) on."""
    for outcome in outcomes_in(RESULTS)[0]:
        if outcome.experiment.name in SYNTHETIC:
            verdicts = [part for part in outcome.parts if isinstance(part, Verdict) and not part.errata]
            assert verdicts
            assert all(verdict.holds for verdict in verdicts), verdicts
