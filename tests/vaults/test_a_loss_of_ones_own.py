"""Huber regression as a user would add it: one class, and every algorithm that can take any loss takes it.

What cannot says so in a sentence, before anything is spent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from thresher import (
    Certificate,
    DenseRegressor,
    Ledger,
    LocalSparseRegressor,
    PrivateSearchCV,
    SparseRegressor,
    load_model,
)
from thresher.algorithms import DENSE, DPSLKT, REGISTRY, LabelLasso, ObjectivePerturbation, TwoStage
from thresher.models.files import verify_file
from thresher.models.linear import KINDS
from thresher.vaults.losses import SQUARED, Loss


@dataclass(frozen=True)
class Huber(Loss):
    """(m - y)^2/2 up to |m - y| = knee, along its tangent from there on: far targets pull no harder than near ones."""

    knee: float

    curvature: ClassVar[float] = 1.0
    shift_invariant: ClassVar[bool] = True

    @property
    def name(self):
        return f"huber({self.knee:g})"

    def residual(self, margin, target):
        return np.clip(margin - target, -self.knee, self.knee)

    def value(self, margin, target):
        return SQUARED.clipped_value(margin, target, self.knee)

    def clipped_value(self, margin, target, limit):
        return SQUARED.clipped_value(margin, target, np.minimum(limit, self.knee))

    def largest_residual(self, radius):
        return min(self.knee, super().largest_residual(radius))


class HuberRegressor(SparseRegressor):
    _loss = Huber(0.5)


class DenseHuberRegressor(DenseRegressor):
    _loss = Huber(0.5)


class LocalHuberRegressor(LocalSparseRegressor):
    _loss = Huber(0.5)


@dataclass(frozen=True)
class LogCosh(Loss):
    """log cosh(m - y), of which only what is required is told."""

    name: ClassVar[str] = "log-cosh"
    curvature: ClassVar[float] = 1.0

    def residual(self, margin, target):
        return np.tanh(margin - target)


class LogCoshRegressor(SparseRegressor):
    _loss = LogCosh()


class DenseLogCoshRegressor(DenseRegressor):
    _loss = LogCosh()


pytestmark = pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")

N, D, S = 3000, 8, 2
FACTS = {"feature_bound": 1.0, "target_bound": (-2.0, 6.0), "delta": 1e-6, "random_state": 0}
NOT_PRIVATE = {"ight", "storm", "sgd", "lssgd"}
OTHERS = {"two-stage votes": TwoStage("votes"), "convex": DPSLKT("convex")}
SPARSE = {**{name: name for name in ("auto", *REGISTRY) if name != "pursuit"}, **OTHERS}


def some_rows(wild=0.15):
    """Two columns matter, and some targets are far off: they are clipped to the end of the range."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (N, D))
    y = 1.0 + 2 * X[:, 0] - 2 * X[:, 5] + rng.normal(0, 0.1, N)
    y[rng.random(N) < wild] = 100.0
    return X, y


def sparse_model(algorithm, kind=HuberRegressor, **facts):
    epsilon = math.inf if algorithm in NOT_PRIVATE else 4.0
    return kind(S, algorithm=SPARSE.get(algorithm, algorithm), **{"epsilon": epsilon, **FACTS, **facts})


def dense_model(algorithm, kind=DenseHuberRegressor, **facts):
    epsilon = math.inf if algorithm in NOT_PRIVATE else 4.0
    return kind(algorithm=algorithm, **{"epsilon": epsilon, **FACTS, **facts})


def check_certificate(model, loss):
    certificate = model.certificate_
    assert certificate.verify()
    assert certificate.settings["loss"] == loss
    assert any(f"the loss {loss!r} is the caller's" in assumption for assumption in certificate.assumptions)
    assert certificate.grade in ("conditional", "none")
    assert Certificate.from_json(certificate.to_json()).verify()


# -- every algorithm that takes any loss --------------------------------------------------------------------------


