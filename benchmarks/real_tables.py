"""The yard: every front-door algorithm, dense models and methods of the literature on real tables.

Shares of what is possible without privacy (benchmarks/yard/), in two processes: the default at every epsilon, others at
the least of them. Results are kept in .yard, or in the folder that THRESHER_YARD names, so that an interrupted run goes
on where it was. Prints what was measured; without NAMES it is written to docs/yard.md and docs/figures/yard.svg, too.
Tables whose package or folder (THRESHER_DATA) is missing are skipped, and said so.

Run: ./dev yard [--coverage | --calibration] [--epsilon E,E,...] [--fits N] [--methods M,M,...] [--write] [NAMES]
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from thresher.planning.chart import save_figure
from yard.fits_page import calibration_page, coverage_page
from yard.measuring import Measured, measure, measure_more
from yard.methods import DEFAULT, METHODS
from yard.page import yard_page
from yard.picture import picture
from yard.tables import TABLES

EPSILONS = (1.0, 3.0, 10.0)
FITS = 10
PAGES = {"coverage": coverage_page, "calibration": calibration_page}
DOCS = Path(__file__).parent.parent / "docs"


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    tables, methods = options.names or list(TABLES), options.methods
    if options.more:
        found = measure_more(options.more, tables, DEFAULT, options.epsilon, options.fits)
        print(PAGES[options.more](found, options.epsilon))
        return
    found = measure(tables, methods, options.epsilon, options.fits)
    made = yard_page(found, methods, options.epsilon, options.fits)
    print(made)
    if options.write or not options.names:
        _write(found, made, options.epsilon)


def _write(found: Measured, page: str, epsilons: Sequence[float]) -> None:
    (DOCS / "yard.md").write_text(page)
    save_figure(picture(found, epsilons), DOCS / "figures" / "yard.svg")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev yard", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAMES", help="tables; without them, all")
    for what, words in (("coverage", "intervals"), ("calibration", "chances of classes")):
        parser.add_argument(
            f"--{what}", action="store_const", const=what, dest="more", help=f"{words} of the default instead of scores"
        )
    parser.add_argument("--epsilon", type=_numbers, default=EPSILONS, metavar="E,E,...")
    parser.add_argument("--fits", type=int, default=FITS, help="of each method on each table at each epsilon")
    parser.add_argument("--write", action="store_true", help="write the page of NAMES as well")
    parser.add_argument("--methods", type=_parts, default=METHODS, metavar="M,M,...", help="without them, all")
    options = parser.parse_args(arguments)
    for asked, known in ((options.names, tuple(TABLES)), (options.methods, METHODS)):
        for name in asked:
            if name not in known:
                parser.error(f"{name!r} is unknown; use some of: {', '.join(known)}")
    return options


def _parts(text: str) -> list[str]:
    return text.split(",")


def _numbers(text: str) -> list[float]:
    return [float(part) for part in _parts(text)]


def smallest() -> None:
    with TemporaryDirectory() as folder:
        found = measure(["breast_cancer"], [DEFAULT], [4.0], fits=1, folder=Path(folder))
        print(yard_page(found, [DEFAULT], [4.0], fits=1))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # two processes share two cores
    main()
