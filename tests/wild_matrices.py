"""Sparse matrices whose arrays were changed after they were made, so that compiled loops would read or write astray.

As a program it hands each of them to each door, and such files to commands, and prints what was refused. It is a
program because a hole ends in a segmentation fault.
"""

import tempfile
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse

FAR = 2**31 - 2
ROWS, COLUMNS = 40, 4

X = np.random.default_rng(0).uniform(-1, 1, (ROWS, COLUMNS))
X[X < 0] = 0
y = X[:, 0]
two = (y > np.median(y)).astype(int)


def changed(kind, **entries):
    """A matrix with some entries of its arrays overwritten: name = (where, value)."""

    def make():
        matrix = sparse.bsr_array(X, blocksize=(2, 2)) if kind == "bsr" else sparse.coo_array(X).asformat(kind)
        for name, (at, value) in entries.items():
            array = np.array(getattr(matrix, name))
            array[at] = value
            setattr(matrix, name, array)
        return matrix

    return make


def replaced(kind, **arrays):
    """A matrix with other arrays."""

    def make():
        matrix = changed(kind)()
        for name, of in arrays.items():
            setattr(matrix, name, of(getattr(matrix, name)))
        return matrix

    return make


def lil(name, value):
    def make():
        matrix = sparse.lil_array(X)
        getattr(matrix, name)[3] = value
        return matrix

    return make


def dok(key):
    def make():
        matrix = sparse.dok_array(X)
        matrix._dict[key] = 1.0
        return matrix

    return make


COMPRESSED = {
    f"{kind}, {name}": make
    for kind in ("csr", "csc", "bsr")
    for name, make in {
        "index too large": changed(kind, indices=(0, FAR)),
        "index negative": changed(kind, indices=(0, -(2**30))),
        "start too large": changed(kind, indptr=(-1, 2**30)),
        "start negative": changed(kind, indptr=(0, -(2**20))),
        "starts that fall": changed(kind, indptr=(1, 2**29)),
        "too few starts": replaced(kind, indptr=lambda of: of[:2]),
        "no starts": replaced(kind, indptr=lambda of: of[:0]),
        "too few indices": replaced(kind, indices=lambda of: of[:1]),
        "too few values": replaced(kind, data=lambda of: of[:1]),
        "starts without a sign": replaced(kind, indptr=lambda of: of.astype(np.uint64)[::-1].copy()),
        "indices that are no whole numbers": replaced(kind, indices=lambda of: of + 0.5),
    }.items()
}
WILD = {
    **COMPRESSED,
    "bsr, blocks of another size": replaced("bsr", data=lambda of: np.ones((len(of), 64, 64))),
    "coo, row too large": changed("coo", row=(0, FAR)),
    "coo, row negative": changed("coo", row=(0, -(2**30))),
    "coo, column too large": changed("coo", col=(0, FAR)),
    "coo, column negative": changed("coo", col=(0, -1)),
    "coo, too few values": replaced("coo", data=lambda of: of[:1]),
    "dia, offset too large": changed("dia", offsets=(0, FAR)),
    "dia, offset negative": changed("dia", offsets=(0, -(2**31))),
    "dia, too many offsets": replaced("dia", offsets=lambda of: np.arange(10_000)),
    "lil, index too large": lil("rows", [FAR]),
    "lil, index negative": lil("rows", [-(2**30)]),
    "lil, too few values": lil("data", []),
    "lil, too many values": lil("data", [1.0] * 10_000),
    "lil, no list": lil("rows", None),
    "dok, row too large": dok((FAR, 0)),
    "dok, column negative": dok((0, -5)),
    "dok, no pair": dok((0,)),
}


