"""IGHT, the non-private baseline: it finds the model, is the textbook's algorithm, and never claims privacy."""

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit

from thresher import PrivacyWarning, SparseClassifier, SparseRegressor
from thresher.algorithms import IGHT
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.vaults.losses import LOGISTIC
from thresher.vaults.problem import LinearProblem

FORMS = {"dense": np.array, "sparse": sparse.csr_array}


def easy_law(loss):
    """Independent columns, five strong coefficients, many rows."""
    n, d = (400, 100) if loss == "squared" else (6000, 50)
    rng = np.random.default_rng(0)
    X, theta = rng.uniform(-1, 1, (n, d)), np.zeros(d)
    theta[[3, 11, 20, 34, 47]] = [2.0, -3.0, 2.5, -2.0, 3.0]
    if loss == "squared":
        return X, X @ theta + 0.2 * rng.normal(size=n), theta
    return X, rng.random(n) < expit(X @ theta), theta


def model(loss, **facts):
    facts = {"sparsity": 5, "epsilon": math.inf, "feature_bound": 1.0, "algorithm": "ight", **facts}
    return SparseRegressor(target_bound=15.0, **facts) if loss == "squared" else SparseClassifier(**facts)


@pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("step", [None, 1.0], ids=["secant", "fixed step"])
def test_the_true_model_is_recovered_on_an_easy_law(loss, form, step):
    X, y, theta = easy_law(loss)
    fitted = model(loss, algorithm=IGHT(step=step), fit_intercept=step is None).fit(FORMS[form](X), y)
    assert fitted.support_.tolist() == [3, 11, 20, 34, 47]
    assert np.linalg.norm(np.ravel(fitted.coef_) - theta) < 0.1 * np.linalg.norm(theta)


@pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")
def test_with_a_step_it_is_the_textbook_iteration():
    X, y, _ = easy_law("squared")
    theta = np.zeros(100)
    for _ in range(7):
        theta -= 0.5 * (X.T @ (X @ theta - y) / 400 + 0.1 * theta)
        theta[np.argsort(np.abs(theta))[:-5]] = 0
    fitted = model("squared", fit_intercept=False, algorithm=IGHT(iterations=7, step=0.5, ridge=0.1)).fit(X, y)
    np.testing.assert_allclose(fitted.coef_, theta, rtol=1e-10, atol=1e-14)


def test_it_refuses_to_pretend_to_be_private():
    problem = LinearProblem(100, 10, Bounds(row=1.0), sparsity=2, loss=LOGISTIC)
    with pytest.raises(ValueError, match="not private"):
        IGHT().plan(problem, Budget(5.0, 1e-6))


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_fitting_it_with_a_finite_epsilon_is_an_error(loss):
    X, y, _ = easy_law(loss)
    with pytest.raises(ValueError, match="not private"):
        model(loss, epsilon=10.0).fit(X, y)


def test_its_certificate_guarantees_nothing_and_fitting_warns():
    X, y, _ = easy_law("squared")
    with pytest.warns(PrivacyWarning, match="privacy is OFF"):
        certificate = model("squared").fit(X, y).certificate_
    assert certificate.grade == "none"
    assert certificate.epsilon is None
    assert certificate.claimed_epsilon is None


@pytest.mark.parametrize(
    "bad", [{"iterations": 0}, {"iterations": -3}, {"step": 0.0}, {"step": -1.0}, {"step": math.nan}]
)
def test_hyper_parameters_that_make_no_sense_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        IGHT(**bad)
