"""What every algorithm must pass, whatever it does: a new entry in the registry is tested here without further ado."""

import json
import math
import pickle
from collections import Counter

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from thresher import BudgetExceeded, Certificate, DenseClassifier, DenseRegressor, SparseClassifier, SparseRegressor
from thresher.algorithms import DENSE, REGISTRY, FrankWolfe
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.vaults import CentralVault
from thresher.vaults.central.vertices import Follower
from thresher.vaults.kernels import compiled
from thresher.vaults.losses import loss_named
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

pytestmark = pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")

ALL = {**REGISTRY, **DENSE}
NOT_PRIVATE = {"ight", "storm", "sgd", "lssgd"}
ADAPTIVE = {"dp-agd"}  # decides while it runs what to ask: its plan is a cap
# their noise enters an objective, whose minimiser is found in floating point
NO_EXACT_SAMPLER = {"two-stage", "objective-perturbation"}
EPSILON = {name: math.inf if name in NOT_PRIVATE else 2.0 for name in ALL}
PRIVATE = [name for name in ALL if name not in NOT_PRIVATE]
LOSSES = ["squared", "logistic"]
N, D, S = 300, 20, 3


@pytest.fixture(params=ALL)
def name(request):
    return request.param


@pytest.fixture(params=LOSSES)
def loss(request):
    return request.param


def some_rows(loss):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N, D)) * (rng.random((N, D)) < 0.5)
    y = X[:, :3] @ [2.0, -2.0, 2.0] + 0.3 * rng.normal(size=N)
    return X, y if loss == "squared" else (y > 0).astype(int)


def problem_of(loss, intercept=True):
    return LinearProblem(
        N,
        D,
        Bounds(feature=1.0, target=(-6.0, 6.0) if loss == "squared" else None),
        sparsity=S,
        loss=loss_named(loss),
        intercept=intercept,
    )


def model_of(name, loss, **facts):
    facts = {"epsilon": EPSILON[name], "delta": 1e-6, "feature_bound": 1.0, "algorithm": name, **facts}
    if name in DENSE and name not in REGISTRY:
        return DenseRegressor(target_bound=6.0, **facts) if loss == "squared" else DenseClassifier(**facts)
    return SparseRegressor(S, target_bound=6.0, **facts) if loss == "squared" else SparseClassifier(S, **facts)


# -- plans ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("private", PRIVATE)
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0, 50.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.01])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_the_plan_is_priced_within_the_budget(private, loss, epsilon, delta, adjacency):
    plan = ALL[private]().plan(problem_of(loss), Budget(epsilon, delta, adjacency))
    assert 0 < plan.cost.epsilon(delta)[0] <= epsilon


@pytest.mark.parametrize("private", PRIVATE)
def test_a_smaller_budget_buys_a_cheaper_plan(private, loss):
    """Both are priced at the same delta; so the budget is not merely checked but used."""
    cheap, dear = (ALL[private]().plan(problem_of(loss), Budget(e, 1e-6)).epsilon for e in (0.5, 4.0))
    assert cheap < 0.5 * dear


@pytest.mark.parametrize("intercept", [True, False])
def test_a_run_asks_exactly_what_the_plan_lists(name, loss, intercept):
    X, y = some_rows(loss)
    algorithm = ALL[name]()
    plan = algorithm.plan(problem_of(loss, intercept), Budget(EPSILON[name], 1e-6))
    vault = CentralVault(X, y.astype(float), plan, NoiseSource(0))
    algorithm.run(vault)
    asked = Counter(answer.release for answer in vault.answers)
    if name in ADAPTIVE:
        (cap,) = plan.releases
        assert 0.9 * cap.rho < sum(release.cost().rho * times for release, times in asked.items()) <= cap.rho
        return
    assert asked == {release: release.times for release in plan.releases}


class Insatiable:
    """A vault whose last question is put once more."""

    def __init__(self, vault):
        self._vault = vault
        self._again = None

    def __getattr__(self, name):
        attribute = getattr(self._vault, name)
        if not callable(attribute):
            return attribute

        def ask(*args, **kwargs):
            self._again = lambda: attribute(*args, **kwargs)
            return attribute(*args, **kwargs)

        return ask

    def ask_again(self):
        return self._again()


def greedy(name):
    class Greedy(ALL[name]):
        def run(self, vault):
            insatiable = Insatiable(vault)
            super().run(insatiable)
            return insatiable.ask_again()

    return Greedy()


def test_an_algorithm_that_asks_once_too_often_is_stopped_and_leaves_no_model(name, loss):
    X, y = some_rows(loss)
    model = model_of(name, loss, algorithm=greedy(name))
    with pytest.raises(BudgetExceeded, match="used up"):
        model.fit(X, y)
    assert not hasattr(model, "coef_")
    assert not hasattr(model, "certificate_")
    with pytest.raises(NotFittedError):
        model.predict(X)


