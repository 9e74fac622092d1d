r"""Pages are written for GitHub's Markdown; this makes the site read them the same way.

Formulas, $`x_i^\top \theta`$ within a line and ```math fences of their own, become MathML while the site is built:
browsers draw that by themselves, without a script, a font or a network. And <x, theta> is no HTML tag.
"""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import HtmlInlineProcessor, InlineProcessor
from mkdocs.config.defaults import MkDocsConfig
from pymdownx.superfences import SuperFencesException

FORMULA = r"\$`([^`]+)`\$"
ATTRIBUTE = r"""\s+[a-zA-Z_:][\w.:-]*(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'=<>`]+))?"""
TAG = rf"(</?[a-zA-Z][a-zA-Z0-9-]*(?:{ATTRIBUTE})*\s*/?>|<!--.*?-->)"  # <x, theta> and <g + noise, v> are none
BAR = r"<mo(?![^>]*form=)[^>]*>(&#x0007C;|&#x02016;|&#x02225;)</mo>"  # of an absolute value or a norm


class FormulaError(SuperFencesException):  # type: ignore[misc]
    """A formula that cannot be drawn as it was meant. (Any other exception in a fence would be swallowed.)"""


def mathml(latex: str, display: str) -> str:
    """The formula in MathML. What latex2mathml does not know it would print as it stands: that is an error here."""
    if len(re.findall(r"(?<!\\){", latex)) != len(re.findall(r"(?<!\\)}", latex)):
        raise FormulaError(f"formula {latex!r}: braces do not match")
    try:
        text = str(convert(latex, display=display))
        words = list(ElementTree.fromstring(text).itertext())  # noqa: S314
    except Exception as error:
        raise FormulaError(f"formula {latex!r}: {type(error).__name__} {error}") from error
    unknown = [word for word in words if "\\" in word]
    if unknown:
        raise FormulaError(f"formula {latex!r}: latex2mathml does not know {', '.join(unknown)}")
    # as operators, left bars would grow and right ones stand apart
    return re.sub(BAR, r'<mi mathvariant="normal">\1</mi>', text)


class InlineFormula(InlineProcessor):  # type: ignore[misc]
    """A formula within a line."""

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:  # noqa: N802
        return self.md.htmlStash.store(mathml(m[1].strip(), "inline")), m.start(), m.end()


def fenced_formula(source: str, *_: Any, **__: Any) -> str:
    """A formula of its own, in a box that scrolls if the screen is narrow."""
    return f'<div class="formula">{mathml(source.strip(), "block")}</div>'


class GitHubMarkdown(Extension):  # type: ignore[misc]
    """Both, for Python-Markdown."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        md.inlinePatterns.register(InlineFormula(FORMULA, md), "formula", 195)  # before code spans, at 190
        md.inlinePatterns.register(HtmlInlineProcessor(TAG, md), "html", 90)  # in place of the one that is there


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """MkDocs calls this once, before it reads a page."""
    config.markdown_extensions.append(GitHubMarkdown())
    fence = {"name": "math", "class": "formula", "format": fenced_formula}
    config.mdx_configs.setdefault("pymdownx.superfences", {})["custom_fences"] = [fence]
    return config
