"""Every link of the site leads somewhere, and no page needs another host."""

import re
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

from repository import ROOT
from site_pages import Page, pages_of


@pytest.fixture(scope="module")
def pages(site):
    return pages_of(site)


def dead(page, address, pages_at):
    """What is wrong with a link or a resource inside the site, if anything is."""
    name, anchor = urldefrag(address)
    target = (page.path.parent / unquote(name)).resolve() if name else page.path.resolve()
    if not target.is_file():
        return f"{page.path.name}: {address}: no such file"
    if anchor and target.suffix == ".html" and unquote(anchor) not in pages_at[target].anchors:
        return f"{page.path.name}: {address}: no such place"
    return None


def inside(address):
    return not urlsplit(address).scheme and not address.startswith("//")


def test_every_link_inside_the_site_leads_to_a_file_and_a_place_in_it(pages):
    at = {page.path.resolve(): page for page in pages.values()}
    wanted = [(page, address) for page in pages.values() for address in (*page.links, *page.resources)]
    assert len(wanted) > 1000
    assert [found for page, address in wanted if inside(address) and (found := dead(page, address, at))] == []


@pytest.mark.parametrize("path", sorted(ROOT.glob("*.md")), ids=lambda path: path.name)
def test_links_of_the_root_lead_to_files_of_the_repository(path):
    for address in re.findall(r"\]\(([^)]+)\)", path.read_text()):
        assert not inside(address) or (ROOT / urldefrag(address)[0]).is_file(), address


def test_a_dead_link_would_be_noticed(tmp_path):
    path = tmp_path / "bad.html"
    path.write_text(
        "<p id='here'><a href='#here'>a</a><a href='#there'>b</a><img src='none.png'><a href='c.html'>c</a>"
    )
    page = Page(path)
    found = [dead(page, address, {path.resolve(): page}) for address in (*page.links, *page.resources)]
    assert found == [
        None, "bad.html: #there: no such place", "bad.html: c.html: no such file", "bad.html: none.png: no such file",
    ]  # fmt: skip


def test_no_page_loads_anything_from_another_host(pages, site):
    assert [address for page in pages.values() for address in page.resources if not inside(address)] == []
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(\s*[\"']?(https?:)?//|@import", style.read_text(encoding="utf-8"))


def test_links_to_other_hosts_are_few_and_encrypted(pages, record_property):
    """They are listed, not fetched: a test needs no network."""
    outside = sorted({address for page in pages.values() for address in page.links if not inside(address)})
    record_property("links to other hosts", outside)
    assert [address for address in outside if not address.startswith("https://")] == []
