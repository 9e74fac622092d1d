"""A fit for which there is no memory: refused before it is paid for, or it says what it has cost."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from spending import DELTA, EPSILON, a_model, small_rows
from thresher import Ledger
from thresher.data import memory
from thresher.vaults import CentralVault

pytestmark = pytest.mark.filterwarnings("ignore::thresher.NoiseDrowns")


@pytest.fixture
def ledger(tmp_path):
    made = Ledger(tmp_path / "budget.db")
    made.grant("people", 3.0, DELTA)
    return made


@pytest.mark.parametrize("kind", ["dense", "csc", "csr", "coo"])
def test_rows_that_plainly_do_not_fit_are_refused_before_anything_is_spent(ledger, monkeypatch, kind):
    X, y = small_rows()
    if kind != "dense":
        X = sparse.coo_array(X).asformat(kind)
    monkeypatch.setattr(memory, "free_memory", lambda: 60 * 4 * 8 - 1)  # a copy has 60 rows of 4 columns
    with pytest.raises(MemoryError, match=r"^X: .*Nothing was read or spent"):
        a_model(ledger, fit_intercept=False).fit(X, y)
    assert ledger.spent("people").epsilon == 0
    monkeypatch.setattr(memory, "free_memory", lambda: 100 * 60 * 4 * 8)
    a_model(ledger, fit_intercept=False).fit(X, y)


def test_a_system_that_does_not_say_how_much_there_is_refuses_nothing(ledger, monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: None)
    a_model(ledger).fit(*small_rows())


def test_what_is_free_is_what_the_tightest_limit_leaves(tmp_path, monkeypatch):
    """A container may have less than the machine."""
    container = tmp_path / "memory.max"
    monkeypatch.setattr(memory, "LIMITS", (container,))
    free = memory.free_memory()
    if free is None:
        pytest.skip("this system does not say how much memory is free")
    assert free > 2**20
    for text, most in (("max\n", None), (f"{2**62}\n", None), ("1000\n", 0)):
        container.write_text(text)
        assert (memory.free_memory() == 0) == (most == 0)


@pytest.mark.parametrize("moment", ["clip", "first answer"])
def test_no_memory_after_the_reservation_says_what_stays_spent(ledger, monkeypatch, moment):
    def nothing_left(*_):
        raise MemoryError("Unable to allocate 7.45 GiB for an array with shape (60, 4)")

    monkeypatch.setattr(CentralVault, "_clip" if moment == "clip" else "gradient", nothing_left)
    model = a_model(ledger)
    with pytest.raises(
        MemoryError, match=r"stays counted: epsilon=0\.05 at delta=1e-06, entry \w+ of dataset='people'"
    ):
        model.fit(*small_rows())
    assert ledger.spent("people").epsilon == pytest.approx(EPSILON)
    assert not hasattr(model, "certificate_")
    with pytest.raises(MemoryError, match="Unable to allocate"):  # nothing pays, nothing is counted
        a_model(None, dataset=None).fit(*small_rows())


LIMITED = """
import resource, sys
import numpy as np
from thresher import Ledger, SparseRegressor
ledger = Ledger(sys.argv[1])
X = np.zeros((1_500_000, 20), dtype=np.float32)  # 114 MiB
y = np.zeros(len(X))
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + 2**27, -1))
model = SparseRegressor(2, feature_bound=1.0, target_bound=1.0, delta=1e-6, ledger=ledger, dataset="people")
try:
    model.fit(X, y)
except MemoryError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
print("spent", ledger.spent("people").epsilon)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of a process's memory, as Linux has them")
def test_a_process_that_may_not_have_more_memory_spends_nothing(ledger, tmp_path):
    """With a limit of the system in place of a made-up one: an intercept takes a second copy, which does not fit."""
    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LIMITED, tmp_path / "budget.db"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Nothing was read or spent" in told.stdout
    assert "spent 0.0" in told.stdout


def test_rows_on_workers_take_no_room_here():
    memory.check_memory(object(), 2)
    memory.check_memory(np.zeros((2, 2)), 2)
