"""Every public class and function tells of all its parameters, and its examples do what they show."""

from __future__ import annotations

import doctest
import inspect
import re
import warnings
from importlib import import_module
from importlib.util import find_spec

import pytest

import thresher

ROOMS = (
    "accounting", "algorithms", "audit", "data.schema", "estimates.counts", "estimates.draft", "federated", "ledger",
    "local", "planning",
)  # fmt: skip
OPTIONAL = ("torch",) if find_spec("torch") and find_spec("opacus") else ()
SHOWN = {
    f"{module.__name__}.{name}": thing
    for module in (thresher, *(import_module(f"thresher.{room}") for room in (*ROOMS, *OPTIONAL)))
    for name in module.__all__
    if callable(thing := getattr(module, name))
    and not (inspect.isclass(thing) and (issubclass(thing, BaseException) or getattr(thing, "_is_protocol", False)))
}
PUBLIC = {thing: thing.__name__ for thing in SHOWN.values()}
"""Every public class and function, once."""


def parameters_told(text):
    """The names in a numpydoc section of parameters, "a, b : float" being two."""
    section = re.search(r"Parameters\n-{10}\n(.*?)(?:\n\n\w+\n-{3,}\n|\Z)", text, re.DOTALL)
    lines = [] if section is None else [line for line in section[1].splitlines() if re.match(r"\w", line)]
    return {name for line in lines for name in line.partition(" : ")[0].split(", ")}


def examples_in(thing):
    return [test for test in doctest.DocTestFinder(recurse=False).find(thing) if test.examples]


@pytest.mark.parametrize("thing", PUBLIC, ids=PUBLIC.values())
def test_every_parameter_is_told_of_and_no_other(thing):
    text = inspect.getdoc(thing)
    assert text is not None
    taken = {name.lstrip("*") for name in inspect.signature(thing).parameters if not name.startswith("_")}
    assert parameters_told(text) == taken
    assert not re.search("arameters (that are not listed )?are those of", text)


@pytest.mark.parametrize("thing", PUBLIC, ids=PUBLIC.values())
def test_the_example_shows_what_happens(thing, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (example,) = examples_in(thing)
    told = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=told.append)
    assert not told, "".join(told)


def test_what_is_left_out_or_wrong_is_seen():
    def parted(a, b):
        """Something.

        Parameters
        ----------
        a : int
            One.

        Examples
        --------
        >>> 1 + 1
        3
        """

    assert parameters_told(inspect.getdoc(parted)) == {"a"}
    told = []
    doctest.DocTestRunner().run(*examples_in(parted), out=told.append)
    assert "Got:\n    2" in "".join(told)