# -- models -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array, sparse.coo_array], ids=["csr", "csc", "coo"])
def test_dense_and_sparse_rows_give_the_same_model(name, loss, form):
    X, y = some_rows(loss)
    models = [model_of(name, loss, random_state=3) for _ in range(2)]
    if name == "frank-wolfe":  # sparse rows have a faster way to draw from the same law, with other random numbers
        models = [clone(model).set_params(algorithm=FrankWolfe(constant_work=True)) for model in models]
    dense, scattered = (model.fit(rows, y) for model, rows in zip(models, (X, form(X)), strict=True))
    np.testing.assert_allclose(scattered.coef_, dense.coef_, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(scattered.intercept_, dense.intercept_, rtol=1e-6, atol=1e-6)
    assert dense.support_.size > 0 or name == "peeling"  # which gives up what may be noise


@pytest.mark.skipif(compiled() is None, reason="the compiled loops could not be built here")
@pytest.mark.parametrize("intercept", [False, True], ids=["no intercept", "intercept"])
@pytest.mark.parametrize("people", [False, True], ids=["rows", "people"])
def test_frank_wolfe_walks_over_sparse_rows_to_the_model_of_dense_ones(loss, intercept, people, monkeypatch):
    """With so little noise that the largest score wins both ways; sparse rows are followed, move by move."""
    draws, drawn = [], Follower.draw
    monkeypatch.setattr(Follower, "draw", lambda self, uniforms: draws.append(1) or drawn(self, uniforms))
    X, y = some_rows(loss)
    facts = {"epsilon": 1e6, "hardened": False, "algorithm": FrankWolfe(iterations=40), "fit_intercept": intercept}
    groups = np.arange(N) // 2 if people else None
    dense = model_of("frank-wolfe", loss, **facts).fit(X, y, groups=groups)
    assert not draws
    scattered = model_of("frank-wolfe", loss, **facts).fit(sparse.csr_array(X), y, groups=groups)
    assert len(draws) == 40
    np.testing.assert_allclose(scattered.coef_, dense.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(scattered.intercept_, dense.intercept_, rtol=1e-9, atol=1e-12)
    assert dense.support_.size > 0 or name == "peeling"  # which gives up what may be noise


@pytest.mark.parametrize("sparse_one", REGISTRY)
@pytest.mark.parametrize("seed", range(5))
def test_the_model_has_at_most_as_many_coefficients_as_asked_for(sparse_one, loss, seed):
    X, y = some_rows(loss)
    model = model_of(sparse_one, loss, random_state=seed).fit(X, y)
    assert model.support_.size <= S
    np.testing.assert_array_equal(np.flatnonzero(model.coef_), model.support_)


def test_a_random_state_makes_the_fit_repeatable(name, loss):
    X, y = some_rows(loss)
    one, same = (model_of(name, loss, random_state=3).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one.coef_, same.coef_)


@pytest.mark.parametrize("private", PRIVATE)
def test_without_a_random_state_the_noise_is_fresh(private, loss):
    """Four fits agree by chance with probability below 1e-8: a choice of vertices repeats itself once in 700 times."""
    X, y = some_rows(loss)
    fits = [model_of(private, loss).fit(X, y) for _ in range(4)]
    assert len({(*np.ravel(fit.coef_), *np.ravel(fit.intercept_)) for fit in fits}) > 1


@pytest.mark.parametrize("entry", [1e300, -1e300, 1e-320])
@pytest.mark.parametrize("form", [np.array, sparse.csr_array], ids=["dense", "sparse"])
def test_a_wild_row_does_no_harm(name, loss, entry, form):
    X, y = some_rows(loss)
    X[7] = entry
    if loss == "squared":
        y[7] = 1e300
    model = model_of(name, loss, random_state=0).fit(form(X), y)
    assert np.all(np.isfinite(model.coef_))
    assert np.all(np.isfinite(model.intercept_))


def test_rows_of_zeros_do_no_harm(name, loss):
    _, y = some_rows(loss)
    model = model_of(name, loss, random_state=0).fit(np.zeros((N, D)), y)
    assert np.all(np.isfinite(model.coef_))


# -- copies -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "copy", [clone, lambda algorithm: pickle.loads(pickle.dumps(algorithm))], ids=["clone", "pickle"]
)
def test_an_algorithm_survives_copying_inside_its_estimator(name, loss, copy):
    model = model_of(name, loss, algorithm=ALL[name](), random_state=4)
    X, y = some_rows(loss)
    copied = copy(model)
    assert copied.algorithm == model.algorithm
    np.testing.assert_array_equal(copied.fit(X, y).coef_, model.fit(X, y).coef_)


def test_a_fitted_model_survives_pickling(name, loss):
    X, y = some_rows(loss)
    model = model_of(name, loss).fit(X, y)
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copied.predict(X), model.predict(X))
    assert copied.certificate_ == model.certificate_
    assert copied.plan_ == model.plan_


def test_a_clone_of_a_fitted_model_is_unfitted(name, loss):
    X, y = some_rows(loss)
    with pytest.raises(NotFittedError):
        clone(model_of(name, loss).fit(X, y)).predict(X)


