"""How much less joint noise parties need where it is priced as Gaussian noise, than by a Renyi curve.

Run: ./dev bench joint. No row is read: so many rounds of so many coordinates, noise by the library's own calibration.
Skellam noise is compared with the Renyi curve of the dithered binomial, too. The limit is exact Gaussian noise.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable

from accuracy import header, row
from thresher.privacy.budget import Budget
from thresher.privacy.conversions import gaussian_mu
from thresher.privacy.releases import BinomialGradient, JointRelease, SkellamGradient

BUDGETS = [Budget(0.1, 1e-6), Budget(1.0, 1e-6), Budget(3.0, 1e-6), Budget(1.0, 1e-9), Budget(8.0, 1e-5)]
SIZES = [(1, 124), (40, 124)]  # rounds and coordinates


def main() -> None:
    report(SIZES, BUDGETS)


def report(sizes: Iterable[tuple[int, int]], budgets: list[Budget]) -> None:
    header("noise", "rounds", *(f"({budget.epsilon:g}, {budget.delta:g})" for budget in budgets), "seconds")
    for times, touched in sizes:
        before = [BinomialGradient.calibrated(budget, times, touched, adds_up=True) for budget in budgets]
        for kind in (BinomialGradient, SkellamGradient):
            start = time.process_time()
            found = [kind.calibrated(budget, times, touched) for budget in budgets]
            seconds = (time.process_time() - start) / len(budgets)
            saved = [less_noise(release, old) for release, old in zip(found, before, strict=True)]
            row(kind.noise, times, *(f"{100 * part:.1f} %" for part in saved), f"{seconds:.2f}")
        limits = [
            1 - math.sqrt(times) / gaussian_mu(budget.epsilon, budget.delta) / old.multiplier
            for budget, old in zip(budgets, before, strict=True)
        ]
        row("limit", times, *(f"{100 * part:.1f} %" for part in limits), "")


def less_noise(release: JointRelease, before: JointRelease) -> float:
    """The part of its noise that a release can do without."""
    return 1 - release.multiplier / before.multiplier


def smallest() -> None:
    report([(1, 5)], BUDGETS[1:2])


if __name__ == "__main__":
    main()
