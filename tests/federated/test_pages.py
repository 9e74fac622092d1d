"""What the pages tell three parties to type, on three addresses of this machine."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("mpyc", reason="mpc is missing: pip install 'thresher[mpc]'")
pytest.importorskip("cryptography")

from page_examples import blocks, commands
from repository import ROOT
from thresher import load_model
from thresher.federated.endpoints import free_ports

NAMES = ("north", "south", "west")
PROGRAM = [sys.executable, "-c", "from thresher.cli.app import main; main()"]


def typed(line, folder, **changes):
    """The process of a command line that a page shows, with other words in the place of those that stand for them."""
    for word, other in changes.items():
        line = re.sub(rf"\b{word}\b", other, line)
    words = shlex.split(line.replace("/srv/", f"{folder}/"), comments=True)[1:]
    return subprocess.Popen([*PROGRAM, *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process):
    out, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    return out


@pytest.fixture
def folder(tmp_path):
    """The page's task at addresses of this machine, with each party's rows."""
    (task,) = [text for text in blocks((ROOT / "docs" / "federated.md").read_text(), "toml") if "[[party]]" in text]
    ports = iter(free_ports(3))
    (tmp_path / "task.toml").write_text(re.sub(r'"10\.\d\.0\.\d:9000"', lambda _: f'"127.0.0.1:{next(ports)}"', task))
    for at, name in enumerate(NAMES):
        rng = np.random.default_rng(at)
        rows = pd.DataFrame(rng.uniform(-1, 1, (5000, 3)), columns=["age", "dose", "weight"])
        rows.assign(readmitted=(rows["age"] > rows["dose"]).astype(int)).to_csv(tmp_path / f"{name}.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("page", ["federated", "deploying"])
def test_three_parties_type_what_the_page_says_and_have_one_model(folder, page):
    lines = [line for line in commands((ROOT / "docs" / f"{page}.md").read_text()) if "ledger" not in line]
    plan, run = lines[0], next(line for line in lines if line.startswith("thresher federate run"))
    agreed = ended(typed(plan, folder)).split()[-1]
    if page == "federated":
        ended(typed(lines[1], folder))
    else:
        ended(typed("thresher federate certificates task.toml", folder))
        shutil.copytree(folder / "certificates", folder, dirs_exist_ok=True)
    started = [typed(run, folder, north=name, HASH=agreed, **{"stay-1": f"{name}-1"}) for name in NAMES]
    told = [ended(process) for process in started]
    written = [re.search(r"thresher verify (\S+)", text)[1] for text in told]
    assert len(set(written)) == 3
    assert len({(folder / name).read_text() for name in written}) == 1
    assert load_model(folder / written[0]).certificate_.grade == "proved"
    assert "holds" in ended(typed(f"thresher verify {written[0]}", folder))
