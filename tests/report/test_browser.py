"""Reports in a real browser: plots and tables are there, legible on a phone, and nothing is fetched."""

import itertools
import math
from unittest.mock import ANY

import numpy as np
import pytest

from browser import Browser
from thresher import SparseClassifier, SparseRegressor
from thresher.models.dense import DenseRegressor
from thresher_papers.experiments import find_experiments
from thresher_papers.experiments.synthetic import EXACT, PRIVATE
from thresher_papers.page import Outcome, reproduction_page

WIDTHS = [360, 390, 768, 1200]
PRINTED = ["dp-ight (printed)", "dpsl-kt (printed)"]

CHARTS = """
  const size = e => { const box = e.getBoundingClientRect(); return [box.width, box.height]; };
  return [...document.querySelectorAll('svg')].map(svg => ({
    size: size(svg),
    paths: [...svg.querySelectorAll('path')].filter(p => !p.closest('defs') && Math.max(...size(p)) > 0).length,
    marks: svg.querySelectorAll('use').length,
    words: [...svg.querySelectorAll('text')].filter(t => Math.min(...size(t)) > 0).map(t => t.textContent),
    smallest: Math.min(...[...svg.querySelectorAll('text')].map(t => t.getBoundingClientRect().height)),
  }));"""

ROWS = """
  return [...document.querySelectorAll('table')].map(table => [...table.querySelectorAll('tbody tr')]
    .filter(row => row.checkVisibility({contentVisibilityAuto: true}) && row.getBoundingClientRect().height > 0)
    .map(row => [...row.children].map(cell => cell.textContent)));"""

OVERFLOW = "return document.documentElement.scrollWidth - window.innerWidth"


