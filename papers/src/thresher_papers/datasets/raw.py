"""Adult and diabetes130 as the tables they once were: names, categories and gaps, for whoever wants to try a schema."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher_papers.datasets.attributes import adult_fields
from thresher_papers.datasets.files import Files, files_of
from thresher_papers.datasets.patients import read_stays

__all__ = ["RAW_TABLES", "write_table"]

Rows = tuple[list[str], Iterable[Any]]


def write_table(
    name: str, path: str | Path, *, test: bool = False, folder: str | Path | None = None, download: bool = False
) -> None:
    """Write the training (or test) rows of "adult" or "diabetes130" as a .csv file with the fields of the original.

    Files are looked for as by ``load``.
    """
    if name not in RAW_TABLES:
        raise ValueError(f"name={name!r} must be one of {', '.join(map(repr, RAW_TABLES))}")
    header, rows = RAW_TABLES[name](files_of(name, folder, download), test)
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def _adult(here: Files, test: bool) -> Rows:
    """14 fields and the income; what the census did not know is an empty cell."""
    fields = adult_fields(here)[test]
    texts = [
        _texts(codes, found) for codes, found in zip(np.asarray(fields.codes).T, fields.levels.values(), strict=True)
    ]
    income = np.where(fields.y > 0, ">50K", "<=50K")
    numbers = np.asarray(fields.numbers).astype(np.int64).T
    return [*fields.number_names, *fields.levels, "income"], zip(*numbers.tolist(), *texts, income, strict=True)


def _diabetes130(here: Files, test: bool) -> Rows:
    """Whose stay, 8 counts, 33 attributes, the diagnoses in one cell, and whether the patient came back."""
    X, data, names = read_stays(here)
    kept = data["is_test"].astype(bool) == test
    X = X.tocsc()[kept]
    columns: dict[str, Any] = {"patient": data["patient"][kept].tolist()}
    levels: dict[str, list[tuple[str, int]]] = {}
    for at, name in enumerate(names):
        if name.endswith("/max"):
            columns[name.removesuffix("/max")] = _counts(X[:, [at]].toarray()[:, 0])
        else:
            field, level = name.split("=", 1)
            levels.setdefault(field, []).append((level, at))
    for field, found in levels.items():
        columns[field] = _joined(X[:, [at for _, at in found]], ["" if level == "?" else level for level, _ in found])
    columns["readmitted"] = np.where(data["y_any"][kept] > 0, "yes", "no").tolist()
    return list(columns), zip(*columns.values(), strict=True)


def _texts(codes: NDArray[Any], found: Any) -> list[str]:
    """Codes as names; a question mark is a gap."""
    names = np.array(["" if name == "?" else name for name in found] + [""])
    return names[codes].tolist()  # type: ignore[no-any-return]


def _counts(parts: NDArray[Any]) -> list[int]:
    """Whole numbers of which only parts of the largest are stored: the least part is 1."""
    least = parts[parts > 0].min(initial=1.0)
    return np.rint(parts / least).astype(np.int64).tolist()  # type: ignore[no-any-return]


def _joined(indicators: Any, names: list[str]) -> list[str]:
    """The names of the columns that are set in each row."""
    rows = indicators.tocsr()
    return [";".join(names[at] for at in rows.indices[low:high]) for low, high in pairwise(rows.indptr)]


RAW_TABLES = {"adult": _adult, "diabetes130": _diabetes130}
