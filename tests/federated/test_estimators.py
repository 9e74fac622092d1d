"""The federated front doors: one model from a list of data sets, as good as a curator's with the same noise."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn.base import clone

from thresher import load_model
from thresher.algorithms import DPIGHT, Peeling
from thresher.federated import (
    FederatedDenseClassifier,
    FederatedDenseRegressor,
    FederatedSparseClassifier,
    FederatedSparseRegressor,
)
from thresher.privacy.certificate import Certificate
from thresher.privacy.releases import GaussianGradient
from thresher.vaults import CentralVault
from thresher.vaults.randomness import NoiseSource

CUTS = [300, 1000]
N, D = 3000, 30


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(N, D))
    margin = 2 * X[:, 3] - 2 * X[:, 7]
    return X, margin + 0.2 * rng.normal(size=N), (margin + 0.5 * rng.normal(size=N) > 0).astype(int)


def split(X, y):
    edges = [0, *CUTS, N]
    return [(X[a:b], y[a:b]) for a, b in pairwise(edges)]


def regressor(**changes):
    facts = {"epsilon": 2.0, "delta": 1e-6, "feature_bound": 1.0, "target_bound": 4.0, "random_state": 0}
    return FederatedSparseRegressor(2, **{**facts, **changes})


@pytest.mark.parametrize("algorithm", ["dp-ight", "noisy-frank-wolfe", "mpc-out-p", DPIGHT(iterations=5)])
def test_a_sparse_regression_finds_its_columns(rows, algorithm):
    X, y, _ = rows
    model = regressor(algorithm=algorithm, epsilon=8.0).fit(split(X, y))
    assert set(model.support_) == {3, 7}
    assert model.coef_[3] > 0 > model.coef_[7]
    certificate = model.certificate_
    assert certificate.verify()
    assert (certificate.epsilon, certificate.delta, certificate.n_samples) == (8.0, 1e-6, N)
    assert certificate.releases[0]["noise"] == "dithered binomial"
    assert any("3 parties; how many rows each holds is public: 300, 700, 2000" in note for note in certificate.notes)


def test_a_sparse_classification_finds_its_columns(rows):
    X, _, y = rows
    model = FederatedSparseClassifier(2, epsilon=4.0, delta=1e-6, feature_bound=1.0, classes=[0, 1]).fit(split(X, y))
    assert set(model.support_) == {3, 7}
    assert model.score(X, y) > 0.8
    assert model.certificate_.grade == "proved"
    assert "operating system" in model.certificate_.randomness


def test_several_classes(rows):
    X, _, _ = rows
    y = np.where(X[:, 3] > 0.3, "a", np.where(X[:, 7] > 0, "b", "c"))
    model = FederatedSparseClassifier(2, epsilon=8.0, delta=1e-6, feature_bound=1.0, random_state=0).fit(split(X, y))
    assert model.coef_.shape == (3, D)
    assert model.score(X, y) > 0.6
    assert "class labels are public" in " ".join(model.certificate_.assumptions)


@pytest.mark.parametrize("algorithm", ["mpc-grad-p", "mpc-out-p", "local-grad-p", "local-out-p"])
def test_dense_models_of_every_protocol(rows, algorithm):
    X, y, labels = rows
    classes = FederatedDenseClassifier(
        4.0, 1e-6, algorithm=algorithm, feature_bound=1.0, penalty=0.05, classes=[0, 1], random_state=0
    ).fit(split(X, labels))
    numbers = FederatedDenseRegressor(
        4.0, 1e-6, algorithm=algorithm, feature_bound=1.0, penalty=0.05, target_bound=4.0, random_state=0
    ).fit(split(X, y))
    for model in (classes, numbers):
        assert model.certificate_.verify()
        assert model.certificate_.epsilon == 4.0
        noise = "gaussian" if algorithm.startswith("local") else "dithered binomial"
        assert model.certificate_.releases[0]["noise"] == noise
    assert classes.score(X, labels) > 0.6


@pytest.mark.parametrize(("aggregation", "package"), [("mpyc", "mpyc"), ("skellam", "cryptography")])
def test_real_back_ends_give_the_same_kind_of_model(rows, aggregation, package):
    pytest.importorskip(package)
    X, y, _ = rows
    model = regressor(
        aggregation=aggregation, algorithm=DPIGHT(iterations=3), epsilon=8.0, random_state=None
    ).fit(split(X, y))  # fmt: skip
    assert set(model.support_) == {3, 7}
    certificate = model.certificate_
    assert certificate.verify()
    noise = "skellam" if aggregation == "skellam" else "dithered binomial"
    grade = "conditional" if noise == "skellam" else "proved"  # whose chances are computed in floating point
    assert (certificate.grade, certificate.epsilon) == (grade, 8.0)
    assert certificate.releases[0]["noise"] == noise
    assert certificate.trust["model"].startswith("federated")
    assert "part" in certificate.randomness


def test_noise_that_nobody_knows_cannot_be_repeated(rows):
    X, y, _ = rows
    with pytest.raises(ValueError, match="random_state=0 with aggregation='mpyc'"):
        regressor(aggregation="mpyc").fit(split(X, y))


def test_the_step_of_parties_with_noise_of_their_own_suits_that_noise(rows):
    X, _, labels = rows
    steps = [
        FederatedDenseClassifier(0.1, 1e-6, algorithm=algorithm, feature_bound=1.0, classes=[0, 1], random_state=0)
        .fit(split(X, labels))
        .plan_.settings["step"]
        for algorithm in ("mpc-grad-p", "local-grad-p")
    ]
    assert steps[0] / steps[1] == pytest.approx(3**0.5)


def test_it_is_the_central_model_at_the_same_noise(rows):
    """60 models of parties and 60 of a curator whose Gaussian noise has the joint noise's sd: a two-sample test of each
    of two coefficients, which fails once in 10^5 runs if the laws agree, as they nearly do."""
    X, y, _ = rows
    sets = split(X, y)
    plan = regressor(algorithm=DPIGHT(iterations=5)).plan(N, D)
    (shared,) = plan.releases
    central = replace(plan, releases=(GaussianGradient(5, shared.multiplier),), trust="central")
    federated, curated = [], []
    for seed in range(60):
        federated.append(regressor(algorithm=DPIGHT(iterations=5), epsilon=2.0, random_state=seed).fit(sets).coef_)
        with CentralVault(X, y, central, NoiseSource(1000 + seed)) as vault:
            curated.append(DPIGHT(iterations=5).run(vault)[:D])
    federated, curated = np.array(federated), np.array(curated)
    for column in (3, 7):
        assert stats.ks_2samp(federated[:, column], curated[:, column]).pvalue > 5e-6
    assert np.std(federated[:, 3]) > 0


def test_sizes_do_not_matter_for_joint_noise(rows):
    """The noise follows the rows of all: a party of one row costs nobody anything."""
    X, y, _ = rows
    alone = [(X[:1], y[:1]), (X[1:2], y[1:2]), (X[2:], y[2:])]
    scales = [
        regressor(algorithm=algorithm).fit(sets).certificate_.releases[0]["answers"][0]["scale"]
        for algorithm in ("dp-ight", "mpc-out-p")
        for sets in (alone, split(X, y))
    ]
    assert scales[0] == scales[1]
    assert scales[2] == pytest.approx(scales[3], rel=0.01)


def test_frames_keep_their_names_and_sparse_rows_stay_sparse(rows):
    X, y, _ = rows
    names = [f"gene {j}" for j in range(D)]
    frames = [(pd.DataFrame(block, columns=names), targets) for block, targets in split(X, y)]
    model = regressor(epsilon=8.0).fit(frames)
    assert set(model.feature_names_in_[model.support_]) == {"gene 3", "gene 7"}
    mixed = [(sparse.csr_array(block) if at else block, t) for at, (block, t) in enumerate(split(X, y))]
    np.testing.assert_allclose(regressor(epsilon=8.0).fit(mixed).coef_, model.coef_, rtol=1e-6)


def test_models_are_saved_and_read_back(rows, tmp_path):
    X, y, _ = rows
    model = regressor().fit(split(X, y))
    model.save(tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.certificate_.verify()
    assert Certificate.from_json(model.certificate_.to_json()) == again.certificate_
    assert clone(again).get_params()["aggregation"] == "reference"


def test_a_certificate_that_pays_for_fewer_coordinates_does_not_verify(rows):
    X, y, _ = rows
    certificate = regressor().fit(split(X, y)).certificate_
    (entry,) = certificate.releases
    forged = {**entry, "release": {**entry["release"], "touched": 1}}
    check = replace(certificate, releases=(forged,)).verify()
    assert not check
    assert "pays for fewer coordinates than 31" in check.problems[0]


def test_a_plan_needs_no_data():
    plan = regressor().plan(10_000, 500)
    assert plan.trust == "reference"
    assert 0.999 * 2 < plan.epsilon <= 2


@pytest.mark.parametrize(
    ("data_sets", "message"),
    [
        ([], "at least two pairs"),
        ([(np.ones((3, 2)), np.ones(3))], "for one data set use SparseRegressor"),
        ("ab", "data_sets\\[0\\]"),
        ([(np.ones((3, 2)), np.ones(3)), (np.ones((3, 3)), np.ones(3))], "data_sets\\[1\\]: X has 3 features"),
        ([(np.ones((3, 2)), np.ones(3)), (np.ones((3, 2)), np.ones(4))], "data_sets\\[1\\]"),
        ([(np.ones((3, 2)), np.ones(3)), (np.full((3, 2), np.nan), np.ones(3))], "data_sets\\[1\\].*NaN"),
    ],
)
def test_bad_data_sets_are_refused_and_named(data_sets, message):
    model = regressor()
    with pytest.raises(ValueError, match=message):
        model.fit(data_sets)
    assert not hasattr(model, "certificate_")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"aggregation": "trust me"}, "aggregation='trust me' must be one of 'reference', 'mpyc'"),
        ({"algorithm": "pursuit"}, "algorithm='pursuit' must be one of 'dp-ight'"),
        ({"algorithm": Peeling()}, "which parties cannot answer jointly"),
        ({"algorithm": DPIGHT}, "must be a name or an instance"),
        ({"epsilon": float("inf")}, "never add up without noise"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"target_bound": None}, "target_bound"),
    ],
)
def test_bad_settings_are_refused_before_rows_are_looked_at(rows, changes, message):
    X, y, _ = rows
    with pytest.raises(ValueError, match=message):
        regressor(**changes).fit(split(X, y))


@pytest.mark.parametrize("algorithm", ["noisy-frank-wolfe", "local-out-p", "rajkumar-agarwal"])
def test_algorithms_for_two_classes_refuse_three(rows, algorithm):
    X, _, labels = rows
    door = FederatedSparseClassifier if algorithm == "noisy-frank-wolfe" else FederatedDenseClassifier
    sparse_only = {"sparsity": 2} if door is FederatedSparseClassifier else {}
    model = door(epsilon=2.0, delta=1e-6, feature_bound=1.0, classes=[0, 1, 2], algorithm=algorithm, **sparse_only)
    with pytest.raises(ValueError, match=f"algorithm='{algorithm}' fits two classes, and there are 3"):
        model.fit(split(X, labels))
