"""auto on real tables: better than the trivial model by a stated margin, and near the better of its two choices."""

import numpy as np

from thresher import SparseClassifier, SparseRegressor
from thresher_papers.datasets import load

SEEDS = range(3)


def mean_score(model, data, **facts):
    fits = (model(random_state=seed, **facts, **data.bounds).fit(data.X, data.y) for seed in SEEDS)
    return np.mean([fit.score(data.X_test, data.y_test) for fit in fits])


def test_auto_on_one_hot_columns_beats_the_majority_class(data_dir):
    """a9a: 76.4 % are in the larger class; auto is to be within 10 % of the better of pursuit and dp-ight."""
    data = load("a9a", data_dir)
    scores = {
        name: mean_score(SparseClassifier, data, sparsity=20, epsilon=1.0, algorithm=name)
        for name in ("auto", "pursuit", "dp-ight")
    }
    assert scores["auto"] > 0.82
    assert scores["auto"] - 0.764 > 0.9 * (max(scores.values()) - 0.764)


def test_auto_on_ratings_of_text_explains_a_third(data_dir):
    assert mean_score(SparseRegressor, load("imdb_rating", data_dir), sparsity=500, epsilon=1.0) > 0.33


def test_auto_tells_52_classes_of_news_apart(data_dir):
    """42.2 % are in the largest class."""
    assert mean_score(SparseClassifier, load("reuters", data_dir), sparsity=200, epsilon=4.0) > 0.7
