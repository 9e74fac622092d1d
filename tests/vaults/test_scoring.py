"""Scores of rows are scikit-learn's, turned into [0, 1] and back."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, log_loss, mean_absolute_error, mean_squared_error

from thresher.vaults.scoring import Scoring


def natural(scoring, margins, y):
    return scoring.natural(float(np.mean(scoring.of_rows(margins, y))))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_two_classes(rng):
    margins, y = rng.normal(size=200), rng.integers(0, 2, 200).astype(float)
    assert natural(Scoring.of_classes("accuracy", 2), margins, y) == pytest.approx(accuracy_score(y, margins > 0))
    chances = 1 / (1 + np.exp(-margins))
    assert natural(Scoring.of_classes("neg_log_loss", 2), margins, y) == pytest.approx(-log_loss(y, chances))


def test_several_classes(rng):
    margins, labels = rng.normal(size=(200, 3)), rng.integers(0, 3, 200)
    y = np.eye(3)[labels]
    found = natural(Scoring.of_classes("accuracy", 3), margins, y)
    assert found == pytest.approx(accuracy_score(labels, margins.argmax(axis=1)))
    chances = np.exp(margins) / np.exp(margins).sum(axis=1, keepdims=True)
    assert natural(Scoring.of_classes("neg_log_loss", 3), margins, y) == pytest.approx(-log_loss(labels, chances))


@pytest.mark.parametrize(
    ("name", "error"),
    [("neg_mean_squared_error", mean_squared_error), ("neg_mean_absolute_error", mean_absolute_error)],
)
def test_numbers_are_clipped_to_the_public_range_first(name, error, rng):
    margins, y = rng.normal(0, 3, 200), rng.normal(0, 3, 200)
    found = natural(Scoring.of_numbers(name, [(-1.0, 4.0)]), margins, y)
    assert found == pytest.approx(-error(np.clip(y, -1, 4), np.clip(margins, -1, 4)))
    wide = natural(Scoring.of_numbers(name, [(-100.0, 100.0)]), margins, y)
    assert wide == pytest.approx(-error(y, margins))


@pytest.mark.parametrize("name", ["accuracy", "neg_log_loss", "neg_mean_squared_error", "neg_mean_absolute_error"])
def test_scores_lie_between_0_and_1_whatever_the_row(name):
    scoring = Scoring.of_numbers(name, [(-1.0, 1.0)]) if "mean" in name else Scoring.of_classes(name, 2)
    margins = np.array([np.inf, -np.inf, np.nan, 1e308, -1e308, 0.0])
    y = np.array([0.0, 1.0, 1.0, 1.0, 0.0, 1.0])
    scores = scoring.of_rows(margins, y)
    assert np.all((scores >= 0) & (scores <= 1))
    assert scores[2] == 0.0
    if "mean" not in name:
        np.testing.assert_array_equal(scores[[0, 1, 3, 4]], [0, 0, 1, 1])


def test_a_confident_error_counts_no_more_than_a_chance_of_one_in_32():
    scoring = Scoring.of_classes("neg_log_loss", 2)
    wrong = [natural(scoring, np.array([margin]), np.array([0.0])) for margin in (3.0, np.log(31), 10.0, 1e5)]
    assert wrong[0] > wrong[1]
    assert wrong[1:] == pytest.approx([-np.log(32)] * 3)


def test_of_several_ranges_the_widest_clips_numbers_and_the_narrowest_errors():
    scoring = Scoring.of_numbers("neg_mean_absolute_error", [(0.0, 2.0), (-1.0, 10.0)])
    assert natural(scoring, np.array([4.0]), np.array([3.0])) == pytest.approx(-1.0)
    assert natural(scoring, np.array([20.0]), np.array([9.0])) == pytest.approx(-1.0)
    assert natural(scoring, np.array([9.0]), np.array([3.0])) == pytest.approx(-2.0)
    assert Scoring.of_numbers("neg_mean_squared_error", [(0.0, 2.0), (-1.0, 10.0)]).worst == 4.0
