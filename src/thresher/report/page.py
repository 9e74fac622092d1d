"""One self-contained HTML page from headings, paragraphs, tables and figures."""

from __future__ import annotations

import io
import os
import re
import warnings
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "check_writable",
    "collapsible",
    "contents",
    "facts",
    "figure",
    "heading",
    "listing",
    "page",
    "paragraph",
    "side_by_side",
    "subheading",
    "svg",
    "table",
    "verdict",
]  # fmt: skip

SHORT = 24  # characters of a cell that are never broken into lines

# Charts are drawn dark on nothing; on a dark screen their lightness is turned round and their hues are kept.
STYLE = """
:root { color-scheme: light dark; --ink: #1d2433; --paper: #fff; --line: #d8dde6; --soft: #f4f6fa; --bad: #b3261e;
  --good: #1b6e3c; --link: #1f5fbf; }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --paper: #14181f; --line: #39414f;
  --soft: #1c222c; --bad: #ff8a80; --good: #7bd88f; --link: #8ab4f8; }
  figure svg { filter: invert(0.92) hue-rotate(180deg); } }
html { -webkit-text-size-adjust: 100%; scroll-padding-top: 3.5rem; }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 62rem;
  margin: 2rem auto 4rem; padding: 0 1.2rem; overflow-wrap: break-word; }
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0 0 1rem; }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 2.8rem 0 0.8rem; } h3 { font-size: 1rem; margin: 1.8rem 0 0.5rem; }
p, ul, figcaption { max-width: 46rem; } p.lead { font-size: 1.1rem; } a { color: var(--link); }
nav { position: sticky; top: 0; z-index: 2; background: var(--paper); border-bottom: 1px solid var(--line);
  padding: 0.6rem 0; margin-bottom: 1.2rem; white-space: nowrap; overflow-x: auto; font-size: 0.9rem; }
nav a { margin-right: 1.3rem; text-decoration: none; }
.wide { overflow-x: auto; margin: 0.8rem 0; }
table { border-collapse: separate; border-spacing: 0; font-size: 0.9rem; min-width: min(100%, 28rem); }
th, td { text-align: left; padding: 0.4rem 0.7rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th { background: var(--soft); vertical-align: bottom; line-height: 1.3; }
.number { text-align: right; font-variant-numeric: tabular-nums; } td.number, td.short { white-space: nowrap; }
th:first-child, td:first-child { position: sticky; left: 0; background: var(--paper); min-width: 6.5rem; }
th:first-child { background: var(--soft); }
.bad { color: var(--bad); font-weight: 600; } .good { color: var(--good); }
figure { margin: 1.5rem 0; } figure svg { max-width: 100%; height: auto; display: block; }
figure svg text { font-family: system-ui, sans-serif !important; }
.side { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); gap: 0 2rem; }
p.verdict { background: var(--soft); border-left: 4px solid var(--bad); padding: 0.6rem 0.9rem; border-radius: 4px; }
p.verdict.holds { border-color: var(--good); } p.verdict b { color: var(--bad); }
p.verdict.holds b { color: var(--good); }
p.caption { font-weight: 600; margin: 1.6rem 0 0.3rem; } p.small, figcaption { font-size: 0.88rem; opacity: 0.85; }
dl { display: grid; grid-template-columns: minmax(8rem, max-content) 1fr; margin: 0.8rem 0; font-size: 0.95rem; }
dt, dd { margin: 0; padding: 0.4rem 0.7rem; border-bottom: 1px solid var(--line); } dt { font-weight: 600; }
dd { min-width: 0; } code, pre { font-family: ui-monospace, monospace; font-size: 0.88em; }
code { background: var(--soft); padding: 0.1em 0.3em; border-radius: 3px; }
details { border: 1px solid var(--line); border-radius: 6px; padding: 0.6rem 0.9rem; margin: 1rem 0; }
summary { cursor: pointer; font-weight: 600; } details .wide, pre { max-height: 28rem; overflow: auto; }
@media (max-width: 40rem) { body { margin-top: 1.2rem; padding: 0 1rem; } h1 { font-size: 1.5rem; }
  table { font-size: 0.84rem; } th, td { padding: 0.35rem 0.5rem; } dl { grid-template-columns: 1fr; }
  dt { border: 0; padding-bottom: 0; } dt, dd { padding-left: 0; } }
@media print { body { max-width: none; margin: 0; font-size: 11pt; } nav, details.text { display: none; }
  h2, h3 { break-after: avoid; } figure, tr, p.verdict { break-inside: avoid; }
  figure svg { max-height: 22cm; } th:first-child, td:first-child { position: static; }
  .wide, details .wide { overflow: visible; max-height: none; }
  details.table::details-content { content-visibility: visible; height: auto; } }
"""