@pytest.mark.parametrize("name", SPARSE)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_every_sparse_algorithm_fits_it_and_finds_the_columns(name, form):
    X, y = some_rows()
    model = sparse_model(name).fit(form(X), y)
    check_certificate(model, "huber(0.5)")
    assert {0, 5} <= set(np.argsort(-np.abs(model.coef_))[:S].tolist())
    assert model.coef_[0] > 0 > model.coef_[5]


@pytest.mark.parametrize("name", DENSE)
def test_every_dense_algorithm_fits_it(name):
    X, y = some_rows()
    model = dense_model(name).fit(X, y)
    check_certificate(model, "huber(0.5)")
    assert model.coef_[0] - model.coef_[5] > np.abs(model.coef_[[1, 2, 3, 4, 6, 7]]).max()


def test_objective_perturbation_fits_it_on_all_columns():
    X, y = some_rows()
    model = HuberRegressor(D, epsilon=4.0, algorithm=ObjectivePerturbation(), **FACTS).fit(X, y)
    check_certificate(model, "huber(0.5)")
    assert set(np.argsort(-np.abs(model.coef_))[:S].tolist()) == {0, 5}


def test_people_who_report_for_themselves_fit_it():
    X, y = some_rows()
    facts = {name: value for name, value in FACTS.items() if name != "delta"}
    model = LocalHuberRegressor(S, 20.0, **facts).fit(X, y)
    check_certificate(model, "huber(0.5)")
    assert set(model.support_) == {0, 5}


def test_it_is_this_loss_that_is_minimised():
    """Against the minimiser by gradient descent: the squared loss, bent by the wild rows, is far from it."""
    X, y = some_rows()
    targets, theta, intercept = np.clip(y, -2, 6), np.zeros(D), 0.0
    for _ in range(4000):
        residuals = np.clip(X @ theta + intercept - targets, -0.5, 0.5)
        theta, intercept = theta - X.T @ residuals / N, intercept - residuals.mean()
    kept = np.argsort(-np.abs(theta))[:S]
    huber, squared = (
        sparse_model("ight", kind, fit_intercept=True).fit(X, y) for kind in (HuberRegressor, SparseRegressor)
    )
    assert set(huber.support_) == set(kept) == {0, 5}
    np.testing.assert_allclose(huber.coef_[kept], theta[kept], atol=0.02)
    assert huber.intercept_ == pytest.approx(intercept, abs=0.02)
    assert abs(squared.intercept_ - intercept) > 0.5


