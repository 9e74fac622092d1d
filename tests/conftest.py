"""Fixtures that more than one test file uses, and noise that is the same in every run."""

import os
from contextlib import contextmanager, nullcontext
from pathlib import Path
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import settings

settings.register_profile("no clock", deadline=None)
settings.load_profile("no clock")


def pytest_addoption(parser):
    parser.addoption(
        "--fresh-noise", action="store_true",
        help="keys of noise from the operating system, as users have them: tests may fail as often as they say",
    )  # fmt: skip


def repeatable_noise(config, name):
    """Within it, keys of noise follow from a name: the false alarms that statistical tests state do not depend on luck.

    Sources keep everything else that they do without a ``random_state``; processes of their own are not concerned.
    """
    if config.getoption("--fresh-noise"):
        return nullcontext()
    return patch("secrets.randbits", Random(name).getrandbits)  # noqa: S311


def pytest_collection_modifyitems(items):
    """Tests that tests/slow.txt names are slow; tools/slow_tests.py writes it."""
    listed = Path(__file__).parent / "slow.txt"
    slow = set(listed.read_text().splitlines()) if listed.exists() else set()
    for item in items:
        if item.nodeid.partition("[")[0] in slow:
            item.add_marker("slow")


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    with repeatable_noise(request.config, f"{request.node.nodeid} {fixturedef.argname} {request.param_index}"):
        return (yield)


def fresh_memory():
    """Within it the process has fitted nothing yet: tests use the same rows, and none is told of another's."""
    from thresher.ledger.repeats import FitMemory  # here, so that what collects tests need not import everything

    return patch("thresher.ledger.repeats.MEMORY", FitMemory())


@contextmanager
def kinds_as_before():
    """After it, models that a test or a page defines are forgotten: others may have the same name."""
    from thresher.models.linear import KINDS

    before = dict(KINDS)
    try:
        yield
    finally:
        own = {name: kind for name, kind in KINDS.items() if kind.__module__.startswith("thresher.")}
        KINDS.clear()
        KINDS.update({**before, **own})  # what was imported in between is imported once


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    with repeatable_noise(item.config, item.nodeid), fresh_memory(), kinds_as_before():
        return (yield)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with the real data sets: $THRESHER_DATA, or ../shared/data beside the repository."""
    named = os.environ.get("THRESHER_DATA")
    folder = Path(named) if named else Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real data: {folder} does not exist; set THRESHER_DATA to the folder that holds it")
    return folder
