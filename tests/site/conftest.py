"""The documentation site, built once for all processes of a test run."""

import fcntl
import os
import subprocess
import sys

import pytest

from repository import ROOT


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of the built site. A page that MkDocs warns about ends the build: --strict."""
    for package in ("mkdocs", "material", "mkdocstrings", "latex2mathml"):
        pytest.importorskip(package, reason=f"{package} is not installed: pip install 'thresher[docs]'")
    shared = tmp_path_factory.getbasetemp()
    shared = shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared
    folder, unfinished = shared / "site", shared / "unfinished-site"
    with (shared / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(unfinished)]
            built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            assert built.returncode == 0, built.stderr
            unfinished.rename(folder)
    return folder