def test_rows_of_people_are_fitted_too():
    X, y = some_rows()
    model = sparse_model("dp-ight").fit(X, y, groups=np.arange(N) // 2)
    check_certificate(model, "huber(0.5)")
    assert set(model.support_) == {0, 5}


# -- what cannot take it ------------------------------------------------------------------------------------------

REFUSALS = {
    "pursuit": (lambda **facts: sparse_model("pursuit", **facts), "pursuit' has no formulas for the loss 'huber(0.5)'"),
    "printed": (
        lambda **facts: HuberRegressor(S, algorithm=DPSLKT(calibration="printed"), **FACTS, **facts),
        "gamma=None: the paper has no constant for loss='huber(0.5)'; give gamma",
    ),
    **{
        name: (
            lambda name=name, **facts: sparse_model(name, LogCoshRegressor, **facts),
            "needs clipped_value of the loss, and 'log-cosh' states none",
        )
        for name in ("output-perturbation", "two-stage", "dpsl-kt", "convex")
    },
    "dp-agd": (
        lambda **facts: dense_model("dp-agd", DenseLogCoshRegressor, **facts),
        "needs value of the loss, and 'log-cosh' states none",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_cannot_fit_it_says_so_before_anything_is_spent(case, tmp_path):
    make, words = REFUSALS[case]
    ledger = Ledger(tmp_path / "book.db")
    ledger.grant("rows", 10.0, 1e-3)
    model = make(ledger=ledger, dataset="rows")
    with pytest.raises(ValueError) as refusal:  # noqa: PT011
        model.fit(*some_rows())
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert not hasattr(model, "certificate_")
    assert ledger.spent("rows").epsilon == 0
    with pytest.raises(ValueError) as refusal:  # noqa: PT011
        model.plan(N, D)
    assert words in str(refusal.value)


@pytest.mark.parametrize(
    ("algorithm", "words"),
    [("label-ldp-iht", "not linear in the target"), (LabelLasso(), "use algorithm='label-ldp-iht' for")],
)
def test_labels_reported_with_noise_would_be_biased_and_are_refused(algorithm, words):
    facts = {name: value for name, value in FACTS.items() if name != "delta"}
    with pytest.raises(ValueError, match=words):
        LocalHuberRegressor(S, 2.0, algorithm=algorithm, **facts).fit(*some_rows())


@pytest.mark.parametrize("name", ["auto", "dp-ight", "peeling", "frank-wolfe", "noisy-frank-wolfe", "ight"])
def test_what_is_optional_is_needed_by_nobody_else(name):
    X, y = some_rows()
    model = sparse_model(name, LogCoshRegressor).fit(sparse.csr_array(X), y)
    check_certificate(model, "log-cosh")
    assert {0, 5} <= set(np.argsort(-np.abs(model.coef_))[:S].tolist())


def test_auto_says_why_it_does_not_take_pursuit():
    plan = sparse_model("auto").plan(N, D)
    assert plan.algorithm == "dp-ight"
    assert any("pursuit has no formulas for the loss 'huber(0.5)'" in note for note in plan.notes)


def test_a_survey_cannot_send_it_to_people():
    from thresher.local.task import SurveyTask

    facts = {name: value for name, value in FACTS.items() if name not in ("delta", "random_state")}
    plan = LocalHuberRegressor(S, 2.0, **facts).plan(N, D)
    with pytest.raises(ValueError, match=r"loss='huber\(0.5\)' is a class, which cannot be sent to people"):
        SurveyTask.from_plan(plan, "survey")


# -- what goes with a model ---------------------------------------------------------------------------------------


def fitted():
    X, y = some_rows()
    return sparse_model("dp-ight").fit(X, y), X


def test_a_model_survives_its_file_and_its_certificate_verifies(tmp_path):
    model, X = fitted()
    path = tmp_path / "model.json"
    model.save(path)
    read = load_model(path)
    assert type(read) is HuberRegressor
    np.testing.assert_array_equal(read.predict(X), model.predict(X))
    certificate, check = verify_file(path)
    assert check
    assert certificate.settings["loss"] == "huber(0.5)"


def test_a_file_whose_class_is_not_there_says_what_to_import(tmp_path, monkeypatch):
    model, _ = fitted()
    model.save(tmp_path / "model.json")
    monkeypatch.delitem(KINDS, "HuberRegressor")
    with pytest.raises(ValueError, match=r"class 'HuberRegressor', which nothing here defines: import its module"):
        load_model(tmp_path / "model.json")


def test_intervals_are_refused_and_the_summary_says_why(tmp_path):
    model, _ = fitted()
    with pytest.raises(ValueError, match=r"intervals: no standard errors are known for the loss 'huber\(0.5\)'"):
        model.intervals()
    summary = str(model.summary())
    assert "adds its coefficient to the prediction" in summary
    assert "No intervals: no standard errors are known for the loss 'huber(0.5)'" in summary
    model.report(tmp_path / "report.html")


def test_a_search_fits_it():
    X, y = some_rows()
    search = PrivateSearchCV(
        HuberRegressor(target_bound=FACTS["target_bound"], feature_bound=1.0), {"sparsity": [2, 3]}, epsilon=8.0,
        delta=1e-6, random_state=0,
    ).fit(X, y)  # fmt: skip
    assert type(search.best_estimator_) is HuberRegressor
    assert search.certificate_.verify()
    assert search.certificate_.settings["trial"]["settings"]["loss"] == "huber(0.5)"
    assert {0, 5} <= set(search.best_estimator_.support_)


def test_clones_and_seeds_behave():
    X, y = some_rows()
    one, other = (clone(sparse_model("dp-ight")).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one.coef_, other.coef_)