# -- certificates -----------------------------------------------------------------------------------------------


def certificate_of(name, loss="squared", **facts):
    X, y = some_rows(loss)
    return model_of(name, loss, **facts).fit(X, y).certificate_


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("hardened", [False, True], ids=["plain", "hardened"])
def test_certificates_verify_and_survive_json(name, loss, adjacency, hardened):
    certificate = certificate_of(name, loss, adjacency=adjacency, hardened=hardened)
    restored = Certificate.from_json(certificate.to_json())
    assert restored.to_json() == certificate.to_json()
    assert restored.verify()
    assert restored.epsilon == (None if name in NOT_PRIVATE else EPSILON[name])
    if name not in NOT_PRIVATE:
        idealised = any("real numbers" in each for each in restored.assumptions)
        assert idealised == (not hardened or name in NO_EXACT_SAMPLER)


@pytest.mark.parametrize("private", PRIVATE)
def test_a_certificate_lists_every_answer(private, loss):
    certificate = certificate_of(private, loss)
    for entry in certificate.releases:
        if entry["release"]["kind"] == "ZCDPFilter":  # a cap, which answers nothing itself
            continue
        assert sum(answer["count"] for answer in entry["answers"]) == entry["release"]["times"]


def first_release(data):
    return data["releases"][0]["release"]


def first_answer(data):
    return data["releases"][0]["answers"][0]


def scaled(holder, key, factor):
    def tamper(data):
        target = holder(data)
        target[key] *= factor

    return tamper


def scaled_multiplier(factor):
    """Of the first release, whatever it is called: the sd, or the scale, over the sensitivity."""

    def tamper(data):
        (key,) = (key for key in first_release(data) if key.endswith("_per_sensitivity"))
        first_release(data)[key] *= factor

    return tamper


def moved(holder, key, step):
    def tamper(data):
        holder(data)[key] += step

    return tamper


TAMPERS = {
    "fewer times": moved(first_release, "times", -1),
    "one more answer": moved(first_answer, "count", 1),
    "multiplier raised": scaled_multiplier(1.01),
    "multiplier lowered": scaled_multiplier(0.99),
    "scale lowered": scaled(first_answer, "scale", 0.99),
    "sensitivity raised": scaled(first_answer, "sensitivity", 1.01),
    "epsilon lowered": scaled(lambda data: data, "epsilon", 0.99),
    "delta lowered": scaled(lambda data: data, "delta", 0.9),
}


def verifies(data):
    """False as well if the certificate is refused as malformed, such as a release of zero times."""
    try:
        return bool(Certificate.from_dict(data).verify())
    except ValueError:
        return False


@pytest.mark.parametrize("private", [name for name in PRIVATE if name not in ADAPTIVE])
@pytest.mark.parametrize("tamper", TAMPERS.values(), ids=TAMPERS)
def test_a_tampered_certificate_does_not_verify(private, tamper):
    data = json.loads(certificate_of(private).to_json())
    assert verifies(data)
    tamper(data)
    assert not verifies(data)


def replaced(holder, key, value):
    def tamper(data):
        holder(data)[key] = value

    return tamper


def add_negative_count(data):
    data["releases"][0]["answers"].append({**first_answer(data), "count": -1})
    first_answer(data)["count"] += 1


CUNNING = {
    "scale not a number": replaced(first_answer, "scale", "nan"),
    "epsilon not a number": replaced(lambda data: data, "epsilon", math.nan),
    "negative count": add_negative_count,
    "clip raised": scaled(first_answer, "clip", 2.0),
    "adjacency relabelled": replaced(lambda data: data, "adjacency", "replace-one"),
    "rows below one": replaced(lambda data: data, "n_samples", -5),
    "no rows": replaced(lambda data: data, "n_samples", 0),
    "times beyond a float": replaced(lambda data: data["releases"][0]["release"], "times", 10**400),
    "negative clip": replaced(first_answer, "clip", -1.0),
    "grade none": replaced(lambda data: data, "grade", "none"),
    "no releases": replaced(lambda data: data, "releases", []),
    "another grade": replaced(lambda data: data, "grade", "certified"),
    "a count that is no number": replaced(first_answer, "count", True),
    "another question": replaced(lambda data: data["releases"][0], "question", "quantile"),
    "another noise": replaced(lambda data: data["releases"][0], "noise", "gumbel"),
}


@pytest.mark.parametrize("tamper", CUNNING.values(), ids=CUNNING)
def test_a_certificate_tampered_with_more_cunning_does_not_verify(tamper):
    data = json.loads(certificate_of("dp-ight", adjacency="add-remove").to_json())
    tamper(data)
    assert not verifies(data)


@pytest.mark.parametrize("name", sorted(NOT_PRIVATE))
def test_a_run_without_privacy_cannot_be_passed_off_as_private(name):
    data = json.loads(certificate_of(name).to_json())
    data["epsilon"] = 100.0
    assert not verifies(data)
