"""Every algorithm has a page that says the same things about it, and what is quoted is what was measured."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from repository import DOCS, ROOT
from thresher.algorithms import DENSE, LOCAL, REGISTRY
from thresher.federated import protocols

FOLDER = DOCS / "algorithms"
PAGES = sorted(page for page in FOLDER.glob("*.md") if page.name != "index.md")
HEADINGS = [
    "Idea",
    "Update rule",
    "What is released",
    "Guarantee",
    "Use it",
    "When it works, when it fails",
]
ALONE = {**REGISTRY, **DENSE, **LOCAL}
EVERY = sorted({*ALONE, *protocols.SPARSE, *protocols.DENSE})


def linked_from_the_index(name: str) -> set[str]:
    index = (FOLDER / "index.md").read_text()
    return set(re.findall(rf"\[`{re.escape(name)}`\]\(([\w-]+\.md)\)", index))


@pytest.mark.parametrize("name", EVERY)
def test_every_algorithm_is_in_the_index_and_named_by_the_pages_it_links(name):
    linked = linked_from_the_index(name)
    assert linked
    for page in linked:
        assert f"`{name}`" in (FOLDER / page).read_text()


@pytest.mark.parametrize("name", ALONE)
def test_every_hyperparameter_is_on_the_page(name):
    (page,) = linked_from_the_index(name) - {"federated.md"}
    text = (FOLDER / page).read_text()
    assert [field.name for field in fields(ALONE[name]()) if f"`{field.name}`" not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_page_has_the_same_headings_in_the_same_order(page):
    found = re.findall(r"^## (.*)$", page.read_text(), flags=re.MULTILINE)
    assert [heading for heading in found if heading in HEADINGS] == HEADINGS
    assert found[: len(HEADINGS)] == HEADINGS  # what else there is comes afterwards


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_page_has_an_example_whose_output_is_shown(page):
    assert re.search(r"```python\n.*?```\n\n```text\n", page.read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_page_is_linked_from_the_index(page):
    assert f"({page.name})" in (FOLDER / "index.md").read_text()


def measured_at_epsilon_1() -> dict[str, dict[str, str]]:
    """The tables of real sets that ``./dev accuracy`` prints, wherever the documentation keeps them."""
    texts = [path.read_text() for path in (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))]
    (block,) = [found for text in texts for found in re.findall(r"<!-- real -->(.*?)<!-- end -->", text, re.DOTALL)
                if "non-private IGHT" in found]  # fmt: skip
    sets = {}
    for part in re.split(r"\n(?=\w+, \d+ x \d+)", block.strip()):
        name, shape = re.match(r"(\w+), (\d+ x \d+, \d+) features", part).groups()
        without, trivial = re.search(r"IGHT (\S+), trivial (\S+)", part).groups()
        columns, values = (re.split(r" *\| *", line)[2:-1] for line in re.findall(r"^\| (?:epsilon|1) .*$", part, re.M))
        scores = dict(zip(columns, values, strict=True))
        sets[name] = {"shape": shape, "without": without, "trivial": trivial, **scores}
    return sets


def test_what_the_choosing_page_says_about_auto_is_what_was_measured():
    page = (DOCS / "choosing.md").read_text()
    (table,) = re.findall(r"<!-- auto -->(.*?)<!-- end -->", page, flags=re.DOTALL)
    rows = [re.split(r" *\| *", line)[1:-1] for line in table.strip().splitlines()[2:]]
    measured = measured_at_epsilon_1()
    assert [row[0].removesuffix(" (R^2)") for row in rows] == list(measured)
    for row in rows:
        name, shape, taken, auto, other, trivial, without = row
        found = measured[name.removesuffix(" (R^2)")]
        stated = (shape, auto, trivial, without)
        assert stated == (found["shape"], found["auto"], found["trivial"], found["without"])
        others = {key: float(value) for key, value in found.items() if key in REGISTRY and key != taken}
        best, score = other.split()
        assert others[best] == float(score) == max(others.values())
        assert max(others.values()) - float(auto) <= 0.01  # "first, or within .01 of the first"
