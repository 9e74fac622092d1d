"""Many processes, one grant: never overspent, nothing lost; killed at any moment: never under-counted."""

from __future__ import annotations

import math
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import spending
from thresher import Ledger
from thresher.privacy.accounting import Cost, Filter

PROCESSES, FITS = 8, 200


def cost_of_a_fit():
    return spending.a_model(None, dataset=None).plan(60, 4).cost


def grant_for(fits):
    """The epsilon that is just enough for so many fits, one after the other."""
    cost = Cost.gaussian(cost_of_a_fit().mu_squared * (fits - 1))
    low, high = 0.0, 100.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if Filter(middle, spending.DELTA).allows(cost, cost_of_a_fit()) else (middle, high)
    return high


def test_eight_processes_spend_the_grant_to_the_last_fit_and_no_further(ledger, address, key):
    """1000 of 1600 fits fit into the grant; each of the others is refused."""
    enough = PROCESSES * FITS * 5 // 8
    epsilon = grant_for(enough)
    ledger.grant("people", epsilon, spending.DELTA)
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        outcomes = list(pool.map(spending.spend, [address] * PROCESSES, [str(key)] * PROCESSES, [FITS] * PROCESSES))
    made = sum(made for made, _ in outcomes)
    assert (made, sum(refused for _, refused in outcomes)) == (enough, PROCESSES * FITS - enough)
    fits = [entry for entry in ledger.history("people") if entry.kind == "fit"]
    assert len(fits) == len({entry.id for entry in fits}) == enough
    assert {entry.status for entry in fits} == {"committed"}
    assert ledger.spent("people").epsilon <= epsilon
    assert ledger.verify().entries == 3 + 2 * enough  # opened, granted, the rows recognised once


def test_a_process_killed_at_a_hundred_random_moments_has_never_spent_more_than_is_counted(
    ledger, address, key, tmp_path
):
    ledger.grant("people", 1000.0, spending.DELTA)
    truth = tmp_path / "truth"
    subprocess.run(
        [sys.executable, spending.__file__, address, str(key), str(truth), "100", "7"], check=True, timeout=1200
    )
    answered = truth.stat().st_size
    fits = [entry for entry in Ledger(address, key=key).history("people") if entry.kind == "fit"]
    unfinished = sum(entry.status == "reserved" for entry in fits)
    assert answered >= 11 + 25  # every fourth died of an answer
    assert 25 <= unfinished <= 100
    assert len(fits) - 100 <= answered <= len(fits)
    spent = ledger.spent("people").epsilon
    truly = Cost.gaussian(cost_of_a_fit().mu_squared * answered).epsilon(spending.DELTA)[0]
    assert spent >= truly > 0
    assert math.isclose(spent, Cost.gaussian(cost_of_a_fit().mu_squared * len(fits)).epsilon(spending.DELTA)[0])
    assert ledger.verify()
