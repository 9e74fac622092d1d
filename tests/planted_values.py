"""Rows with planted values, bad input of every kind, and a scan for the planted values in all that was said."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import io
import logging
import re
import traceback
import warnings

import numpy as np
import pandas as pd
import polars as pl
from scipy import sparse

NUMBER = float("918273" + ".645")  # in two parts: tracebacks quote source lines
WORD = "Zaphod" + "Quux"
N, D = 217, 4  # a number of rows that nothing else has

# repr, %g, %d, %e, dates of birth; other numbers may hold the digits of the year
VALUES = re.compile(r"918[,_]?27[34]|9\.18\d*e\+?0?5|zaphod|(?<![\d.])1977(?!\d)", re.IGNORECASE)
ROWS = re.compile(r"(?<![\d.])(?<!line )21[267](?!\d)")

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (N, D))
X[7, 2] = NUMBER
y = 2 * X[:, 0]
y[9] = NUMBER
two = (X[:, 0] > 0).astype(int)
people = [f"{WORD}{at // 2}" for at in range(N)]


def with_cell(value):
    cells = X.astype(object)
    cells[3, 1] = value
    return cells


def frame(value):
    return pd.DataFrame(with_cell(value), columns=list("abcd"))


def column(values):
    return pl.DataFrame({"a": X[:, 0], "b": values})


BAD_ROWS = {
    "text in an array": lambda: with_cell(WORD),
    "an array of text": lambda: with_cell(WORD).astype(str),
    "an array of bytes": lambda: with_cell(WORD).astype(str).astype("S"),
    "text in lists": lambda: with_cell(WORD).tolist(),
    "text in a frame": lambda: frame(WORD),
    "strings of pandas": lambda: frame(WORD).astype({"b": "string"}),
    "categories": lambda: frame(WORD).astype({"b": str}).astype({"b": "category"}),
    "dates": lambda: frame(0).assign(b=pd.Timestamp("1977-03-05")),
    "periods": lambda: frame(0).assign(b=pd.Period("1977-03")),
    "ranges": lambda: frame(0).assign(b=pd.Interval(0, NUMBER)),
    "a dict": lambda: frame({"k": NUMBER}),
    "a list": lambda: frame([NUMBER, NUMBER]),
    "NA": lambda: frame(pd.NA),
    "None": lambda: frame(None),
    "a huge integer": lambda: with_cell(10**400 + 918273645),
    "a complex number": lambda: frame(complex(NUMBER, 1)),
    "complex numbers": lambda: X.astype(complex) + 1j * NUMBER,
    "NaN": lambda: np.where(X == NUMBER, np.nan, X),
    "infinity": lambda: np.where(X == NUMBER, np.inf, X),
    "one column": lambda: X[:, 2],
    "one number": lambda: NUMBER,
    "three dimensions": lambda: X[None],
    "lists of several lengths": lambda: [row[: 3 + (at == 0)].tolist() for at, row in enumerate(X)],
    "a series": lambda: pd.Series(X[:, 2]),
    "dicts": lambda: [{"a": value} for value in X[:, 2]],
    "a set": lambda: set(X[:, 2]),
    "a structured array": lambda: np.array([tuple(row) for row in X], dtype=[(c, "f8") for c in "abcd"]),
    "text of polars": lambda: column([WORD] * N),
    "dates of polars": lambda: column([datetime.date(1977, 3, 5)] * N),
    "lists of polars": lambda: column([[NUMBER]] * N),
    "structs of polars": lambda: column([{"k": NUMBER}] * N),
    "decimals of polars": lambda: column(pl.Series([decimal.Decimal("918273.645")] * N)),
    "objects of polars": lambda: column(pl.Series([{NUMBER}] * N, dtype=pl.Object)),
    "a sparse NaN": lambda: sparse.csr_array(np.where(X == NUMBER, np.nan, X)),
    "a sparse vector": lambda: sparse.coo_array(X[:, 2]),
    "one row": lambda: X[7:8],
    "no rows": lambda: X[:0],
    "no columns": lambda: X[:, :0],
    "too few rows": lambda: X[:-5],
    "equal names": lambda: pd.DataFrame(with_cell(WORD), columns=list("abbd")),
}
BAD_TARGETS = {
    "text": lambda: np.array([WORD] * N),
    "text among numbers": lambda: np.append(y[:-1].astype(object), WORD),
    "NaN": lambda: np.append(y[:-1], np.nan),
    "infinity": lambda: np.append(y[:-1], np.inf),
    "nothing": lambda: None,
    "None": lambda: np.append(y[:-1].astype(object), None),
    "too few": lambda: y[:-5],
    "two columns": lambda: np.column_stack([y, y]),
    "a frame": lambda: pd.DataFrame({"t": y, "u": y}),
    "one number": lambda: NUMBER,
    "lists": lambda: [[1]] * (N - 1) + [[NUMBER, 2]],
    "dates": lambda: pd.Series([pd.Timestamp("1977-03-05")] * N),
    "a huge integer": lambda: [10**400 + 918273645] * N,
    "a label nobody declared": lambda: np.where(np.arange(N) == 5, WORD, "0"),
    "one label": lambda: np.array([NUMBER] * N),
    "sets": lambda: [{NUMBER}] * N,
    "bytes": lambda: np.array([WORD.encode()] * N),
}
BAD_PEOPLE = {
    "None": lambda: [None, *people[1:]],
    "nothing in one": lambda: ["", *people[1:]],
    "NaN": lambda: np.append(np.arange(N - 1.0), np.nan),
    "too few": lambda: people[:5],
    "lists": lambda: [[WORD]] * N,
    "one person": lambda: [WORD] * N,
    "two columns": lambda: np.array([[WORD] * 2] * N),
    "numbers too large": lambda: np.arange(N) + float(2**60) + 918273645.0,
    "dates": lambda: [datetime.date(1977, 3, 5)] * N,
    "a word": lambda: WORD,
}


class Everything(logging.Handler):
    """All lines of all loggers there are, with their arguments and the tracebacks they carry."""

    def __init__(self):
        super().__init__()
        self.lines, self.records = [], []
        self.setFormatter(logging.Formatter("%(name)s %(message)s"))

    def emit(self, record):
        self.records.append(record)
        self.lines.append(f"{self.format(record)} {record.args!r}")


@contextlib.contextmanager
def everything_logged():
    """At DEBUG, whether or not a logger passes its lines on."""
    handler, root = Everything(), logging.getLogger()
    known = [logging.getLogger(name) for name in logging.root.manager.loggerDict]
    alone = [logger for logger in known if not logger.propagate]
    levels = {logger: logger.level for logger in (root, *known)}
    for logger in (root, *alone):
        logger.addHandler(handler)
    for logger in levels:
        logger.setLevel(logging.DEBUG)
    try:
        yield handler
    finally:
        for logger in (root, *alone):
            logger.removeHandler(handler)
        for logger, level in levels.items():
            logger.setLevel(level)


def told_by(error):
    """What an exception tells: as a traceback prints it, and the arguments of each one that it carries, hidden ones
    (``raise ... from None``) as well."""
    told = ["".join(traceback.format_exception(error))]
    carried = [error]
    for each in carried:
        told += [str(each), repr(each.args), *getattr(each, "__notes__", [])]
        carried += [behind for behind in (each.__cause__, each.__context__) if behind not in (None, *carried)]
    return "\n".join(told)


def everything_said(call):
    """Log lines, warnings, standard output and error, and what an exception tells, while ``call`` runs."""
    out, told = io.StringIO(), ""
    with (
        everything_logged() as log,
        warnings.catch_warnings(record=True) as caught,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
    ):
        warnings.simplefilter("always")
        try:
            call()
        except Exception as error:
            told = told_by(error)
    return "\n".join([*log.lines, *(str(warning.message) for warning in caught), out.getvalue(), told]), told
