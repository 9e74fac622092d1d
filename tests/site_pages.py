"""What a page of the built site refers to, and what it shows."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

UNCLOSED = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
UNSEEN = {"button", "math", "nav", "script", "style", "svg"}
BLOCKS = {"blockquote", "br", "div", "h1", "h2", "h3", "h4", "li", "p", "pre", "td", "th", "tr"}


class Page(HTMLParser):
    """One page: its anchors, its links, the resources it loads, and the words and formulas of its article."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.resources: list[str] = []
        self.formulas = 0
        self._text: list[tuple[str, bool]] = []  # and whether it is code
        self._inside: list[str] = []  # the open elements, from the article on
        self.feed(path.read_text(encoding="utf-8"))

    @property
    def words(self) -> list[str]:
        """The words of the article, without formulas."""
        return "".join(text for text, _ in self._text).split()

    @property
    def prose(self) -> str:
        """The same without code."""
        return " ".join(text for text, code in self._text if not code)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.anchors |= {values[key] for key in ("id", "name") if values.get(key)}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        elif tag != "a":
            self.resources += [values[key] for key in ("src", "href", "srcset", "poster", "data") if values.get(key)]
        self.formulas += tag == "math"
        if (tag == "article" or self._inside) and tag not in UNCLOSED:
            self._inside.append("nav" if values.get("class") == "headerlink" else tag)
        if tag in BLOCKS:
            self._text.append((" ", False))

    def handle_endtag(self, tag):
        if self._inside and tag not in UNCLOSED:
            self._inside.pop()
        if tag in BLOCKS:
            self._text.append((" ", False))

    def handle_data(self, data):
        if self._inside and not UNSEEN & set(self._inside):
            self._text.append((data, "code" in self._inside))


def pages_of(site: Path) -> dict[str, Page]:
    """All pages but 404.html, whose links begin at the root of a server."""
    return {str(path.relative_to(site)): Page(path) for path in sorted(site.rglob("*.html")) if path.name != "404.html"}
