"""auto on real tables: better than the trivial model by a stated margin, and near the better of its two choices."""

import numpy as np
from scipy import sparse

from texts import tf_idf
from thresher import SparseClassifier, SparseRegressor

SEEDS = range(3)


def labels(data_dir, name, key="y"):
    return [np.load(data_dir / f"{name}_{part}.npz")[key] for part in ("train", "test")]


def mean_score(model, X, y, X_test, y_test, **facts):
    return np.mean([model(random_state=seed, **facts).fit(X, y).score(X_test, y_test) for seed in SEEDS])


def test_auto_on_one_hot_columns_beats_the_majority_class(data_dir):
    """a9a: 76.4 % are in the larger class; auto is to be within 10 % of the better of pursuit and dp-ight."""
    X, X_test = (sparse.load_npz(data_dir / f"a9a_{part}.npz") for part in ("train", "test"))
    y, y_test = labels(data_dir, "a9a")
    facts = {"sparsity": 20, "epsilon": 1.0, "feature_bound": 1.0, "row_bound": 14**0.5, "classes": [-1, 1]}
    scores = {
        name: mean_score(SparseClassifier, X, y, X_test, y_test, algorithm=name, **facts)
        for name in ("auto", "pursuit", "dp-ight")
    }
    assert scores["auto"] > 0.82
    assert scores["auto"] - 0.764 > 0.9 * (max(scores.values()) - 0.764)


def test_auto_on_ratings_of_text_explains_a_third(data_dir):
    X, X_test = tf_idf(data_dir, "imdb")
    y, y_test = labels(data_dir, "imdb", "rating")
    facts = {"sparsity": 500, "epsilon": 1.0, "row_bound": 1.0, "target_bound": (1, 10)}
    assert mean_score(SparseRegressor, X, y, X_test, y_test, **facts) > 0.33


def test_auto_tells_52_classes_of_news_apart(data_dir):
    """42.2 % are in the largest class."""
    X, X_test = tf_idf(data_dir, "reuters_r52")
    y, y_test = labels(data_dir, "reuters_r52")
    facts = {"sparsity": 200, "epsilon": 4.0, "row_bound": 1.0, "classes": range(52)}
    assert mean_score(SparseClassifier, X, y, X_test, y_test, **facts) > 0.7
