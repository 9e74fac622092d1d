"""Sparse matrices that are none are refused at every door, before a compiled loop touches them."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from typer.testing import CliRunner

import wild_matrices
from thresher import SparseRegressor
from thresher.cli.app import app
from thresher.data.sparse_structure import check_structure
from wild_matrices import FILES, WILD, X, y


@pytest.mark.parametrize("wild", WILD)
def test_a_wild_matrix_is_recognised(wild):
    with pytest.raises(ValueError, match="X: an index of the sparse matrix is out of range; rebuild the matrix"):
        check_structure(WILD[wild]())


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "dia", "lil", "dok"])
@pytest.mark.parametrize("family", ["array", "matrix"])
@pytest.mark.parametrize("shape", [(40, 4), (3, 7), (1, 1), (0, 4), (4, 0)])
def test_a_sound_matrix_is_not(kind, family, shape):
    dense = np.random.default_rng(0).integers(-1, 2, shape).astype(float)
    check_structure(getattr(sparse, f"{kind}_{family}")(dense))
    check_structure(getattr(sparse, f"{kind}_{family}")(shape))


def test_a_sparse_vector_is_refused():
    with pytest.raises(ValueError, match="X is a sparse array of 1 dimension"):
        SparseRegressor(feature_bound=1.0, target_bound=1.0).fit(sparse.coo_array(X[:, 0]), y)


@pytest.mark.parametrize("kind", ["bsr", "dia", "lil", "dok"])
def test_all_formats_can_be_fitted(kind):
    model = SparseRegressor(1, epsilon=50.0, feature_bound=1.0, target_bound=1.0, random_state=0)
    other = model.fit(sparse.coo_array(X).asformat(kind), y).coef_
    assert np.array_equal(other, model.fit(sparse.csr_array(X), y).coef_)


def test_every_door_refuses_them_all():
    """In a process of its own, which a hole would kill."""
    ended = subprocess.run([sys.executable, wild_matrices.__file__], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"{ended.stdout[-300:]}\n{ended.stderr[-2000:]}"
    wanted = [f"{door}: {wild}: " for door in wild_matrices.doors() for wild in WILD]
    wanted = [f"{command}: {name}: 2" for name in FILES for command in ("fit", "predict")] + wanted
    lines = ended.stdout.splitlines()
    assert len(lines) == len(wanted)
    for line, start in zip(lines, wanted, strict=True):
        assert line.startswith(start)
        assert "sparse matrix is out of range" in line or "file" in start


def test_a_file_that_is_sound_is_fitted(tmp_path):
    sparse.save_npz(tmp_path / "t.npz", sparse.bsr_array(X, blocksize=(2, 2)))
    with np.load(tmp_path / "t.npz") as file:
        arrays = dict(file)
    np.savez(tmp_path / "t.npz", y=y, **arrays)
    options = ["--feature-bound", "1", "--target-bound", "1", "--sparsity", "1", "--out", str(tmp_path / "m.json")]
    ended = CliRunner().invoke(app, ["fit", str(tmp_path / "t.npz"), *options])
    assert ended.exit_code == 0, ended.stderr
