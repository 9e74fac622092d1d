"""The text of a schema's first version, whether its facts were read from the data or estimated privately."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from statistics import median

from thresher.data.reading.csv import Dialect
from thresher.data.schema.column import Bound, Category

__all__ = [
    "ColumnFacts", "column_section", "column_sections", "file_header", "round_outwards", "round_within", "toml_string",
    "toml_table", "whole_years",
]  # fmt: skip

MANY = 50  # columns that are alike are declared together
READ = "read_from_data = true  # replace by public knowledge, then remove this line"

CELLS = """\
# Whatever a cell holds: outside of bounds it is clipped, and what is not declared or cannot be read counts as missing.
# A missing number counts as what is typical, and a missing category as the base, unless the column says otherwise:
# missing = 40, missing = "Private", or missing = "indicator" for a column of its own.
"""


@dataclass(frozen=True)
class ColumnFacts:
    """What a draft says about a column: bounds, categories, that it says whose row it is, or none of these and why."""

    name: str
    person: bool = False
    bounds: tuple[Bound, Bound] | None = None  # numbers, or dates
    typical: float | None = None
    format: str = ""  # of dates, if it is not 2026-11-18
    categories: tuple[Category, ...] = ()
    base: Category | None = None
    gaps: bool = False  # in more than a few rows, so that they may mean something
    ignored: str = ""
    read: bool = False  # from the data
    remark: str = ""


def file_header(comment: str, dialect: Dialect) -> str:
    """How the file begins: what it is, and how the table is written."""
    lines = [f"{key} = {toml_string(value)}" for key, value in dialect.to_dict().items()]
    return f"{comment}#\n{CELLS}\n{toml_table('table', lines)}"


def column_sections(columns: Sequence[ColumnFacts], target: str) -> list[str]:
    """Of all columns, in their order; then, if many are alike, one for all of these."""
    common = _shared_facts([facts for facts in columns if facts.name != target and facts.typical is not None])
    own = [facts for facts in columns if common is None or facts.name == target or not _covers(common, facts)]
    made = [_column_text(facts, is_target=facts.name == target) for facts in own]
    if common is None:
        return made
    remark = f"# {len(columns) - len(own)} columns of numbers have no entry of their own"
    return [*made, toml_table("others", [remark, *_of_feature(common), *([READ] if common.read else [])])]


def _shared_facts(numbers: Sequence[ColumnFacts]) -> ColumnFacts | None:
    """What can be said of the most of these columns at once; nothing, if they are fewer than ``MANY``."""
    often = Counter(replace(facts, name="", typical=None) for facts in numbers)
    covered = {kind: sum(count for other, count in often.items() if _covers(kind, other)) for kind in often}
    best = max(covered, key=covered.__getitem__, default=None)
    if best is None or best.bounds is None or covered[best] < MANY:
        return None
    middle = median(facts.typical for facts in numbers if facts.typical is not None and _covers(best, facts))
    return replace(best, typical=round_within(middle, best.bounds))


def _covers(common: ColumnFacts, facts: ColumnFacts) -> bool:
    """Whether a column is within the bounds and fills a quarter of them or more."""
    if facts.bounds is None or common.bounds is None or facts.gaps != common.gaps or isinstance(facts.bounds[0], date):
        return False
    (low, high), (least, most) = facts.bounds, common.bounds
    return bool(least <= low and high <= most and high - low >= (most - least) / 4)


def _column_text(facts: ColumnFacts, *, is_target: bool) -> str:
    """The section of a column."""
    if facts.person:
        return column_section(facts.name, ['role = "person"'])
    if facts.ignored:
        return column_section(facts.name, [f'role = "ignore"  # {facts.ignored}'])
    lines = [*(['role = "target"'] if is_target else []), *([f"# {facts.remark}"] if facts.remark else [])]
    lines += _of_target(facts) if is_target else _of_feature(facts)
    return column_section(facts.name, [*lines, *([READ] if facts.read else [])])


def _of_feature(facts: ColumnFacts) -> list[str]:
    if facts.bounds is None:
        lines = [f"categories = {_toml_list(facts.categories)}"]
        lines += [f"base = {_toml_value(facts.base)}  # what the others are compared with"]
    else:
        lines = [f"bounds = {_toml_list(facts.bounds)}"]
        if facts.typical is not None:
            expected = "# what is expected where nothing is known, about the median"
            lines += [f"typical = {_toml_value(facts.typical)}  {expected}", f"unit = {toml_string(_unit(facts.name))}"]
        lines += [f"format = {toml_string(facts.format)}"] if facts.format else []
    return [*lines, *(['missing = "indicator"  # a column of its own; or a constant'] if facts.gaps else [])]


def _of_target(facts: ColumnFacts) -> list[str]:
    missing = "# what a target that is missing counts as"
    if facts.bounds is None:
        lines = [f"categories = {_toml_list(facts.categories)}"]
        of_text = [name for name in facts.categories if isinstance(name, str)]
        return [*lines, *(f"missing = {_toml_value(name)}  {missing}" for name in of_text[:1])]
    low, high = facts.bounds
    unit = [] if isinstance(low, date) else [f"unit = {toml_string(_unit(facts.name))}"]
    unit += [f"format = {toml_string(facts.format)}"] if facts.format else []
    return [
        f"bounds = {_toml_list(facts.bounds)}",
        *unit,
        f"missing = {_toml_value(low + (high - low) / 2)}  {missing}",
    ]


def _unit(name: str) -> str:
    """What stands in brackets at the end of a name, as in "height (cm)"."""
    found = re.search(r"[(\[]([^()\[\]]{1,12})[)\]]$", name)
    return found[1] if found else ""


def column_section(name: str, lines: Iterable[str]) -> str:
    """The table of TOML that is about a column."""
    bare = re.fullmatch(r"[A-Za-z0-9_-]+", name) is not None
    return toml_table(f"columns.{name if bare else toml_string(name)}", lines)


def toml_table(name: str, lines: Iterable[str]) -> str:
    """A table of TOML."""
    return "\n".join([f"[{name}]", *lines, ""])


def toml_string(text: str) -> str:
    """A TOML string."""
    escapes = {"\\": "\\\\", '"': '\\"', "\t": "\\t", "\n": "\\n", "\r": "\\r"}
    escaped = "".join(escapes.get(c, c if c >= " " and c != "\x7f" else f"\\u{ord(c):04x}") for c in text)
    return f'"{escaped}"'


def _toml_list(values: Iterable[Bound | Category]) -> str:
    return f"[{', '.join(map(_toml_value, values))}]"


def _toml_value(value: Bound | Category) -> str:
    if isinstance(value, str):
        return toml_string(value)
    if isinstance(value, date):
        return str(value)
    return f"{value:.12g}" if abs(value) < 1e12 else f"{value:.12e}"


# -- rounding ----------------------------------------------------------------------------------------------------------


def round_within(value: float, bounds: tuple[float, float]) -> float:
    """To its first digit, or one that is a tenth of the range's; within the bounds."""
    low, high = bounds
    digits = [math.floor(math.log10(size)) for size in (abs(value), (high - low) / 10) if size > 0]
    return min(max(round(value, -min(digits)), low), high)


def whole_years(first: date, last: date) -> tuple[date, date]:
    """Whole years around these days."""
    return date(first.year, 1, 1), date(last.year, 12, 31)


def round_outwards(low: float, high: float) -> tuple[float, float]:
    """A range around these with ends that are 0, 1, 2 or 5 times a power of ten."""
    down = -_round_up(-low) if low < 0 else _round_down(low)
    up = _round_up(high) if high > 0 else -_round_down(-high)
    return (down, up) if down < up else (down, down + 1.0)


def _round_up(value: float) -> float:
    if value == 0:
        return 0.0
    power = 10.0 ** math.floor(math.log10(value))
    return next((step * power for step in (1.0, 2.0, 5.0) if value <= step * power), 10.0 * power)


def _round_down(value: float) -> float:
    if value == 0:
        return 0.0
    power = 10.0 ** math.floor(math.log10(value))
    return next((step * power for step in (5.0, 2.0) if step * power <= value), power)
