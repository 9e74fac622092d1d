"""Parties in processes of their own, for tests: each runs a task to its end, or until it is killed."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from thresher.federated.aggregation import Aborted
from thresher.federated.mpyc import MPyCParty
from thresher.federated.run import run_party
from thresher.federated.task import JointTask

NAMES = ("north", "south", "west")
FEATURES = ("age", "dose", "sex")


def write_task(folder: Path, ports, rows, rounds, **changes) -> Path:
    """A task of three parties on this machine."""
    settings = {"epsilon": 2.0, "delta": 1e-6, "sparsity": 2, "row_bound": 1.0, "rounds": rounds, **changes}
    lines = ['task = "classification"', f"features = {list(FEATURES)}", 'target = "ill"', "classes = [0, 1]"]
    lines += [f"{name} = {value!r}" for name, value in settings.items()]
    for name, port, most in zip(NAMES, ports, rows, strict=True):
        lines += ["[[party]]", f'name = "{name}"', f'address = "127.0.0.1:{port}"', f"rows = {most}"]
    path = folder / "task.toml"
    path.write_text("\n".join(lines).replace("'", '"') + "\n")
    return path


def write_data(folder: Path, rows, seed=0) -> list[Path]:
    """A table for each party, of which two columns matter."""
    rng = np.random.default_rng(seed)
    files = []
    for name, count in zip(NAMES, rows, strict=True):
        X = rng.normal(size=(count, len(FEATURES))) / 3
        ill = (X @ [3.0, -2.0, 0.0] + 0.1 * rng.normal(size=count) > 0).astype(int)
        table = [",".join([*map(repr, map(float, x)), str(y)]) for x, y in zip(X, ill, strict=True)]
        files.append(folder / f"{name}.csv")
        files[-1].write_text(",".join([*FEATURES, "ill"]) + "\n" + "\n".join(table) + "\n")
    return files


def take_part(task: Path, at: int, data: Path, folder: Path, timeout: float, transcript: Path | None = None) -> None:
    """One party, like ``thresher federate run`` without TLS; what it says goes to a file in its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    sys.stdout = sys.stderr = (folder / "said.txt").open("a", buffering=1)
    known = JointTask.read(task)

    def seat() -> MPyCParty:
        addresses = [member.address for member in known.members]
        return MPyCParty(at, addresses, timeout=timeout, transcript=transcript)

    try:
        run_party(known, NAMES[at], data, folder, seat).save(folder / "model.json")
    except Aborted as error:
        print(f"aborted: {error}")
        sys.exit(3)
