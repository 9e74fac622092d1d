"""The schema: a small TOML file per table with what is publicly known about it, and the rows read as it says."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from thresher.data.concealment import without_causes
from thresher.data.reading.csv import PLAIN, Dialect
from thresher.data.reading.source import Source, source_in_memory, source_of
from thresher.data.schema.cells import codes_of, ids_of, numbers_of
from thresher.data.schema.column import Column, Declared
from thresher.data.schema.encoding import EncodedCells, Encoding, Matrix
from thresher.data.tables import first_names
from thresher.data.typing import Cell, Cells, Table, Values
from thresher.privacy.progress import parts_bar
from thresher.privacy.strict_json import reject_device

__all__ = ["READ_BY", "Schema", "Spent", "TableRows"]

Entries: TypeAlias = Mapping[str, Declared]
"""What a file of TOML holds, or a saved model."""

READ_BY = "rows were read by a schema with sha256 "


@dataclass(frozen=True)
class TableRows:
    """What a fit takes.

    Attributes
    ----------
    X : array or sparse array
        Scaled rows.
    y : array
        Targets.
    people : list or None
        Whose each row is, if the schema names people.
    """

    X: Matrix
    y: Values
    people: list[Cell] | None


@dataclass(frozen=True)
class Spent:
    """What bounds and categories cost that were estimated privately.

    Attributes
    ----------
    epsilon, delta : float
        Of the rows' budget.
    """

    epsilon: float
    delta: float


@dataclass(frozen=True)
class Schema:
    """Public facts about a table. See docs/schema.md for the file.

    ``Schema.read("table.toml")`` reads a file; estimators take a schema, its path, or the dictionary of a saved model.

    Parameters
    ----------
    columns : tuple of Column
        What is declared column by column: one target, features, perhaps the one that says whose row it is.
    others : Column, optional
        What holds for columns without an entry of their own. Without it there may be none.
    dialect : Dialect, optional
        How a .csv file is written.
    spent : Spent, optional
        What the facts cost that were estimated privately.

    Examples
    --------
    >>> from thresher import Schema
    >>> age = {"bounds": [0, 110], "unit": "years"}
    >>> schema = Schema.from_dict({"columns": {"age": age, "stay": {"role": "target", "bounds": [0, 40]}}})
    >>> schema
    Schema(2 columns, target='stay')
    >>> schema.task, schema.encoding().names, schema.encoding().row_norm
    ('regression', ['age'], 1.0)
    """

    columns: tuple[Column, ...]
    others: Column | None = None  # what holds for columns without an entry of their own
    dialect: Dialect = PLAIN
    spent: Spent | None = None

    # -- files and dictionaries ----------------------------------------------------------------------------------------

    @classmethod
    def of(cls, value: Schema | Entries | str | Path) -> Schema:
        """The schema that an argument means."""
        if isinstance(value, Schema):
            return value
        return cls.from_dict(value) if isinstance(value, Mapping) else cls.read(value)

    @classmethod
    @without_causes
    def read(cls, path: str | Path) -> Schema:
        """The schema that a TOML file holds."""
        reject_device(path)
        try:
            with Path(path).open("rb") as file:
                entries = tomllib.load(file)
        except OSError:
            raise ValueError(
                f"schema={str(path)!r} cannot be read; give a file such as thresher schema draft writes"
            ) from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ValueError(f"schema={str(path)!r} is not TOML: {error}") from None
        return cls.from_dict(entries)

    @classmethod
    def from_dict(cls, entries: Entries) -> Schema:
        """The schema that the tables of a file make, or those that ``to_dict`` made."""
        try:
            return cls._from(dict(entries))
        except (AttributeError, LookupError, TypeError, ArithmeticError) as error:
            raise ValueError(
                f"schema: an entry holds what none can hold ({type(error).__name__}); compare it with docs/schema.md"
            ) from None

    @classmethod
    def _from(cls, entries: dict[str, Declared]) -> Schema:
        table, columns, others, spent = (entries.pop(key, {}) for key in ("table", "columns", "others", "spent"))
        for unknown in entries:
            raise ValueError(f"schema: [{unknown}] is unknown; use [table], [columns.NAME], [others] and [spent]")
        named = [Column.from_dict(name, column) for name, column in columns.items()]
        rest = Column.from_dict("[others]", others) if others else None
        schema = cls(tuple(named), rest, Dialect.from_dict(table), Spent(**spent) if spent else None)
        schema._check()
        return schema

    def to_dict(self) -> dict[str, Declared]:
        """For JSON."""
        made: dict[str, Declared] = {
            "table": self.dialect.to_dict(),
            "columns": {c.name: c.to_dict() for c in self.columns},
        }
        if self.others is not None:
            made["others"] = self.others.to_dict()
        if self.spent is not None:
            made["spent"] = {"epsilon": self.spent.epsilon, "delta": self.spent.delta}
        return made

    @property
    def digest(self) -> str:
        """A fingerprint of everything the schema says."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

    @property
    def read_by(self) -> str:
        """How a certificate tells of it."""
        return f"{READ_BY}{self.digest}"

    def __repr__(self) -> str:
        return f"Schema({len(self.columns)} columns, target={self.target.name!r})"

    # -- what it says --------------------------------------------------------------------------------------------------

    @cached_property
    def target(self) -> Column:
        """The column that a model predicts."""
        return self._only("target")

    @cached_property
    def person(self) -> Column | None:
        """The column that says whose row it is, if there is one."""
        return self._only("person") if any(column.role == "person" for column in self.columns) else None

    @cached_property
    def features(self) -> tuple[Column, ...]:
        """The columns that a model may use."""
        return tuple(column for column in self.columns if column.role == "feature")

    @property
    def task(self) -> Literal["regression", "classification"]:
        """What the target asks for: it has bounds, or classes."""
        return "classification" if self.target.kind == "category" else "regression"

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What a guarantee rests on beside the code, for certificates."""
        read = [column.name for column in self.columns if column.read_from_data]
        if not read:
            return ()
        return (
            f"the schema's bounds and categories of {first_names(read)} are public: it says that they were read from "
            "the data; put public knowledge in their place and remove read_from_data",
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What else there is to know."""
        notes = (self.read_by,)
        if self.spent is None:
            return notes
        return (
            *notes,
            f"beside this fit, the schema's own estimates cost epsilon={self.spent.epsilon:g} at "
            f"delta={self.spent.delta:g} of the same rows: thresher.privacy.certificate.combine adds certificates up",
        )

    def encoding(self, *, centred: bool = True) -> Encoding:
        """The matrix that the features become."""
        return Encoding(self.features, centred, self.dialect)

    def for_columns(self, names: list[str], *, with_target: bool = True) -> Schema:
        """The schema of a table with these columns: [others] spelled out. What is declared must be there."""
        needed = [column for column in self.columns if column.role != "ignore"]
        _require(names, [column.name for column in needed if with_target or column.role != "target"])
        known = {column.name for column in self.columns}
        extra = [at for at, name in enumerate(names) if name not in known]
        if extra and self.others is None:
            where = first_names([str(at + 1) for at in extra])
            raise ValueError(
                f"DATA has {len(extra)} column(s) that the schema does not declare (from the left, number {where}); "
                'declare them, or write [others] with role = "ignore"'
            )
        rest = self.others
        added = () if rest is None else tuple(replace(rest, name=names[at]) for at in extra)
        whole = replace(self, columns=(*self.columns, *added), others=None)
        whole._check()
        return whole

    def extends(self, other: Schema) -> bool:
        """Whether this is the other with its [others] spelled out."""
        return self.columns[: len(other.columns)] == other.columns

    # -- rows ----------------------------------------------------------------------------------------------------------

    @without_causes
    def rows(
        self, data: Table | str | Path, y: Cells = None, *, centred: bool = True, verbose: int = 0
    ) -> tuple[Schema, TableRows]:
        """The rows of a file or frame as a fit takes them, and the schema with its columns spelled out.

        ``y`` takes the place of the target's column.
        """
        source = source_of(data, self.dialect)
        schema = self.for_columns(source.names, with_target=y is None)
        encoding = schema.encoding(centred=centred)
        wanted = [
            *schema.features,
            *([schema.person] if schema.person else []),
            *([] if y is not None else [self.target]),
        ]
        kept: list[EncodedCells] = []
        people: list[Cell] = []
        targets = [] if y is None else [schema._targets(y)]
        for piece in _pieces(source, [column.name for column in wanted], verbose):
            kept.append(encoding.read(piece))
            people += ids_of(piece[schema.person.name]) if schema.person else []
            targets += [schema._targets(piece[self.target.name])] if y is None else []
        return schema, TableRows(
            encoding.matrix(kept, scaled=True),
            np.concatenate(targets) if targets else np.empty(0),
            people if schema.person else None,
        )

    def features_of(self, data: Table | str | Path, *, verbose: int = 0) -> Iterator[Table]:
        """The features of a file or frame in original units, piece by piece."""
        encoding = self.encoding()
        for piece in _pieces(source_of(data, self.dialect), [column.name for column in self.features], verbose):
            yield encoding.matrix([encoding.read(piece)], scaled=False)

    def pieces_of(self, data: Table | str | Path) -> Iterator[Source]:
        """A table that need not fit into memory, piece by piece, each as good as a table."""
        source = source_of(data, self.dialect)
        for piece in _pieces(source, [column.name for column in self.features], 0):
            yield source_in_memory(piece)

    def _targets(self, cells: Cells) -> Values:
        target = self.target
        if target.kind != "category":
            values = numbers_of(target, cells, self.dialect)
            return np.where(np.isnan(values), target.fill, values)
        classes = np.array(target.categories)
        codes = codes_of(target, cells)
        instead = 0 if target.missing is None else (target.categories or ()).index(target.missing)
        return classes[np.where(codes < 0, instead, codes)]

    def _only(self, role: str) -> Column:
        found = [column for column in self.columns if column.role == role]
        if len(found) != 1:
            raise ValueError(f'schema: {len(found)} columns have role = "{role}"; give this role to one column')
        return found[0]

    def _check(self) -> None:
        _ = self.target, self.person
        if not self.features and (self.others is None or self.others.role != "feature"):
            raise ValueError('schema: no column is a feature; give role = "feature" to those a model may use')
        for what, names in (("columns", [c.name for c in self.columns]), ("encoded columns", self.encoding().names)):
            if len(set(names)) < len(names):
                double = next(name for name in names if names.count(name) > 1)
                raise ValueError(f"schema: two {what} would be named {double!r}; rename one")


def _pieces(source: Source, wanted: list[str], verbose: int) -> Iterator[Mapping[str, Cells]]:
    """The cells of the wanted columns."""
    _require(source.names, wanted)
    with parts_bar("reading", enabled=verbose > 0) as tell:
        yield from source.pieces(wanted, tell)


def _require(names: list[str], wanted: list[str]) -> None:
    """The wanted columns must be there, each once. Names of other columns are not told: they may be a person's row."""
    there = Counter(names)
    for name in wanted:
        if there[name] != 1:
            what = "is there twice" if name in there else "is missing; do its first line and the schema agree?"
            raise ValueError(f"DATA: column {name!r} of the schema {what}")
