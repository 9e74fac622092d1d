"""A fit over Flower as the page tells its users: a server and three parties, each a process, with TLS, on loopback."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr")

from flower_machines import ADDRESS, free_ports, listens, running
from page_examples import blocks
from repository import ROOT
from secure_sums import EVERYBODY, IDENTITIES
from thresher import load_model
from thresher.federated.certificates import write_certificates
from waiting import MINUTES, eventually

PAGE = (ROOT / "docs" / "federated.md").read_text()


def shown(language, about):
    """The block of the page that has these words in it."""
    (block,) = [text for text in blocks(PAGE, language) if about in text]
    return block


def on_this_machine(text, folder, port):
    """What the page shows, for a trial: addresses, files and folders of this machine, a large budget, two rounds."""
    changes = {
        "/srv/study": f"{folder}", "10.1.0.9:9000": f"{ADDRESS}:{port}", "--host 10.1.0.9": f"--host {ADDRESS}",
        "--port 9000": f"--port {port}", "authority.pem": f"{folder}/authority.pem",
        "link.pem": f"{folder}/link.pem", "link.key": f"{folder}/link.key",
        "epsilon=1.0": "epsilon=8.0", "iterations=4": "iterations=2", "run app": f"run {folder}/app",
    }  # fmt: skip
    for there, here in changes.items():
        text = text.replace(there, here)
    return text


def write_app(folder, port):
    package = folder / "app" / "together"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (folder / "app" / "pyproject.toml").write_text(shown("toml", "[project]"))
    for name in ("study", "server_app", "client_app"):
        code = shown("py", f"# app/together/{name}.py\n")
        (package / f"{name}.py").write_text(on_this_machine(code, folder, port))
    (folder / "identities").write_text("".join(f"{public.hex()}\n" for public in EVERYBODY[:3]))
    (folder / "home").mkdir()
    (folder / "home" / "config.toml").write_text(on_this_machine(shown("toml", "[superlink]"), folder, port))


def typed(program, folder, port):
    """The words of the page's command line that starts a program, without settings before it."""
    lines = shown("bash", "flower-superlink").replace("\\\n", " ").splitlines()
    (line,) = [line for line in lines if program in line]
    return shlex.split(on_this_machine(line[line.index(program) :], folder, port), comments=True)


def write_party(folder, number):
    """A party's own machine; the slopes of columns 1 and 4 are a hundred standard deviations of the noise."""
    folder.mkdir()
    rng = np.random.default_rng(number)
    X = rng.uniform(-1, 1, size=([400, 700, 1900][number], 6))
    y = 2 * X[:, 1] - 2 * X[:, 4] + 0.1 * rng.normal(size=len(X))
    np.savez(folder / "rows.npz", X=X, y=y)
    (folder / "identity").write_text(IDENTITIES[number].hex())
    (folder / "number").write_text(f"{number}")


def is_written(path):
    """Whether the whole file is there."""
    try:
        return bool(json.loads(path.read_text()))
    except (FileNotFoundError, ValueError):
        return False


def test_three_machines_and_a_server_as_processes(tmp_path):
    """Takes 107 seconds on two cores at a load of 3: each stage starts a process for each party, and Flower looks for
    messages every few seconds."""
    link_port, *node_ports = free_ports(4)
    write_certificates(tmp_path, ["link"], [ADDRESS])
    write_app(tmp_path, link_port)
    programs = Path(sys.executable).parent
    settings = dict(word.split("=") for word in typed("export", tmp_path, link_port)[1:])
    assert settings == {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
    environment = (
        os.environ
        | settings
        | {
            "FLWR_HOME": str(tmp_path / "home"),
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",  # Flower starts its helpers by name
        }
    )
    with ExitStack() as stack:
        link = typed("flower-superlink", tmp_path, link_port)
        stack.enter_context(running(link, tmp_path / "link.log", environment))
        assert eventually(lambda: listens(link_port), pause=0.2), (tmp_path / "link.log").read_text()
        for number, port in enumerate(node_ports):
            write_party(own := tmp_path / f"party{number}", number)
            # several of them on one machine need ports of their own
            node = [*typed("flower-supernode", tmp_path, link_port), "--host", ADDRESS, "--port", f"{port}"]
            log = tmp_path / f"node{number}.log"
            stack.enter_context(running(node, log, environment | {"PARTY": str(own)}))
        program, *words = typed("flwr run", tmp_path, link_port)
        start = [shutil.which(program, path=environment["PATH"]), *words]
        subprocess.run(start, env=environment, check=True, capture_output=True, timeout=MINUTES)
        found = eventually(lambda: is_written(tmp_path / "model.json"), pause=0.2)
        assert found, "\n".join(path.read_text() for path in tmp_path.glob("*.log"))
    model = load_model(tmp_path / "model.json")
    assert set(model.support_) == {1, 4}
    assert model.certificate_.verify()
    for number in range(3):
        journal = (tmp_path / f"party{number}" / "journal" / "journal.jsonl").read_text()
        assert [json.loads(line).get("round") for line in journal.splitlines()] == [None, 1, 2]  # first, the price
