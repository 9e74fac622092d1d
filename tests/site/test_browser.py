"""The site in a real browser, opened from the disk: nothing is too wide, nothing is missing, nothing is fetched."""

import pytest

from browser import Browser
from site_pages import pages_of
from waiting import eventually

OVERFLOW = "return document.documentElement.scrollWidth - window.innerWidth"
UNSEEN = """
  const size = e => { const box = e.getBoundingClientRect(); return Math.min(box.width, box.height); };
  const images = [...document.images].filter(i => !(i.complete && i.naturalWidth > 0 && size(i) > 0)).map(i => i.src);
  const formulas = [...document.querySelectorAll('article math')].filter(m => !(size(m) > 0)).map(m => m.textContent);
  return [...images, ...formulas];"""
COLOURS = """
  const light = colour => colour.match(/[0-9.]+/g).slice(0, 3).map(Number).reduce((a, b) => a + b) / 765;
  const image = document.querySelector('article img');
  return [light(getComputedStyle(document.body).backgroundColor), light(getComputedStyle(image).backgroundColor)];"""
SEARCH = """
  const box = document.querySelector('input.md-search__input');
  box.focus(); box.value = 'affordable'; box.dispatchEvent(new Event('keyup', {bubbles: true}));
  box.dispatchEvent(new Event('input', {bubbles: true}));"""
FOUND = "return [...document.querySelectorAll('.md-search-result__link')].map(a => a.getAttribute('href'))"


@pytest.fixture(scope="module")
def browser():
    browser = Browser()
    yield browser
    browser.close()


@pytest.mark.parametrize("width", [1280, 360])
def test_every_page_fits_the_screen_and_everything_on_it_is_drawn(width, browser, site):
    names = list(pages_of(site))
    assert len(names) > 50
    for name in names:
        browser.open(site / name, width=width)
        assert browser.run("return window.innerWidth") == width
        assert (name, browser.run(OVERFLOW)) == (name, 0)
        assert (name, browser.run(UNSEEN)) == (name, [])
        assert (name, browser.complaints) == (name, [])
        assert {address.split(":")[0] for address in browser.requests} <= {"file", "data"}


def test_an_image_or_a_formula_that_is_missing_would_be_noticed(browser, tmp_path):
    page = "<article><img src='none.png'><math></math><math><mi>x</mi></math><p style='width: 600px'>wide</p></article>"
    (tmp_path / "bad.html").write_text(page)
    browser.open(tmp_path / "bad.html", width=360)
    assert browser.run(UNSEEN) == [(tmp_path / "none.png").as_uri(), ""]
    assert browser.run(OVERFLOW) > 200
    assert any("none.png" in text for text in browser.complaints)


def test_a_dark_screen_gets_a_dark_page_with_figures_on_white(browser, site):
    browser.open(site / "local.html", dark=True)
    assert browser.run(COLOURS) == [pytest.approx(0.15, abs=0.1), 1]
    browser.open(site / "local.html")
    assert browser.run(COLOURS) == [1, 1]


def test_search_works_without_a_server(browser, site):
    browser.open(site / "index.html")
    browser.run(SEARCH)
    assert any("ledger.html" in address for address in eventually(lambda: browser.run(FOUND)))
    assert browser.complaints == []
