"""Every public class and function tells of all its parameters, and its examples do what they show."""

from __future__ import annotations

import doctest
import inspect
import re
import warnings

import pytest

import thresher

PUBLIC = {
    name: thing
    for name in thresher.__all__
    if callable(thing := getattr(thresher, name)) and not (inspect.isclass(thing) and issubclass(thing, Warning))
}
WITHOUT_EXAMPLE = {"BudgetExceeded"}


def parameters_told(text):
    """The names in a numpydoc section of parameters, "a, b : float" being two."""
    section = re.search(r"Parameters\n-{10}\n(.*?)(?:\n\n\w+\n-{3,}\n|\Z)", text, re.DOTALL)
    lines = [] if section is None else [line for line in section[1].splitlines() if re.match(r"\w", line)]
    return {name for line in lines for name in line.partition(" : ")[0].split(", ")}


def examples_in(thing):
    return [test for test in doctest.DocTestFinder(recurse=False).find(thing) if test.examples]


@pytest.mark.parametrize("name", PUBLIC)
def test_every_parameter_is_told_of_and_no_other(name):
    text = inspect.getdoc(PUBLIC[name])
    taken = {} if name == "BudgetExceeded" else inspect.signature(PUBLIC[name]).parameters
    assert text is not None
    assert parameters_told(text) == {each.lstrip("*") for each in taken}
    assert not re.search("arameters (that are not listed )?are those of", text)


@pytest.mark.parametrize("name", sorted(PUBLIC.keys() - WITHOUT_EXAMPLE))
def test_the_example_shows_what_happens(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (example,) = examples_in(PUBLIC[name])
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
