"""The house, drawn from the code: which room imports which, and where a row goes in a fit.

``python tools/house.py`` writes docs/figures/floors.svg and docs/figures/journey.svg; ``--count`` counts files and
functions on the ways of fits, a federated round and an audit instead, ``--count "name of a way"`` lists those of one.
A test draws the floors again and compares.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from types import FrameType
from typing import Any

import thresher

SOURCE = Path(thresher.__file__).parent
FIGURES = Path(__file__).parents[1] / "docs" / "figures"
FLOORS = (
    ("privacy", "data"),
    ("vaults",),
    ("algorithms",),
    ("models", "local", "federated", "torch", "ledger", "audit", "planning", "report", "estimates"),
    ("cli",),
)
"""The rooms, the lowest floor first; imports point down, or to a neighbour."""

WIDTH, LEFT, PAD = 960, 80, 14
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#222}.q{fill:#666;font-size:11px}rect{fill:#f3f5f8;stroke:#7a869a}"
    "line,path{stroke:#b0b8c5;fill:none}.arrow{stroke:#3a66a8;stroke-width:1.5}"
)


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imports_of(path: Path) -> Iterator[str]:
    """The rooms that a file imports, at the top or inside a function."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            if name.startswith("thresher."):
                yield name.split(".")[1]


def rooms() -> dict[str, tuple[int, set[str]]]:
    """Of each room, how many files it has and which rooms it imports."""
    known = {room for floor in FLOORS for room in floor}
    found: dict[str, tuple[int, set[str]]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        room = room_of(path)
        if room in known:
            files, uses = found.get(room, (0, set()))
            found[room] = files + 1, uses | (set(imports_of(path)) & known - {room})
    return found


def draw_floors() -> str:
    """Rooms as boxes, the top floor above; each says which neighbours it imports. All may import what is below."""
    found = rooms()
    parts, top = [], PAD
    for k, floor in reversed(list(enumerate(FLOORS))):
        height = 44 + 15 * max(len(found[room][1] & set(floor)) for room in floor)
        width = (WIDTH - LEFT - PAD) / len(floor)
        parts.append(f'<text x="16" y="{top + 18}">floor {k + 1}</text>')
        for i, room in enumerate(floor):
            files, uses = found[room]
            lines = [room, f"{files} files", *sorted(f"uses {near}" for near in uses & set(floor))]
            x, middle = LEFT + i * width, LEFT + (i + 0.5) * width - 3
            parts.append(f'<rect x="{x:.0f}" y="{top}" width="{width - 6:.0f}" height="{height}" rx="5"/>')
            for j, line in enumerate(lines):
                kind = ' class="q"' if j else ""
                parts.append(
                    f'<text{kind} x="{middle:.0f}" y="{top + 18 + 15 * j}" text-anchor="middle">{escape(line)}</text>'
                )
        top += height + 10
    return svg(top, "The floors of thresher: imports point down, or to a neighbour", parts)


def watch(work: Callable[[], object]) -> list[tuple[str, str, str]]:
    """(file, function, the caller's file) of every call of thresher's functions during ``work``, in order."""
    calls: list[tuple[str, str, str]] = []

    def seen(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and str(SOURCE) in frame.f_code.co_filename and not frame.f_code.co_name.startswith("<"):
            caller = frame.f_back.f_code.co_filename if frame.f_back is not None else ""
            calls.append((frame.f_code.co_filename, frame.f_code.co_name, caller))

    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def small_table() -> tuple[Any, Any]:
    import numpy as np

    X = np.sin(50 * np.linspace(-1, 1, 400 * 5)).reshape(400, 5)
    return X, X[:, 0]


def small_fit() -> Callable[[], object]:
    """A fit with a ledger that is small enough to watch; the first one is made here, since it imports."""
    import tempfile

    from thresher import Ledger, SparseRegressor

    ledger = Ledger(Path(tempfile.mkdtemp()) / "budget.db")
    ledger.grant("patients", epsilon=10.0, delta=1e-5)
    X, y = small_table()
    model = SparseRegressor(
        2, delta=1e-6, feature_bound=1.0, target_bound=1.0, algorithm="peeling", ledger=ledger, dataset="patients"
    )
    model.fit(X, y)
    return lambda: model.fit(X + 1e-3, y)


def ways() -> dict[str, Callable[[int], object]]:
    """What is counted: calls that do the same on other rows, so that none is a repeat of the one that imports."""
    import tempfile

    from typer.testing import CliRunner

    from thresher import SparseRegressor
    from thresher.algorithms import DPIGHT, SparseName
    from thresher.audit import audit, pairs
    from thresher.cli.app import app
    from thresher.federated import FederatedSparseRegressor

    X, y = small_table()
    parties = [(X[:200], y[:200]), (X[200:], y[200:])]
    facts: dict[str, Any] = {"delta": 1e-6, "feature_bound": 1.0, "target_bound": 1.0}
    folder = Path(tempfile.mkdtemp())
    bounds = "".join(f"[columns.{name}]\nbounds = [-2, 2]\n" for name in "abcd")
    (folder / "schema.toml").write_text(f'{bounds}[columns.t]\nrole = "target"\nbounds = [-2, 2]\n')

    def fit(algorithm: SparseName) -> Callable[[int], object]:
        return lambda turn: SparseRegressor(2, algorithm=algorithm, **facts).fit(X + turn / 1000, y)

    def fit_a_file(turn: int) -> None:
        table, model = folder / f"{turn}.csv", folder / f"{turn}.json"
        table.write_text("\n".join(["a,b,c,d,t", *(",".join(map(str, row)) for row in X + turn / 1000)]) + "\n")
        arguments = ["fit", str(table), "--schema", str(folder / "schema.toml"), "--sparsity", "2", "--out", str(model)]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output  # noqa: S101

    return {
        "SparseRegressor.fit, dp-ight": fit("dp-ight"),
        "SparseRegressor.fit, auto": fit("auto"),
        "thresher fit --schema": fit_a_file,
        "a federated fit": lambda turn: FederatedSparseRegressor(2, **facts).fit(parties),
        "an audit": lambda turn: audit(DPIGHT(), pairs.one_rises(), claimed=(2.0, 0.01), runs=100, n_jobs=1),
    }


def count_ways(chosen: str | None) -> None:
    for name, work in ways().items():
        work(0)  # imports, and builds what is built once
        calls = watch(lambda work=work: work(1))  # type: ignore[misc]
        met = sorted({call[:2] for call in calls})
        crossed = sum(
            room_of(Path(file)) != room_of(Path(caller)) for file, _, caller in calls if str(SOURCE) in caller
        )
        files = {file for file, _ in met}
        print(f"{name}: {len(files)} files, {len(met)} functions, {crossed} steps from a room into another")
        for file in sorted(files) if name == chosen else ():
            print(f"  {Path(file).relative_to(SOURCE)}:", *(function for place, function in met if place == file))


STATIONS = (
    ("models", "fit", "rows come in"),
    ("data", "check_structure", "shape and numbers are checked"),
    ("algorithms", "plan", "every release is planned, from public facts"),
    ("privacy", "cost", "the plan is priced"),
    ("ledger", "reservation_for", "the ledger reserves the price, durably"),
    ("vaults", "_clip", "a vault takes the rows and clips them, one by one"),
    ("algorithms", "run", "the algorithm asks"),
    ("vaults", "_record", "the meter records each answer; noise is added"),
    ("vaults", "close", "the vault closes: the rows are gone"),
    ("privacy", "certify", "the certificate is written"),
    ("privacy", "verify", "and verified, from its text alone"),
    ("models", "keep", "the model keeps what was found"),
    ("ledger", "settle", "the ledger settles"),
)
"""What a fit passes, in this order: a function of a room, and what happens there. A name that is never called ends the
drawing with an error."""


def draw_journey() -> str:
    """The stations in the order in which a watched fit first passes them."""
    calls = [(room_of(Path(file)), name, Path(file).relative_to(SOURCE)) for file, name, _ in watch(small_fit())]
    lanes = ["models", "ledger", "algorithms", "vaults", "data", "privacy"]
    step, top, lane = 44, 60, 84
    parts, points = [], []
    for i, room in enumerate(lanes):
        x = 70 + i * lane
        parts.append(f'<text x="{x}" y="24" text-anchor="middle">{room}</text>')
        parts.append(f'<line x1="{x}" y1="36" x2="{x}" y2="{top + step * len(STATIONS) - 20}"/>')
    start = 0
    for k, (room, name, words) in enumerate(STATIONS):
        at = next((i for i, call in enumerate(calls[start:], start) if call[:2] == (room, name)), None)
        if at is None:
            raise LookupError(f"no call of {name} in {room} after {STATIONS[k - 1][1]}: the journey has changed")
        start, file = at, calls[at][2]
        x, y = 70 + lanes.index(room) * lane, top + step * k
        points.append(f"{x} {y}")
        parts.append(f'<circle cx="{x}" cy="{y}" r="6" fill="#3a66a8"/>')
        right = 70 + len(lanes) * lane
        parts.append(f'<text x="{right}" y="{y - 2}">{k + 1}. {escape(words)}</text>')
        parts.append(f'<text class="q" x="{right}" y="{y + 13}">{escape(str(file))}: {escape(name)}</text>')
    parts.insert(0, f'<path class="arrow" d="M{" L".join(points)}"/>')
    return svg(top + step * len(STATIONS), "A row's journey: what a fit with a ledger passes, in this order", parts)


def svg(height: float, title: str, parts: list[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img">\n'
        f"<title>{title}</title>\n"
        f'<style>{STYLE}</style>\n<rect width="{WIDTH}" height="{height:.0f}" style="fill:#fff;stroke:none"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", nargs="?", const="", metavar="WAY", help="count files and functions on the ways")
    chosen = parser.parse_args().count
    if chosen is not None:
        count_ways(chosen)
        return
    for name, picture in (("floors", draw_floors()), ("journey", draw_journey())):
        (FIGURES / f"{name}.svg").write_text(picture)


if __name__ == "__main__":
    main()
