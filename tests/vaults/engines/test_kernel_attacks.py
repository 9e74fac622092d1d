"""Attempts to get rows past their bounds, and products that never end."""

import multiprocessing
import warnings

import numpy as np
import pytest
from scipy import sparse

from thresher.privacy.bounds import Bounds
from thresher.vaults.clipping import clip_rows, row_norms
from thresher.vaults.engines import engine_for


@pytest.mark.parametrize("bound", [1e-40, 3e-39, 1e-36, 1e-30, 1.0, 1e30])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_rows_in_single_precision_obey_the_smallest_bounds(form, bound):
    """Below 1e-38 a single precision number has fewer digits the smaller it is, and may be rounded up by more."""
    rows = np.random.default_rng(0).normal(size=(200, 50)).astype(np.float32) * np.float32(1e33)
    assert row_norms(clip_rows(form(rows), Bounds(row=bound))).max() <= bound * (1 + 1e-14)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this system")
def test_a_product_after_a_fork_ends(monkeypatch):
    """The child has none of the threads, and nobody would answer what it hands over to them."""
    monkeypatch.setattr("thresher.vaults.engines.sparse.SHARED_FROM", 0)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    engine = engine_for(sparse.csc_array(np.eye(30)), 0.0)
    engine.transposed_product(np.ones(30))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks while there are threads: that is the point
        child = multiprocessing.get_context("fork").Process(target=engine.transposed_product, args=(np.ones(30),))
        child.start()
    child.join(600)
    ended = child.exitcode == 0
    child.kill()
    assert ended
