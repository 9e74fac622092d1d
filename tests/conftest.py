"""Fixtures that more than one test file uses."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with the real data sets: $THRESHER_DATA, or ../shared/data beside the repository."""
    named = os.environ.get("THRESHER_DATA")
    folder = Path(named) if named else Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real data: {folder} does not exist; set THRESHER_DATA to the folder that holds it")
    return folder
