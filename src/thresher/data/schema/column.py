"""What is publicly known about one column of a table: its role, its bounds or categories, and what fills its gaps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date, datetime
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

__all__ = ["Bound", "Category", "Column", "Role"]

Role = Literal["feature", "target", "person", "ignore"]

Bound: TypeAlias = Any
"""A number or a date: of both, a pair has a middle."""
Category: TypeAlias = str | float

Declared: TypeAlias = Any
"""What a file declares under a key, before it is checked."""

INDICATOR = "indicator"
KEYS_OF = {
    "number": {"bounds", "typical", "unit", "missing", "outside", "scale", "read_from_data"},
    "date": {"bounds", "typical", "unit", "missing", "outside", "scale", "read_from_data", "format"},
    "category": {"categories", "base", "missing", "undeclared", "separator", "read_from_data"},
    "none": set(),
}
NOT_OF_TARGETS = {"base", "scale", "typical", "undeclared", "separator"}


@dataclass(frozen=True)
class Column:
    """One ``[columns.NAME]`` of a schema. Every cell is read by these facts alone, whatever the other rows hold.

    A column with ``bounds`` holds numbers, or dates if the bounds are dates; one with ``categories`` holds names. What
    cannot be read as what is declared counts as missing.

    Parameters
    ----------
    name : str
        As the table's first line has it.
    role : {"feature", "target", "person", "ignore"}, optional
        What the column is for; "person" says whose row it is.
    bounds : pair of numbers or dates, optional
        What the column can hold.
    categories : tuple of str or numbers, optional
        The names it can hold.
    typical : number or date, optional
        What is expected of a row about which nothing is known: where the scale has its zero. Default: the middle.
    base : str or number, optional
        The category that the others are compared with: it has no column of its own.
    unit : str, optional
        In words, for coefficients.
    missing : optional
        The constant that fills a gap, or "indicator" for a column of its own. Default: what is typical, or the base.
    outside : {"clip", "missing"}, optional
        What becomes of numbers outside of the bounds.
    undeclared : {"missing", "other"}, optional
        What becomes of names that are not declared.
    scale : bool, optional
        Whether a fit takes numbers in units of their bounds.
    format : str, optional
        Of dates, as strptime's; without it 2026-11-18.
    separator : str, optional
        Where one cell may hold several categories.
    read_from_data : bool, optional
        Whether these facts were read from the data: then no guarantee holds before they are replaced.

    Examples
    --------
    >>> from thresher.data.schema import Column
    >>> age = Column("age", bounds=(0, 110), typical=50, unit="years")
    >>> age.kind, age.holds, age.fill
    ('number', '0 to 110 years', 50.0)
    >>> Column.from_dict("ward", {"categories": ["north", "south"], "base": "north"}).holds
    '2 categories against north'
    """

    name: str
    role: Role = "feature"
    bounds: tuple[Bound, Bound] | None = None
    categories: tuple[Category, ...] | None = None
    typical: Declared = None
    base: Category | None = None
    unit: str = ""
    missing: Declared = None
    outside: Literal["clip", "missing"] = "clip"
    undeclared: Literal["missing", "other"] = "missing"
    scale: bool = True
    format: str | None = None
    separator: str | None = None
    read_from_data: bool = False

    @classmethod
    def from_dict(cls, name: str, entries: Declared) -> Column:
        """The column that a table of a file declares."""
        if not isinstance(entries, Mapping):
            raise ValueError(f"schema: {name!r} must be a table such as [columns.{name}]")
        known = {field.name for field in fields(cls)} - {"name"}
        for key in entries:
            if key not in known:
                raise ValueError(
                    f"schema: column {name!r} has the unknown key {key!r}; use one of {', '.join(sorted(known))}"
                )
        lists = {key: tuple(entries[key]) for key in ("bounds", "categories") if isinstance(entries.get(key), list)}
        column = cls(name, **{**entries, **lists})
        column._check(set(entries) - {"role"})
        return column

    def to_dict(self) -> dict[str, Declared]:
        """What differs from the defaults, for JSON and TOML."""
        entries = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "name"}
        defaults = {field.name: field.default for field in fields(self)}
        given = {key: value for key, value in entries.items() if value != defaults[key]}
        return {key: [_plain(v) for v in value] if isinstance(value, tuple) else _plain(value)
                for key, value in given.items()}  # fmt: skip

    # -- what kind it is -----------------------------------------------------------------------------------------------

    @property
    def kind(self) -> Literal["number", "date", "category", "none"]:
        """What it holds; "none" if no model uses it."""
        if self.role in ("person", "ignore"):
            return "none"
        if self.categories is not None:
            return "category"
        return "date" if self.bounds is not None and isinstance(_date(self.bounds[0]), date) else "number"

    @cached_property
    def span(self) -> tuple[float, float]:
        """The bounds as numbers; of dates, as days since the first."""
        low, high = self.bounds or (0.0, 0.0)
        if self.kind == "date":
            return 0.0, float((_date(high) - _date(low)).days)
        return float(low), float(high)

    @property
    def first_day(self) -> date:
        """Of a column of dates: day 0."""
        day: date = _date((self.bounds or (None,))[0])
        return day

    @property
    def of_numbers(self) -> bool:
        """Whether the categories are numbers: then 1, 1.0 and 01 are the same."""
        return all(isinstance(c, (int, float)) and not isinstance(c, bool) for c in self.categories or ())

    @property
    def units(self) -> str:
        """The unit of the column's coefficient, in words."""
        return self.unit or (f"days since {self.first_day}" if self.kind == "date" else "")

    @property
    def has_indicator(self) -> bool:
        """Whether a gap has a column of its own."""
        return self.missing == INDICATOR and (self.kind != "category" or INDICATOR not in (self.categories or ()))

    @property
    def zero(self) -> float:
        """Of numbers and dates: what is typical; by default the middle of the bounds."""
        return sum(self.span) / 2 if self.typical is None else self._as_number(self.typical)

    @property
    def fill(self) -> float:
        """Of numbers and dates: what stands for a gap; by default what is typical."""
        return self.zero if self.missing is None or self.has_indicator else self._as_number(self.missing)

    def _as_number(self, value: Declared) -> float:
        return float((_date(value) - self.first_day).days if self.kind == "date" else value)

    @property
    def holds(self) -> str:
        """What is declared, in words."""
        if self.kind == "none":
            return ""
        if self.kind != "category":
            low, high = (_plain(bound) for bound in self.bounds or ())
            return f"{low} to {high} {self.unit}".rstrip() + (", else missing" if self.outside == "missing" else "")
        other = " or other" if self.undeclared == "other" else ""
        several = ", several in a cell" if self.separator is not None else ""
        against = "" if self.base is None else f" against {self.base}"
        return f"{len(self.categories or ())} categories{other}{several}{against}"

    @property
    def gap(self) -> str:
        """What a gap counts as, in words."""
        if self.kind == "none":
            return ""
        if self.has_indicator:
            return "a column of its own"
        if self.kind != "category":
            given = self.typical if self.missing is None else self.missing
            return "the middle" if given is None else str(_plain(given))
        default = str((self.categories or ("",))[0]) if self.role == "target" else str(self.base or "no category")
        return default if self.missing is None else str(self.missing)

    # -- whether it makes sense ----------------------------------------------------------------------------------------

    def _check(self, given: set[str]) -> None:
        self._must(self.role in get_args(Role), "role", self.role, f"be one of {', '.join(get_args(Role))}")
        if self.kind == "none":
            return
        what = "a target" if self.role == "target" else "a feature"
        if (self.bounds is None) == (self.categories is None):
            raise ValueError(
                f"schema: column {self.name!r} is {what} and needs either bounds = [low, high] or categories = [...], "
                'from public knowledge; or role = "ignore"'
            )
        odd = given - KEYS_OF[self.kind] | (given & NOT_OF_TARGETS if self.role == "target" else set())
        for key in sorted(odd):
            raise ValueError(f"schema: column {self.name!r}: {key} means nothing for {what} of this kind; leave it out")
        for key, kind in (("unit", str), ("scale", bool), ("read_from_data", bool)):
            self._must(isinstance(getattr(self, key), kind), key, getattr(self, key), f"be a {kind.__name__}")
        self._must(self.outside in ("clip", "missing"), "outside", self.outside, 'be "clip" or "missing"')
        self._must(self.undeclared in ("missing", "other"), "undeclared", self.undeclared, 'be "missing" or "other"')
        if self.kind == "category":
            self._check_categories()
        else:
            self._check_bounds()
        if self.role == "target" and self.missing == INDICATOR:
            raise ValueError(
                f'schema: column {self.name!r}: a target has no indicator; missing = "..." must be a public constant'
            )

    def _check_bounds(self) -> None:
        bounds = self.bounds or ()
        self._must(isinstance(bounds, tuple) and len(bounds) == 2, "bounds", self.bounds, "be a pair [low, high]")
        a_date = "be dates such as 2020-12-31, both of them, in their order"
        if self.kind == "date":
            self._must(all(isinstance(_date(b), date) for b in bounds), "bounds", bounds, a_date)
        else:
            numbers = all(_is_number(b) for b in bounds)
            self._must(numbers, "bounds", bounds, "be two finite numbers, or two dates such as 2020-12-31")
        self._must(self.span[0] < self.span[1], "bounds", bounds, "be in their order, low below high")
        within = f"lie within the bounds {_value_text(bounds)}"
        if self.typical is not None:
            self._must(self._is_inside(self.typical), "typical", self.typical, within)
        if self.missing is not None and not self.has_indicator:
            self._must(self._is_inside(self.missing), "missing", self.missing, f'be "{INDICATOR}" or {within}')

    def _is_inside(self, value: Declared) -> bool:
        fits = isinstance(_date(value), date) if self.kind == "date" else _is_number(value)
        return fits and self.span[0] <= self._as_number(value) <= self.span[1]

    def _check_categories(self) -> None:
        names = self.categories or ()
        self._must(isinstance(names, tuple) and len(names) > 0, "categories", names, "be a list with at least one name")
        texts = all(isinstance(c, str) and c.strip() == c and c for c in names)
        plain = "be all text (not empty, no blanks at the ends) or all numbers"
        self._must(texts or self.of_numbers, "categories", list(names), plain)
        self._must(len(set(names)) == len(names), "categories", list(names), "all be different")
        if self.role == "target":
            self._must(len(names) > 1, "categories", list(names), "be at least two classes")
        if self.base is not None:
            self._must(self.base in names, "base", self.base, "be one of the categories")
            self._must(
                self.separator is None, "base", self.base, "be left out where a cell may hold several categories"
            )
        if self.missing is not None and not self.has_indicator:
            self._must(self.missing in names, "missing", self.missing, f'be "{INDICATOR}" or one of the categories')
        if self.separator is not None:
            good = isinstance(self.separator, str) and len(self.separator) > 0 and not self.of_numbers
            self._must(good, "separator", self.separator, "be text, for categories that are text")

    def _must(self, good: bool, key: str, value: Declared, what: str) -> None:
        if not good:
            raise ValueError(f"schema: column {self.name!r}: {key} = {_value_text(value)} must {what}")


def _is_number(value: Declared) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _date(value: Declared) -> Declared:
    """A date, or text that is one (JSON knows no dates); anything else as it is."""
    if isinstance(value, str):
        try:
            return date.fromisoformat(value)
        except ValueError:
            return value
    return value.date() if isinstance(value, datetime) else value


def _plain(value: Declared) -> Declared:
    return value.isoformat() if isinstance(value, date) else value


def _value_text(value: Declared) -> str:
    """The schema's own entry: public, but perhaps long."""
    text = str([_plain(v) for v in value]) if isinstance(value, (list, tuple)) else repr(_plain(value))
    return text if len(text) <= 80 else text[:77] + "..."
