"""The picture: a line for each algorithm with the range of one run, ticks where values were asked for."""

from pathlib import Path

import numpy as np
import pytest

from thresher import SparseRegressor
from thresher.planning import forecast
from thresher.planning.chart import ENDINGS, TOP, check_plot, draw_forecast, save_figure

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def found():
    model = SparseRegressor(3, feature_bound=1.0, target_bound=3.0)
    algorithms = ["pursuit", "peeling"]
    return forecast(model, 300, 20, epsilons=[0.5, 2], rows=[100, 900], algorithms=algorithms, draws=3, n_jobs=1)


@pytest.mark.parametrize(("over", "ticks"), [("epsilon", ["0.5", "1", "2"]), ("rows", ["100", "300", "900"])])
def test_lines_ticks_and_words(over, ticks, found):
    (axes,) = draw_forecast(found, over, 300, 1.0).axes
    _, names = axes.get_legend_handles_labels()
    assert names == ["pursuit", "peeling", "ight (not private)"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ticks
    assert axes.get_xlabel() == over
    assert "50% of runs" in axes.get_ylabel()
    assert "20 columns, 3 true features, signal 0.8" in axes.get_title()
    assert axes.get_ylim() == (0, TOP)


def test_bars_reach_from_the_lowest_to_the_highest_of_one_run(found):
    (axes,) = draw_forecast(found, "epsilon", 300, 1.0).axes
    line, _, (bars,) = axes.containers[0]
    for at, (_, epsilon), bar in zip(
        line.get_ydata(), [(300, 0.5), (300, 1), (300, 2)], bars.get_segments(), strict=True
    ):
        error = found.one("pursuit", 300, epsilon).error
        assert at == error.mean
        np.testing.assert_allclose(bar[:, 1], [error.low, error.high])


@pytest.mark.parametrize("ending", ENDINGS)
def test_pictures_are_written_by_their_ending_and_a_drawing_is_always_the_same(ending, found, tmp_path):
    files = [tmp_path / f"{name}{ending}" for name in ("first", "again")]
    for file in files:
        save_figure(draw_forecast(found, "rows", 300, 1.0), file)
    first, again = (file.read_bytes() for file in files)
    assert first[:4] in (b"<?xm", b"\x89PNG", b"%PDF")
    assert first == again or ending == ".pdf"  # which holds the time of day


def test_a_picture_that_cannot_be_written_is_refused(tmp_path):
    check_plot(tmp_path / "plan.svg")
    with pytest.raises(ValueError, match=r"--plot='plan.txt' must end in .svg, .png, .pdf"):
        check_plot(Path("plan.txt"))
    with pytest.raises(ValueError, match=r"--plot='/nowhere/plan.svg' cannot be written"):
        check_plot(Path("/nowhere/plan.svg"))
