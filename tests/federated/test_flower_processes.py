"""A fit over Flower as its users run it: a server and three parties, each a process, with TLS, on loopback."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr")

from flower_machines import ADDRESS, free_ports, listens, running, waited_for
from secure_sums import EVERYBODY, IDENTITIES
from thresher import load_model
from thresher.federated.certificates import write_certificates

STUDY = """
import json, os
from pathlib import Path
from thresher.algorithms import DPIGHT
from thresher.federated import FederatedSparseRegressor
from thresher.federated.group import Group
from thresher.federated.study import Study

public = json.loads(Path(os.environ["PUBLIC"]).read_text())
estimator = FederatedSparseRegressor(
    2, epsilon=8.0, delta=1e-6, feature_bound=1.0, target_bound=4.0, aggregation="skellam",
    algorithm=DPIGHT(iterations=2),
)
study = Study(estimator, Group(3, dropouts=1), [bytes.fromhex(key) for key in public], [400, 700, 1900], 6)
"""
PARTY = """
import os
from pathlib import Path
import numpy as np
from thresher.federated.flower_fit import party_app
from together.study import study

own = Path(os.environ["PARTY"])

def load():
    rows = np.load(own / "rows.npz")
    return rows["X"], rows["y"]

identity = bytes.fromhex((own / "identity").read_text())
app = party_app(study, int((own / "number").read_text()), identity, load, own / "journal")
"""
SERVER = """
import os
from thresher.federated.flower_fit import fit_app
from together.study import study

app = fit_app(study, os.environ["MODEL"])
"""
PROJECT = """
[project]
name = "together"
version = "1.0.0"
license = "Apache-2.0"
dependencies = []
[tool.flwr.app]
publisher = "thresher"
[tool.flwr.app.components]
serverapp = "together.server_app:app"
clientapp = "together.client_app:app"
[tool.flwr.app.config]
"""
CONNECTION = """
[superlink]
default = "here"
[superlink.here]
address = "{address}:{port}"
root-certificates = "{authority}"
"""


def write_app(folder):
    package = folder / "app" / "together"
    package.mkdir(parents=True)
    for name, text in [("study", STUDY), ("client_app", PARTY), ("server_app", SERVER), ("__init__", "")]:
        (package / f"{name}.py").write_text(text)
    (folder / "app" / "pyproject.toml").write_text(PROJECT)
    (folder / "public.json").write_text(json.dumps([public.hex() for public in EVERYBODY[:3]]))


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
    (tls,) = write_certificates(tmp_path, ["link"], [ADDRESS])
    write_app(tmp_path)
    (tmp_path / "home").mkdir()
    connection = CONNECTION.format(address=ADDRESS, port=link_port, authority=tls.authority)
    (tmp_path / "home" / "config.toml").write_text(connection)
    programs = Path(sys.executable).parent
    environment = os.environ | {
        "PUBLIC": str(tmp_path / "public.json"),
        "MODEL": str(tmp_path / "model.json"),
        "FLWR_HOME": str(tmp_path / "home"),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",  # Flower starts its helpers by name
    }
    link = ["flower-superlink", "--host", ADDRESS, "--port", f"{link_port}"]
    link += ["--disable-runtime-dependency-installation", "--ssl-ca-certfile", str(tls.authority)]
    link += ["--ssl-certfile", str(tls.certificate), "--ssl-keyfile", str(tls.key)]
    with ExitStack() as stack:
        stack.enter_context(running(link, tmp_path / "link.log", environment))
        assert waited_for(lambda: listens(link_port), 60), (tmp_path / "link.log").read_text()
        for number, port in enumerate(node_ports):
            write_party(own := tmp_path / f"party{number}", number)
            node = ["flower-supernode", "--superlink", f"{ADDRESS}:{link_port}", "--host", ADDRESS]
            node += ["--port", f"{port}", "--root-certificates", str(tls.authority)]
            log = tmp_path / f"node{number}.log"
            stack.enter_context(running(node, log, environment | {"PARTY": str(own)}))
        start = [shutil.which("flwr", path=environment["PATH"]), "run", str(tmp_path / "app"), "here"]
        subprocess.run(start, env=environment, check=True, capture_output=True, timeout=60)
        found = waited_for(lambda: is_written(tmp_path / "model.json"), 240)
        assert found, "\n".join(path.read_text() for path in tmp_path.glob("*.log"))
    model = load_model(tmp_path / "model.json")
    assert set(model.support_) == {1, 4}
    assert model.certificate_.verify()
    for number in range(3):
        journal = (tmp_path / f"party{number}" / "journal" / "journal.jsonl").read_text()
        assert [json.loads(line).get("round") for line in journal.splitlines()] == [None, 1, 2]  # first, the price