def page(title: str, parts: Iterable[str]) -> str:
    """The whole document."""
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{escape(title)}</title>\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )


def heading(text: str, anchor: str = "") -> str:
    """A title within the page, which links may lead to."""
    return f'<h2 id="{escape(anchor)}">{escape(text)}</h2>' if anchor else f"<h2>{escape(text)}</h2>"


def subheading(text: str) -> str:
    """A title below a heading."""
    return f"<h3>{escape(text)}</h3>"


def contents(items: Iterable[tuple[str, str]]) -> str:
    """Links to anchors of this page, always in sight."""
    return "<nav>" + "".join(f'<a href="#{escape(to)}">{escape(text)}</a>' for text, to in items) + "</nav>"


def verdict(text: str, holds: bool, words: tuple[str, str] = ("Holds.", "Does not hold.")) -> str:
    """An answer that is seen at once: a word for yes or no, and why."""
    kind, word = ("verdict holds", words[0]) if holds else ("verdict", words[1])
    return f'<p class="{kind}"><b>{escape(word)}</b> {_inline(text)}</p>'


def side_by_side(parts: Iterable[str]) -> str:
    """Figures beside each other where there is room, below each other on a phone."""
    return f'<div class="side">{"".join(parts)}</div>'


def paragraph(text: str, kind: str = "") -> str:
    """Sentences; what stands between backticks is code."""
    return f'<p class="{escape(kind)}">{_inline(text)}</p>' if kind else f"<p>{_inline(text)}</p>"


def _inline(text: str) -> str:
    """Text, with what stands between backticks as code, and percentages in one piece."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text)).replace(" %", "&nbsp;%")


def facts(items: Iterable[tuple[str, str]]) -> str:
    """Names and what they are, beside each other; on a phone, below each other."""
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{_inline(text)}</dd>" for name, text in items) + "</dl>"


def collapsible(summary: str, inner: str, kind: str) -> str:
    """Shown on a click. On paper a "table" is always shown and "text" never."""
    return f'<details class="{escape(kind)}"><summary>{escape(summary)}</summary>{inner}</details>'


def listing(text: str) -> str:
    """Text as it is, to copy."""
    return f"<pre>{escape(text)}</pre>"


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], kinds: Iterable[str] | None = None) -> str:
    """Text to the left, numbers to the right; ``kinds`` may give a class ("good", "bad") to each row's last cell."""
    rows = [list(row) for row in rows]
    numeric = [_is_number(cell) for cell in rows[0]] if rows else [False] * len(columns)
    head = "".join(
        f'<th class="number">{escape(column)}</th>' if right else f"<th>{escape(column)}</th>"
        for column, right in zip(columns, numeric, strict=True)
    )
    body = "".join(_row(row, kind) for row, kind in zip(rows, kinds or [""] * len(rows), strict=True))
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _is_number(cell: object) -> bool:
    return isinstance(cell, (int, float)) and not isinstance(cell, bool)


def _row(cells: Sequence[object], kind: str) -> str:
    shown = [f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in cells]
    classes = [
        "number" if _is_number(cell) else "short" if len(text) <= SHORT else ""
        for cell, text in zip(cells, shown, strict=True)
    ]
    classes[-1] = kind or classes[-1]
    return (
        "<tr>"
        + "".join(f'<td class="{c}">{escape(text)}</td>' for c, text in zip(classes, shown, strict=True))
        + "</tr>"
    )


def figure(drawing: Figure, caption: str) -> str:
    """A matplotlib figure as inline SVG."""
    drawn = svg(drawing, transparent=True).replace("<svg ", f'<svg role="img" aria-label="{escape(caption)}" ', 1)
    return f"<figure>{drawn}<figcaption>{escape(caption)}</figcaption></figure>"


def svg(drawing: Figure, transparent: bool = False) -> str:
    """A matplotlib figure with its text as text; the same figure gives the same text."""
    import matplotlib as mpl

    buffer = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "thresher"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the reader's fonts count
        drawing.savefig(buffer, format="svg", bbox_inches="tight", metadata=nothing, transparent=transparent)
    text = buffer.getvalue()
    return re.sub(r' id="[A-Za-z0-9.]+_\d+"', "", text[text.index("<svg") :])  # several on one page have the same


def check_writable(path: Path, name: str = "--report") -> None:
    """Refuse a report that could not be made in the end, before anything is computed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ValueError(f"{name}={str(path)!r} needs matplotlib; run: pip install 'thresher[report]'") from None
    if not os.access(path.parent, os.W_OK) or path.is_dir() or (path.exists() and not os.access(path, os.W_OK)):
        raise ValueError(f"{name}={str(path)!r} cannot be written; give a file in a folder that exists and is writable")
