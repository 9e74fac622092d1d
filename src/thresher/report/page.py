"""One self-contained HTML page from headings, paragraphs, tables and figures."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

__all__ = [
    "bullets", "check_writable", "figure", "heading", "page", "paragraph", "side_by_side", "svg", "table", "verdict",
]  # fmt: skip

STYLE = """
:root { color-scheme: light dark; --ink: #1d2433; --paper: #fff; --line: #d8dde6; --soft: #f4f6fa; --bad: #b3261e;
  --good: #1b6e3c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --paper: #14181f; --line: #39414f; --soft: #1c222c;
  --bad: #ff8a80; --good: #7bd88f; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 62rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; line-height: 1.2; } h2 { font-size: 1.25rem; margin-top: 2.5rem; }
p.lead { font-size: 1.1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.9rem; width: 100%; }
th, td { text-align: left; padding: 0.35rem 0.6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th { background: var(--soft); } td.number { text-align: right; font-variant-numeric: tabular-nums; }
.bad { color: var(--bad); font-weight: 600; } .good { color: var(--good); }
figure { margin: 1.5rem 0; } figure svg { width: 100%; height: auto; background: #fff; border-radius: 6px; }
.side { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(22rem, 100%), 1fr)); gap: 0 1.5rem; }
p.verdict { background: var(--soft); border-left: 4px solid var(--bad); padding: 0.5rem 0.8rem; border-radius: 4px; }
p.verdict.holds { border-color: var(--good); } p.verdict b { color: var(--bad); }
p.verdict.holds b { color: var(--good); }
p.caption { font-weight: 600; margin-bottom: 0.3rem; } p.small { font-size: 0.85rem; opacity: 0.8; }
figcaption { font-size: 0.9rem; opacity: 0.85; }
@media print { body { max-width: none; } figure, tr { break-inside: avoid; } }
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
    return f'<h2 id="{escape(anchor)}">{escape(text)}</h2>' if anchor else f"<h2>{escape(text)}</h2>"


def bullets(items: Iterable[tuple[str, str]]) -> str:
    """Links to anchors of this page."""
    return "<ul>" + "".join(f'<li><a href="#{escape(to)}">{escape(text)}</a></li>' for text, to in items) + "</ul>"


def verdict(text: str, holds: bool) -> str:
    kind, word = ("verdict holds", "Holds.") if holds else ("verdict", "Does not hold.")
    return f'<p class="{kind}"><b>{word}</b> {escape(text)}</p>'


def side_by_side(parts: Iterable[str]) -> str:
    """Figures beside each other where there is room, below each other on a phone."""
    return f'<div class="side">{"".join(parts)}</div>'


def paragraph(text: str, kind: str = "") -> str:
    return f'<p class="{escape(kind)}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], kinds: Iterable[str] | None = None) -> str:
    """Text to the left, numbers to the right; ``kinds`` may give a class ("good", "bad") to each row's last cell."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    rows = [list(row) for row in rows]
    body = "".join(_row(row, kind) for row, kind in zip(rows, kinds or [""] * len(rows), strict=True))
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _row(cells: Sequence[Any], kind: str) -> str:
    classes = ["number" if isinstance(cell, (int, float)) else "" for cell in cells]
    classes[-1] = kind or classes[-1]
    shown = [f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in cells]
    return (
        "<tr>"
        + "".join(f'<td class="{c}">{escape(text)}</td>' for c, text in zip(classes, shown, strict=True))
        + "</tr>"
    )


def figure(drawing: Any, caption: str) -> str:
    """A matplotlib figure as inline SVG."""
    return f"<figure>{svg(drawing)}<figcaption>{escape(caption)}</figcaption></figure>"


def svg(drawing: Any) -> str:
    """A matplotlib figure with its text as text; the same figure gives the same text."""
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "thresher"}):
        drawing.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def check_writable(path: Path) -> None:
    """Refuse a report that could not be made in the end, before anything is computed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ValueError(f"--report={str(path)!r} needs matplotlib; run: pip install 'thresher[report]'") from None
    if not path.parent.is_dir() or path.is_dir():
        raise ValueError(f"--report={str(path)!r} cannot be written; give a file in a folder that exists")
