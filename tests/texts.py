"""Real text for tests."""

import numpy as np
from scipy import sparse


def tf_idf(data_dir, name):
    """Unit tf-idf rows: training and test."""
    idf = np.load(data_dir / f"{name}_train.npz")["idf"].astype(float)
    for part in ("train", "test"):
        X = sparse.csr_array(sparse.load_npz(data_dir / f"{name}_{part}.npz"), dtype=np.float64)
        X.data = (1 + np.log(X.data)) * idf[X.indices]
        X.data /= np.repeat(np.maximum(sparse.linalg.norm(X, axis=1), 1e-12), np.diff(X.indptr))
        yield X