@pytest.fixture(scope="module")
def browser():
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A model of numbers, one of three classes, one with many coefficients, and reproduced experiments."""
    folder = tmp_path_factory.mktemp("pages")
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (6000, 60))
    y = 2 * X[:, 3] - X[:, 7] + rng.normal(0, 0.3, 6000)
    private = {"random_state": 0, "feature_bound": 1.0}
    numbers = SparseRegressor(3, epsilon=2.0, target_bound=4.0, algorithm="pursuit", **private).fit(X, y)
    numbers.feature_names_in_ = np.array([f"gene {j}, measured at noon" for j in range(60)], dtype=object)
    classes = SparseClassifier(3, epsilon=4.0, classes=["low", "mid", "high"], **private)
    classes.fit(X, np.array(["low", "mid", "high"])[np.digitize(y, [-0.6, 0.6])])
    many = DenseRegressor(2.0, target_bound=4.0, algorithm="dp-gd", **private).fit(X, y)
    for name, model in {"numbers": numbers, "classes": classes, "many": many}.items():
        model.report(folder / f"{name}.html")
    (experiment,) = find_experiments(["x5"])
    text = reproduction_page([Outcome(experiment, list(some_rows()), seconds=1.0)], "Made by `a test`.")
    (folder / "reproduction.html").write_text(text)
    return {path.stem: path for path in folder.iterdir()}


def some_rows():
    """As the experiment would measure them."""
    for size, seed in itertools.product(["(i)", "(ii)"], range(2)):
        shared = {"size": size, "seed": seed}
        yield {**shared, "method": EXACT, "epsilon": math.inf, "error": 0.03, "real epsilon": math.inf}
        for at, method in enumerate([*PRIVATE, *PRINTED]):
            for epsilon in (0.8, 2.0, 5.0):
                error, real = (1 + at + 0.1 * seed) / (10 * epsilon), epsilon * (1 if method in PRIVATE else 3)
                yield {**shared, "method": method, "epsilon": epsilon, "error": error, "real epsilon": real}


PAGES = {"numbers": 5, "classes": 7, "many": 3, "reproduction": 2}  # and how many charts each has


@pytest.mark.parametrize("name", PAGES)
def test_every_chart_is_drawn_and_labelled(name, browser, pages):
    browser.open(pages[name])
    charts = browser.run(CHARTS)
    assert len(charts) == PAGES[name]
    for chart in charts:
        width, height = chart["size"]
        assert width > 250
        assert height > 50
        assert chart["paths"] + chart["marks"] > 5
        assert len(chart["words"]) >= 4


def test_the_words_beside_a_chart_can_be_read_on_a_phone(browser, pages):
    """Eight pixels and more from top to bottom: about what small print of a newspaper has."""
    for name in PAGES:
        browser.open(pages[name], width=390)
        assert min(chart["smallest"] for chart in browser.run(CHARTS)) >= 8


def test_the_chart_of_coefficients_names_them(browser, pages):
    browser.open(pages["numbers"])
    words = browser.run(CHARTS)[0]["words"]
    assert {"gene 3, measured at noon", "gene 7, measured at noon", "coefficient"} <= set(words)


def test_the_tables_of_a_model_are_there(browser, pages):
    browser.open(pages["numbers"])
    coefficients, released, deltas, outlook = browser.run(ROWS)
    assert [row[0] for row in coefficients[:2]] == ["gene 3, measured at noon", "gene 7, measured at noon"]
    assert coefficients[-1][0] == "(intercept)"
    low, high = map(float, coefficients[0][2].split(" to "))
    assert low < float(coefficients[0][1]) < high
    assert {row[0].split(",")[0] for row in released} >= {"quantile", "selection", "restricted gradient"}
    assert len(deltas) == 4
    assert [float(row[0]) for row in outlook] == [0.5, 1, 2, 4, 8]
    assert [row[-1] for row in outlook] == ["", "", "this model", "", ""]


def test_many_coefficients_are_unfolded_by_a_click(browser, pages):
    browser.open(pages["many"])
    assert browser.run(ROWS)[0] == []
    browser.run("document.querySelector('details.table summary').click()")
    assert len(browser.run(ROWS)[0]) == 61
    browser.run("document.querySelector('details.text summary').click()")
    assert '"algorithm": "dp-gd"' in browser.run("return document.querySelector('pre').innerText")


def test_the_tables_of_experiments_are_there(browser, pages):
    browser.open(pages["reproduction"])
    summary, sound, printed, *_ = browser.run(ROWS)
    assert summary == [["X5", ANY, "3 of 4 hold"]]
    assert [row[0] for row in sound] == [*PRIVATE, EXACT]
    assert [row[0] for row in printed] == PRINTED
    assert browser.run("return document.querySelectorAll('p.verdict').length") == 4


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_is_wider_than_the_screen(width, name, browser, pages):
    browser.open(pages[name], width=width)
    browser.run("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert browser.run("return window.innerWidth") == width
    assert browser.run(OVERFLOW) <= 0


def test_a_page_that_is_too_wide_or_a_chart_that_is_not_drawn_would_be_noticed(browser, tmp_path):
    (tmp_path / "bad.html").write_text("<div style='width: 600px'>wide</div><svg><path d=''/><text></text></svg>")
    browser.open(tmp_path / "bad.html", width=390)
    assert browser.run(OVERFLOW) > 200
    (chart,) = browser.run(CHARTS)
    assert (chart["paths"], chart["marks"], chart["words"]) == (0, 0, [])


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_fetched_and_nothing_complains(name, browser, pages):
    browser.open(pages[name])
    assert browser.requests == [pages[name].as_uri()]
    assert browser.complaints == []


def test_a_page_that_fetches_or_complains_would_be_noticed(browser, tmp_path):
    (tmp_path / "bad.html").write_text("<link rel='icon' href='data:,'><img src='nowhere.png'><script>oops()</script>")
    browser.open(tmp_path / "bad.html")
    assert (tmp_path / "nowhere.png").as_uri() in browser.requests
    assert any("oops is not defined" in text for text in browser.complaints)


COLOURS = """
  const body = getComputedStyle(document.body);
  const light = colour => colour.match(/[0-9.]+/g).slice(0, 3).map(Number).reduce((a, b) => a + b) / 765;
  return [light(body.backgroundColor), light(body.color), getComputedStyle(document.querySelector('svg')).filter];"""


def test_a_dark_screen_gets_light_words_and_light_charts(browser, pages):
    browser.open(pages["numbers"], dark=True)
    paper, ink, turned = browser.run(COLOURS)
    assert paper < 0.2 < 0.8 < ink
    assert "invert" in turned
    browser.open(pages["numbers"])
    paper, ink, turned = browser.run(COLOURS)
    assert ink < 0.2 < 0.8 < paper
    assert turned == "none"


def test_paper_shows_folded_tables_and_no_charts_in_dark(browser, pages):
    browser.open(pages["many"], dark=True)
    browser.as_printed()
    assert len(browser.run(ROWS)[0]) == 61
    assert browser.run(COLOURS)[2] == "none"
    assert browser.pdf().startswith(b"%PDF")
