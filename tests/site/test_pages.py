"""The site shows every page, with the words that GitHub shows; formulas are drawn or refused."""

import importlib
import inspect
import re

import pytest
from markdown_it import MarkdownIt

from repository import DOCS, ROOT
from site_pages import Page, pages_of

SOURCES = sorted(DOCS.rglob("*.md"))
OF_THE_ROOT = [ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
WRITTEN = [path for path in SOURCES if "api" not in path.relative_to(DOCS).parts] + OF_THE_ROOT
REFERENCE = [
    "thresher.accounting", "thresher.algorithms", "thresher.algorithms.uncertainty", "thresher.audit",
    "thresher.audit.pairs", "thresher.federated", "thresher.local", "thresher.planning",
    "thresher.privacy.certificate", "thresher.torch", "thresher_papers.datasets",
]  # fmt: skip
FORMULA = r"\$`[^`]+`\$|^```math\n.*?^```"


def built(site, source):
    if source in OF_THE_ROOT:
        return site / f"{source.stem.lower()}.html"
    return site / source.relative_to(DOCS).with_suffix(".html")


def test_every_page_is_in_the_navigation(site):
    listed = Page(site / "index.html").links
    for path in SOURCES:
        assert str(path.relative_to(DOCS).with_suffix(".html")) in listed


@pytest.mark.parametrize("source", WRITTEN, ids=lambda path: path.stem)
def test_the_site_shows_the_words_that_github_shows(source, site, tmp_path):
    """Formulas are left out; a page without a heading gets the name that the navigation has for it."""
    (tmp_path / "page.html").write_text(f"<article>{as_on_github(source.read_text())}</article>")
    expected, shown = Page(tmp_path / "page.html").words, Page(built(site, source)).words
    assert shown[-len(expected) :] == expected
    assert len(shown) - len(expected) <= (0 if source.read_text().startswith("# ") else 5)


def as_on_github(text):
    return MarkdownIt("commonmark").enable("table").render(re.sub(FORMULA, "", text, flags=re.DOTALL | re.MULTILINE))


RAW = r"\\[a-zA-Z]+|\$`|`\$|:::|:(?:attr|class|data|exc|func|meth|mod|obj|ref):"


def test_no_page_shows_the_source_of_a_formula_or_of_a_reference(site):
    for name, page in pages_of(site).items():
        assert not re.search(RAW, page.prose), name


def test_the_source_of_a_formula_or_of_a_reference_would_be_noticed(tmp_path):
    for text in (r"so \theta is", "a <code>x</code> of :class:<code>Ledger</code>", "$`x`$", "::: thresher"):
        (tmp_path / "bad.html").write_text(f"<article><p>{text}</p></article>")
        assert re.search(RAW, Page(tmp_path / "bad.html").prose), text


@pytest.mark.parametrize("source", WRITTEN, ids=lambda path: path.stem)
def test_every_formula_is_drawn(source, site):
    wanted = re.findall(FORMULA, source.read_text(), flags=re.DOTALL | re.MULTILINE)
    assert Page(built(site, source)).formulas == len(wanted)


def test_the_reference_has_every_public_name(site):
    thresher = importlib.import_module("thresher")
    pages = pages_of(site)
    anchors = {anchor for page in pages.values() for anchor in page.anchors}
    assert {f"thresher.{name}" for name in thresher.__all__ if name not in ("Certificate", "__version__")} <= anchors
    for module in REFERENCE:
        names = public_names(module)
        own = {anchor.rsplit(".", 1)[1] for anchor in anchors if re.match(rf"{module}\.[\w.]+$", anchor)}
        assert names <= own | {"pairs"}, module


def public_names(module):
    """What ``__all__`` lists, read from the source: torch need not be installed."""
    place = ROOT / ("papers/src" if module.startswith("thresher_papers") else "src")
    path = place.joinpath(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    (listed,) = re.findall(r"^__all__ = \[(.*?)\]", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    return set(re.findall(r'"(\w+)"', listed))


@pytest.mark.parametrize("name", ["DenseClassifier", "LocalSparseRegressor", "PrivateSearchCV", "SparseRegressor"])
def test_parameters_that_a_docstring_lists_together_have_one_default(name):
    """The reference gives all of them the default of the first."""
    estimator = getattr(importlib.import_module("thresher"), name)
    listed = inspect.getdoc(estimator).split("Parameters\n-")[1].split("Attributes\n-")[0]
    defaults = {key: repr(each.default) for key, each in inspect.signature(estimator).parameters.items()}
    for names in re.findall(r"^(\w+(?:, \w+)*)(?: :.*)?$", listed, flags=re.MULTILINE):
        assert len({defaults[each] for each in names.split(", ")}) == 1, names


def test_the_command_line_page_has_every_command(site):
    words = " ".join(Page(site / "api" / "cli.html").words)
    for command in ("fit", "plan", "ledger grant", "federate run"):
        assert f"Usage: thresher {command} [OPTIONS]" in words


@pytest.fixture
def render():
    pytest.importorskip("latex2mathml", reason="latex2mathml is not installed: pip install 'thresher[docs]'")
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install 'thresher[docs]'")
    from markdown import markdown

    from github_markdown import GitHubMarkdown, fenced_formula

    fence = {"name": "math", "class": "formula", "format": fenced_formula}
    settings = {"pymdownx.superfences": {"custom_fences": [fence]}}
    return lambda text: markdown(
        text, extensions=["pymdownx.superfences", GitHubMarkdown()], extension_configs=settings
    )


def test_formulas_become_mathml_within_a_line_and_on_their_own(render):
    html = render("The margin $`x_i^\\top \\theta`$.\n\n```math\n\\sum_{i=1}^n \\|x_i\\|_2^2\n```\n")
    inline, display = re.findall(r"<math.*?</math>", html, flags=re.DOTALL)
    assert 'display="inline"' in inline
    assert "<mi>i</mi>" in inline
    assert 'display="block"' in display
    assert "<munderover>" in display or "<msubsup>" in display
    assert "`" not in html


@pytest.mark.parametrize("latex", [r"\nosuchcommand x", r"\frac{a}{b", r"\begin{aligned} a &= b \end{aligned}", "x_"])
@pytest.mark.parametrize("frame", ["a $`{}`$ b", "```math\n{}\n```\n"])
def test_a_formula_that_cannot_be_drawn_ends_the_build(latex, frame, render):
    with pytest.raises(Exception, match="formula"):
        render(frame.format(latex))


def test_products_in_angle_brackets_are_no_tags(render):
    assert "&lt;x, theta&gt;" in render("f(<x, theta>) is public")
    assert "&lt;g + noise, v&gt;" in render("where <g + noise, v> is least")
    assert '<b class="x">' in render('a <b class="x">tag</b>')