def doors():
    """What takes a matrix, by name."""
    from thresher import (
        DenseRegressor,
        LocalSparseClassifier,
        LocalSparseRegressor,
        PrivateSearchCV,
        SparseClassifier,
        SparseRegressor,
    )
    from thresher.algorithms.dpsl_kt import DPSLKT
    from thresher.audit.attacks import read_records
    from thresher.data.dask import Refused, check_partition
    from thresher.federated import FederatedSparseRegressor
    from thresher.local import Server
    from thresher.models.scaler import PrivateScaler
    from thresher.privacy.bounds import Bounds
    from thresher.vaults.clipping import clip_rows
    from thresher.vaults.polytopes import Polytope

    bounds = {"feature_bound": 1.0}
    numbers = {**bounds, "target_bound": 1.0}
    regressor = SparseRegressor(1, epsilon=50.0, **numbers)
    classifier = SparseClassifier(1, classes=[0, 1], epsilon=50.0, **bounds)

    def partition(matrix):
        checked = check_partition(matrix, COLUMNS, [np.float64])
        if isinstance(checked, Refused):
            raise ValueError(checked.message)

    return {
        "fit": lambda matrix: regressor.fit(matrix, y),
        "fit of classes": lambda matrix: classifier.fit(matrix, two),
        "fit of people": lambda matrix: regressor.fit(matrix, y, groups=list(range(ROWS))),
        "dense fit": lambda matrix: DenseRegressor(**numbers).fit(matrix, y),
        "local fit": lambda matrix: LocalSparseRegressor(1, **numbers).fit(matrix, y),
        "federated fit": lambda matrix: FederatedSparseRegressor(1, **numbers).fit([(X, y), (matrix, y)]),
        "search": lambda matrix: PrivateSearchCV(regressor, {"sparsity": [1]}).fit(matrix, y),
        "scaler": lambda matrix: PrivateScaler(**bounds).fit(matrix),
        "predict": SparseRegressor(1, epsilon=50.0, **numbers).fit(X, y).predict,
        "chances": SparseClassifier(1, classes=[0, 1], epsilon=50.0, **bounds).fit(X, two).predict_proba,
        "transform": PrivateScaler(centre=False, epsilon=50.0, **bounds).fit(X).transform,
        "targets": lambda matrix: classifier.fit(X, matrix),
        "score": lambda matrix: SparseClassifier(1, epsilon=50.0, **bounds).fit(X, two).score(X, matrix),
        "survey": lambda matrix: Server(LocalSparseClassifier(1, algorithm="label-ldp-iht", classes=[0, 1]), X=matrix),
        "partition": partition,
        "clip": lambda matrix: clip_rows(matrix, Bounds(1.0)),
        "attack": lambda matrix: read_records(regressor, matrix, y),
        "vertices": Polytope,
        "public rows": lambda matrix: regressor.set_params(algorithm=DPSLKT(auxiliary=matrix)).fit(X, y),
    }


FILES = {
    f"{kind}, file {at}": {"format": kind.encode(), "y": np.ones(2), "shape": [2, 4], **arrays}
    for at, (kind, arrays) in enumerate(
        [
            ("bsr", {"indices": [0, 2**30], "indptr": [0, 2], "data": np.ones((2, 2, 2))}),
            ("bsr", {"indices": [0, -(2**30)], "indptr": [0, 2], "data": np.ones((2, 2, 2))}),
            ("csr", {"indices": [0, 2**30], "indptr": [0, 1, 2], "data": np.ones(2)}),
            ("csc", {"indices": [0, 2**30], "indptr": [0, 1, 2, 2, 2], "data": np.ones(2)}),
            ("csr", {"indices": [0, 1], "indptr": [0, 2**30, 2], "data": np.ones(2)}),
            ("coo", {"row": [0, -(2**30)], "col": [0, 1], "data": np.ones(2)}),
            ("dia", {"offsets": [2**31 - 2], "data": np.ones((1, 4))}),
            ("dia", {"offsets": [-(2**31)], "data": np.ones((1, 4))}),
        ]
    )
}


def try_doors():
    for name, door in doors().items():
        for wild, make in WILD.items():
            try:
                door(make())
            except ValueError as error:
                print(f"{name}: {wild}: {error}", flush=True)


def try_files(folder):
    from typer.testing import CliRunner

    from thresher import SparseRegressor
    from thresher.cli.app import app

    model, path = folder / "m.json", folder / "t.npz"
    SparseRegressor(1, epsilon=50.0, feature_bound=1.0, target_bound=1.0).fit(X, y).save(model)
    options = ["--feature-bound", "1", "--target-bound", "1", "--out", str(folder / "new.json")]
    for name, arrays in FILES.items():
        whole = {key: np.array(of, np.int32) if isinstance(of, list) else of for key, of in arrays.items()}
        np.savez(path, **whole)
        for words in (["fit", str(path), *options], ["predict", str(model), str(path)]):
            ended = CliRunner().invoke(app, words)
            print(f"{words[0]}: {name}: {ended.exit_code}: {ended.stderr.strip()}", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as place:
        try_files(Path(place))
    try_doors()
