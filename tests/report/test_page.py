"""Pages stand alone, hold what they were given, and let nothing through that is not text."""

import re
import sys
from html.parser import HTMLParser

import pytest
from matplotlib.figure import Figure

from thresher.report.page import check_writable, figure, heading, page, paragraph, table

VOID = {"meta", "path", "use", "rect", "br", "line", "circle"}


class Balance(HTMLParser):
    """Which elements are open; an element that is closed out of turn is an error."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag


def some_figure():
    drawing = Figure()
    drawing.subplots().plot([0, 1], [2, 3])
    return drawing


def some_page():
    rows = [("dp-ight", 2.0, 0.123456, "fine"), ("a <b> & c", 7, 1e-05, "fell")]
    return page(
        "Title & more",
        [
            heading("A heading"),
            paragraph("words", "lead"),
            figure(some_figure(), "what <it> shows"),
            table(("name", "claim", "bound", "verdict"), rows, ["good", "bad"]),
        ],
    )


def test_a_page_is_well_formed_and_complete():
    reader = Balance()
    reader.feed(some_page())
    assert reader.open == []
    assert {"h1", "h2", "figure", "svg", "table", "style", "p"} <= set(reader.seen)


def test_a_page_needs_nothing_from_elsewhere():
    text = some_page()
    assert not re.search(r'(src|href)="(?!#)', text)
    assert "@import" not in text
    assert "<script" not in text


def test_text_is_escaped_and_numbers_are_short():
    text = some_page()
    assert "a &lt;b&gt; &amp; c" in text
    assert "Title &amp; more" in text
    assert "what &lt;it&gt; shows" in text
    assert ">0.123<" in text
    assert '<td class="bad">fell</td>' in text


def test_the_same_figure_gives_the_same_text():
    assert figure(some_figure(), "") == figure(some_figure(), "")


def test_a_report_that_cannot_be_written_is_refused_beforehand(tmp_path, monkeypatch):
    check_writable(tmp_path / "report.html")
    with pytest.raises(ValueError, match=r"--report=.*cannot be written; give a file in a folder that exists"):
        check_writable(tmp_path / "nowhere" / "report.html")
    with pytest.raises(ValueError, match="cannot be written"):
        check_writable(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ValueError, match=r"needs matplotlib; run: pip install 'thresher\[report\]'"):
        check_writable(tmp_path / "report.html")
