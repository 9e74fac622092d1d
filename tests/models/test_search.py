"""A private search fills its budget, keeps the best, tells of nothing else, and is a good scikit-learn citizen."""

import json
import math
import pickle
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from thresher import (
    BudgetExceeded,
    Certificate,
    DenseClassifier,
    DenseRegressor,
    FittedBefore,
    Ledger,
    LocalSparseRegressor,
    PrivacyWarning,
    PrivateSearchCV,
    SparseClassifier,
    SparseRegressor,
    load_model,
)
from thresher.algorithms import DPIGHT, DPSGD
from thresher.models.scaler import PrivateScaler
from thresher.models.trials import largest
from thresher.privacy.certificate import combine
from thresher.vaults import Trials
from thresher.vaults.randomness import NoiseSource

N, D = 400, 6


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N, D))
    return X, X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=N)


@pytest.fixture(scope="module")
def labelled(table):
    return table[0], np.where(table[1] > 0, "yes", "no")


def regression(pool=None, estimator=None, **changes):
    estimator = estimator or SparseRegressor(2, feature_bound=1.0, target_bound=2.0, algorithm="dp-ight")
    params = {"epsilon": 2.0, "delta": 1e-6, "trials": 3, **changes}
    return PrivateSearchCV(estimator, pool or {"sparsity": [1, 2, 4]}, **params)


def classification(pool=None, estimator=None, **changes):
    estimator = estimator or SparseClassifier(2, feature_bound=1.0, classes=["no", "yes"], algorithm="dp-ight")
    return regression(pool, estimator, **changes)


# -- the budget -----------------------------------------------------------------------------------------------------

MODELS = {
    "pursuit": SparseRegressor(2, feature_bound=1.0, target_bound=2.0, algorithm="pursuit"),
    "dp-ight": SparseRegressor(2, feature_bound=1.0, target_bound=2.0, algorithm="dp-ight"),
    "peeling": SparseClassifier(2, feature_bound=1.0, algorithm="peeling"),
    "two-stage": SparseClassifier(2, feature_bound=1.0, algorithm="two-stage"),
    "dp-sgd": DenseClassifier(row_bound=1.0, algorithm="dp-sgd"),
    "dp-agd": DenseRegressor(row_bound=1.0, target_bound=2.0, algorithm="dp-agd"),
}


@pytest.mark.parametrize("trials", [1, 4, 12.5])
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 8.0])
@pytest.mark.parametrize("name", ["pursuit", "dp-ight", "peeling"])
def test_the_budget_is_filled_and_kept(name, epsilon, delta, trials):
    search = PrivateSearchCV(MODELS[name], {"sparsity": [1, 3]}, epsilon=epsilon, delta=delta, trials=trials)
    plan = search.plan(5000, 20)
    assert 0.995 * epsilon <= plan.epsilon <= epsilon
    assert plan.settings["trial_epsilon"] < epsilon


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("name", ["two-stage", "dp-sgd", "dp-agd"])
def test_the_budget_is_filled_and_kept_by_other_kinds_of_releases(name, adjacency):
    model = clone(MODELS[name]).set_params(adjacency=adjacency)
    plan = PrivateSearchCV(model, {"row_bound": [1.0, 2.0]}, epsilon=1.0, delta=1e-6, trials=4).plan(5000, 20)
    assert 0.995 <= plan.epsilon <= 1.0


def test_candidates_of_different_kinds_are_priced_by_the_dearest():
    pool = {"algorithm": ["pursuit", "dp-ight", "peeling"]}
    both = regression(pool).plan(5000, 20)
    alone = [regression({"algorithm": [name]}).plan(5000, 20) for name in pool["algorithm"]]
    assert 0.995 * 2 <= both.epsilon <= 2
    assert both.settings["trial_epsilon"] <= min(p.settings["trial_epsilon"] for p in alone) * 1.002
    assert len(both.releases[0].fits) == 3


def test_a_trial_is_planned_for_the_rows_that_are_fitted():
    plan = regression().plan(1000, 6)
    (release,) = plan.releases
    assert (release.fit_rows, release.score_rows, plan.problem.n) == (800, 200, 1000)
    trial = plan.settings["trial_epsilon"]
    inner = SparseRegressor(1, epsilon=trial, delta=1e-6, feature_bound=1.0, target_bound=2.0, algorithm="dp-ight")
    assert inner.plan(800, 6).releases in release.fits


def test_the_default_number_of_trials_follows_from_the_pool():
    assert regression({"sparsity": [1, 2, 4]}, trials=None).plan(1000, 6).settings["trials"] == 6
    assert regression({"sparsity": [1]}, trials=None).plan(1000, 6).settings["trials"] == 1
    wide = {"sparsity": [1, 2, 4], "target_bound": [1.0, 2.0, 3.0, 4.0]}
    assert regression(wide, trials=None).plan(1000, 6).settings["trials"] == 8


@pytest.mark.parametrize("jump", [0.0, 0.02])
@pytest.mark.parametrize("power", [0.7, 1.0, 1.6])
def test_the_search_for_a_trials_epsilon_copes_with_jumps(power, jump):
    """Where the price jumps over the budget nothing can be closer than the jump."""
    for budget in (0.01, 0.5, 1.0, 30.0):

        def price(epsilon, budget=budget):
            part = epsilon / budget
            return 1.5 * budget * part**power * (1 + jump * (math.floor(10 * part) % 2))

        assert budget * (1 - jump - 0.002) <= price(largest(price, budget)) <= budget
    assert largest(lambda epsilon: 2.0, 1.0) is None


# -- what is found --------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")
@pytest.mark.parametrize("best", [1, 2, 4])
def test_without_noise_the_best_candidate_wins(best):
    """With 60 expected trials all three candidates are tried but for a chance of 6e-9. A model with too few columns
    misses some of the signal; with too many it fits noise, of which 40 rows have plenty."""
    rng = np.random.default_rng(best)
    X = rng.uniform(-1, 1, (60, 6))
    y = X[:, :best].sum(axis=1) + 0.5 * rng.normal(size=60)
    model = SparseRegressor(2, feature_bound=1.0, target_bound=6.0, algorithm="ight", fit_intercept=False)
    search = regression({"sparsity": [1, 2, 4]}, model, epsilon=math.inf, trials=60, validation=0.5, random_state=0)
    search.fit(X, y)
    assert search.best_params_ == {"sparsity": best}
    assert search.certificate_.grade == "none"
    assert search.certificate_.epsilon is None


def test_a_noisy_search_still_prefers_what_is_far_better(table):
    """Of 20 searches with 8 expected trials, at most 3 miss both good bounds: each has a chance of e^-5 to do so for
    want of a trial, and scores differ by .3 where their noise is below .03."""
    pool = {"target_bound": [2.0, 3.0, 2000.0]}
    found = [
        regression(pool, trials=8, epsilon=4.0, scoring="neg_mean_absolute_error", random_state=seed).fit(*table)
        for seed in range(20)
    ]
    assert sum(search.best_params_["target_bound"] > 3 for search in found) <= 3


def test_the_best_score_is_an_honest_estimate_in_natural_units(table, labelled):
    X, y = table
    new = np.random.default_rng(9).uniform(-1, 1, (20_000, D))
    for search, truth in ((regression(), new[:, 0] - new[:, 1]), (classification(), None)):
        search.set_params(trials=1, epsilon=8.0, random_state=1)
        if truth is None:
            search.fit(*labelled)
            right = np.mean(search.predict(new) == np.where(new[:, 0] > new[:, 1], "yes", "no"))
            assert search.best_score_ == pytest.approx(right, abs=0.15)
        else:
            search.fit(X, y)
            error = -np.mean((search.predict(new) - truth) ** 2) - 0.01
            assert search.best_score_ == pytest.approx(error, abs=0.25)


# -- what is told ---------------------------------------------------------------------------------------------------


def numbers_in(value, seen=None):
    """Every number that hangs on an object, however deep."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return
    if isinstance(value, (int, float, np.number)):
        yield float(value)
    elif isinstance(value, np.ndarray):
        yield from map(float, np.ravel(value)) if value.dtype.kind in "fiu" else ()
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from numbers_in(key, seen)
            yield from numbers_in(each, seen)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for each in value:
            yield from numbers_in(each, seen)
    else:
        yield from numbers_in(dict(getattr(value, "__dict__", {})), seen)


@pytest.mark.parametrize("algorithm", ["dp-ight", "peeling"])
def test_nothing_that_is_published_tells_how_many_trials_there_were(table, monkeypatch, capsys, recwarn, algorithm):
    """With 1 and with 211 trials of one candidate: the same attributes, the same lists of answers, no 211 anywhere."""
    search = regression({"algorithm": [algorithm]}, verbose=1)
    shapes = []
    for count in (1, 211):
        monkeypatch.setattr(NoiseSource, "trials", lambda self, mean, count=count: count)
        search.fit(*table)
        told = json.loads(search.certificate_.to_json())
        counts = [[answer["count"] for answer in entry["answers"]] for entry in told["releases"]]
        shapes.append((sorted(vars(search)), sorted(vars(search.best_estimator_)), counts, sorted(told["settings"])))
        assert not {211.0, 210.0, 212.0} & set(numbers_in(search))
    assert shapes[0] == shapes[1]
    assert capsys.readouterr() == ("", "")
    assert [warning.category for warning in recwarn.list] == [FittedBefore]  # of the second search
    assert not hasattr(search, "cv_results_")


def test_the_models_certificate_is_that_of_the_search(table, tmp_path):
    search = regression().fit(*table)
    assert search.best_estimator_.certificate_ is search.certificate_
    assert search.certificate_.epsilon == 2.0
    search.best_estimator_.save(tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    assert again.certificate_.epsilon == 2.0
    assert again.certificate_.verify()
    assert again.algorithm_ == "dp-ight"
    np.testing.assert_array_equal(again.predict(table[0]), search.predict(table[0]))


def test_the_certificate_states_bounds_and_releases_of_the_best_trial(table):
    search = regression({"feature_bound": [0.5, 2.0]}).fit(*table)
    certificate = search.certificate_
    assert certificate.bounds["feature"] == search.best_params_["feature_bound"]
    assert certificate.n_samples == N
    assert certificate.settings["candidates"] == [{"feature_bound": 0.5}, {"feature_bound": 2.0}]
    assert [entry.get("within") for entry in certificate.releases] == [None, "trials", "trials"]
    assert [entry["question"] for entry in certificate.releases] == ["trials", "gradient", "score"]
    exact = clone(search.estimator).set_params(hardened=True)
    assert clone(search).set_params(estimator=exact).fit(*table).certificate_.grade == "proved"


FITS = {
    "dp-ight": (regression, {}),
    "pursuit": (regression, {"estimator": MODELS["pursuit"]}),
    "two-stage": (classification, {"estimator": clone(MODELS["two-stage"]).set_params(classes=["no", "yes"])}),
    "dp-sgd": (
        classification,
        {"estimator": clone(MODELS["dp-sgd"]).set_params(classes=["no", "yes"]), "pool": {"row_bound": [1.0, 2.0]}},
    ),
    "dp-agd": (regression, {"estimator": MODELS["dp-agd"], "pool": {"row_bound": [1.0, 2.0]}}),
}


@pytest.fixture(scope="module", params=FITS)
def certificate(request, table, labelled):
    make, arguments = FITS[request.param]
    return make(**arguments).fit(*(table if make is regression else labelled)).certificate_


def test_a_certificate_is_read_back_and_verified_from_its_text_alone(certificate):
    again = Certificate.from_json(certificate.to_json())
    verdict = again.verify()
    assert verdict
    assert 0.995 * 2 <= verdict.epsilon <= 2


def test_another_accountant_agrees_or_has_no_opinion(certificate):
    opinion = certificate.second_opinion()
    priced = [entry["release"]["kind"] for entry in certificate.releases]
    if "SampledGradient" in priced or "PerturbedMinimiser" in priced:
        assert opinion is None
    else:  # its deltas are those of the Renyi curve, with no use of the exact Gaussian one
        assert 0.99 * certificate.epsilon <= opinion <= 1.25 * certificate.epsilon


def changed(certificate, change):
    told = json.loads(certificate.to_json())
    change(told)
    return Certificate.from_dict(told)


def fewer_trials(told):
    told["releases"][0]["release"]["trials"] = 2.0


def a_cheaper_fit(told):
    for fit in told["releases"][0]["release"]["fits"]:
        for release in fit:
            for name in ("sd_per_sensitivity", "scale_per_sensitivity"):
                if name in release:
                    release[name] *= 1.5
            if "rho" in release:
                release["rho"] /= 2


def a_cheaper_score(told):
    told["releases"][0]["release"]["score"]["sd_per_sensitivity"] *= 1.5


def a_smaller_epsilon(told):
    told["epsilon"] = 1.9


def no_search(told):
    del told["releases"][0]


def no_trial(told):
    del told["releases"][1:]


def no_score(told):
    told["releases"] = [entry for entry in told["releases"] if entry["question"] != "score"]


def paid_for_by_something_unheard_of(told):
    for entry in told["releases"]:
        entry["within"] = "nothing"


def search_within_itself(told):
    told["releases"][0]["within"] = "trials"


def within_nothing(told):
    told["releases"][0]["within"] = "filter"


def another_split(told):
    told["releases"][0]["release"]["score_rows"] += 100


def more_rows(told):
    told["settings"]["score_rows"] += 100
    told["releases"][0]["release"]["score_rows"] += 100


def less_noise_on_the_score(told):
    (entry,) = (entry for entry in told["releases"] if entry["question"] == "score")
    entry["answers"][0]["scale"] /= 1.1


def a_smaller_sensitivity_of_the_score(told):
    (entry,) = (entry for entry in told["releases"] if entry["question"] == "score")
    entry["answers"][0]["sensitivity"] /= 1.1


@pytest.mark.parametrize(
    "change",
    [
        fewer_trials, a_cheaper_fit, a_cheaper_score, a_smaller_epsilon, no_search, no_trial, no_score,
        paid_for_by_something_unheard_of, search_within_itself, within_nothing, another_split, more_rows,
        less_noise_on_the_score, a_smaller_sensitivity_of_the_score,
    ],
)  # fmt: skip
def test_tampering_is_noticed(certificate, change):
    assert changed(certificate, lambda told: None).verify()
    assert not changed(certificate, change).verify()


def test_the_order_of_a_trial_must_be_one_that_the_search_is_priced_for(table):
    certificate = regression({"target_bound": [2.0, 4.0]}, MODELS["pursuit"]).fit(*table).certificate_

    def backwards(told):
        told["settings"]["trial"]["settings"]["order"].reverse()

    problems = changed(certificate, backwards).verify().problems
    assert "the trial does not ask in an order that the search is priced for" in problems


def test_a_score_in_a_combined_certificate_is_still_verified(table):
    X, y = table
    scaler = PrivateScaler(0.5, 1e-6, feature_bound=3.0, quantiles=(0.25, 0.75)).fit(X)
    search = regression(epsilon=0.5).fit(scaler.transform(X), y)
    total = Certificate.from_json(combine(scaler, search).to_json())
    assert total.verify()
    assert 0.5 < total.epsilon < 1.0 + 1e-9
    assert not changed(total, less_noise_on_the_score).verify()
    assert combine(make_pipeline(scaler, search)).epsilon == pytest.approx(total.epsilon)


# -- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"param_distributions": {}}, "param_distributions={} must be a dict"),
        ({"param_distributions": [{"sparsity": [1]}, {}]}, "must be a dict, or a list of dicts"),
        ({"param_distributions": {"sparsity": []}}, "sparsity"),
        (
            {"param_distributions": {"sparcity": [1]}},
            "'sparcity' is no parameter of SparseRegressor; it has .*sparsity",
        ),
        ({"param_distributions": {"epsilon": [1, 2]}}, "'epsilon' cannot be searched over: .*give epsilon="),
        ({"param_distributions": {"delta": [1e-5]}}, "'delta' cannot"),
        ({"param_distributions": {"adjacency": ["add-remove"]}}, "'adjacency' cannot"),
        ({"param_distributions": {"random_state": [0, 1]}}, "'random_state' cannot be searched over: noise"),
        ({"param_distributions": {"n_public": [5]}}, "'n_public' cannot"),
        ({"param_distributions": {"sparsity": [2, 7]}}, r"candidate \{'sparsity': 7\} cannot be planned: .*at most 6"),
        ({"param_distributions": {"feature_bound": [1.0, -1.0]}}, "candidate .*-1.0.* cannot be planned"),
        ({"param_distributions": {"algorithm": [DPIGHT(calibration="printed")]}}, "no price; use 'proved'"),
        ({"param_distributions": {"sparsity": stats.randint(1, 4)}, "n_iter": 0}, "n_iter=0"),
        ({"trials": 0.5}, "trials=0.5 must be a number from 1"),
        ({"trials": "many"}, "trials='many'"),
        ({"trials": 1e6}, "trials=1000000.0 must be a number from 1 to 1000"),
        ({"trials": 50, "epsilon": 2e-6}, "trials=50 leave nothing of epsilon=2e-06"),
        ({"validation": 0.0}, "validation=0.0"),
        ({"validation": 0.999}, "leaves 0 to fit"),
        ({"scoring": "accuracy"}, "scoring='accuracy' must be one of 'neg_mean_squared_error'"),
        ({"epsilon": -1.0}, "epsilon=-1.0"),
        ({"delta": 0.0}, "delta=0: a search has no pure guarantee"),
        ({"estimator": LogisticRegression()}, "estimator=LogisticRegression.* must be one of SparseRegressor"),
        ({"estimator": LocalSparseRegressor(2, 1.0)}, "must be one of SparseRegressor"),
        ({"estimator": SparseRegressor(2, feature_bound=1.0)}, "target_bound=None"),
    ],
)
def test_bad_input_is_refused_before_anything_is_spent(table, monkeypatch, change, message):
    monkeypatch.setattr("thresher.models.search.Trials", None)  # no vault is opened
    search = regression().set_params(**change)
    with pytest.raises(ValueError, match=message):
        search.fit(*table)
    assert not hasattr(search, "certificate_")


def test_a_weight_is_refused(table):
    with pytest.raises(TypeError, match="sample_weight"):
        regression().fit(*table, sample_weight=np.ones(N))


def test_rows_on_dask_workers_are_refused():
    dask = pytest.importorskip("dask.array")
    with pytest.raises(TypeError, match=r"PrivateSearchCV takes rows in memory; give X.compute\(\)"):
        regression().fit(dask.zeros((20, 6), chunks=(10, 6)), np.zeros(20))


class Faulty(DPIGHT):
    def run(self, vault):
        raise ValueError("a secret")


def test_a_search_that_fails_leaves_no_model_behind(table):
    search = regression({"algorithm": [DPIGHT()]}).fit(*table)
    search.set_params(param_distributions={"algorithm": [Faulty()]})
    with pytest.raises(RuntimeError, match="no trial came to a result") as caught:
        search.fit(*table)
    assert "secret" not in str(caught.value)
    assert not {"best_estimator_", "best_params_", "best_score_", "certificate_"} & set(vars(search))
    with pytest.raises(NotFittedError):
        search.predict(table[0])


def test_an_algorithm_that_asks_too_much_gets_nothing(table):
    class Greedy(DPIGHT):
        def run(self, vault):
            super().run(vault)
            return super().run(vault)

    with pytest.raises(RuntimeError, match="no trial"):
        regression({"algorithm": [Greedy()]}).fit(*table)
    with pytest.raises(BudgetExceeded):
        SparseRegressor(2, feature_bound=1.0, target_bound=2.0, algorithm=Greedy()).fit(*table)


# -- a good citizen -------------------------------------------------------------------------------------------------


def test_classes_and_probabilities(labelled):
    search = classification(scoring="neg_log_loss").fit(*labelled)
    assert list(search.classes_) == ["no", "yes"]
    assert search.predict_proba(labelled[0]).shape == (N, 2)
    np.testing.assert_array_equal(search.decision_function(labelled[0]) > 0, search.predict(labelled[0]) == "yes")
    assert search.score(*labelled) == pytest.approx(-0.69, abs=0.69)
    assert search.score(*labelled) < 0
    assert is_classifier(search)
    assert not is_regressor(search)
    assert is_regressor(regression())
    assert not hasattr(regression(), "predict_proba")


def test_classes_that_are_read_from_the_data_are_an_assumption(labelled):
    search = classification().set_params(estimator__classes=None).fit(*labelled)
    assert any("class labels are public" in words for words in search.certificate_.assumptions)
    assert search.certificate_.grade == "conditional"
    declared = classification().set_params(estimator__hardened=True).fit(*labelled)
    assert declared.certificate_.assumptions == ()


def test_several_classes(table):
    X, y = table
    bands = np.digitize(y, [-0.5, 0.5])
    search = classification({"sparsity": [2, 4]}, epsilon=20.0, random_state=0)
    search.set_params(estimator__classes=[0, 1, 2]).fit(X, bands)
    assert search.best_estimator_.coef_.shape == (3, D)
    assert search.certificate_.verify()
    assert search.score(X, bands) > 0.5


@pytest.mark.parametrize("n_public", [None, 500])
def test_rows_that_may_be_added(table, n_public):
    facts = {"adjacency": "add-remove", "n_public": n_public, "hardened": True}
    search = regression().set_params(**{f"estimator__{name}": value for name, value in facts.items()}).fit(*table)
    certificate = search.certificate_
    assert certificate.n_samples == (n_public or N)
    assert (certificate.adjacency, bool(certificate.assumptions)) == ("add-remove", n_public is None)
    assert certificate.verify()


def test_a_search_with_batches_for_rows_that_may_be_added(table):
    model = DenseRegressor(row_bound=1.0, target_bound=2.0, adjacency="add-remove", n_public=500)
    pool = {"algorithm": [DPSGD(batch=50), "dp-srm"]}
    search = regression(pool, model).fit(*table)
    assert search.certificate_.verify()
    told = json.loads(search.certificate_.to_json())
    assert {fit[0]["population"] for fit in told["releases"][0]["release"]["fits"]} == {400}
    fits = told["releases"][0]["release"]["fits"]
    (other,) = (fit for fit in fits if fit[0]["kind"] != told["releases"][1]["release"]["kind"])
    other[0]["adjacency"] = "replace-one"
    assert (
        "a trial is priced for other neighbours than the certificate's" in Certificate.from_dict(told).verify().problems
    )


def test_random_state_repeats_everything_and_marks_the_certificate(table):
    one, two, other = (regression(random_state=seed).fit(*table) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.best_estimator_.coef_, two.best_estimator_.coef_)
    assert one.best_score_ == two.best_score_ != other.best_score_
    assert any("random_state" in words for words in one.certificate_.assumptions)


def test_draws_from_distributions_are_public_and_repeatable():
    search = regression({"sparsity": stats.randint(1, 5), "target_bound": stats.uniform(1, 3)}, n_iter=7, trials=None)
    one, two = (search.plan(1000, 6) for _ in range(2))
    assert one == two
    assert (len(one.settings["candidates"]), one.settings["trials"]) == (7, 8)
    assert json.dumps(dict(one.settings))


def test_a_list_of_spaces():
    pool = [{"algorithm": ["dp-ight"], "sparsity": [1, 2]}, {"algorithm": [DPIGHT(iterations=7)]}]
    plan = regression(pool).plan(1000, 6)
    assert len(plan.settings["candidates"]) == 3
    assert "DPIGHT(iterations=7" in plan.settings["candidates"][2]["algorithm"]


def test_the_estimator_is_left_alone_and_parameters_are_untouched(table):
    model = SparseRegressor(2, feature_bound=1.0, target_bound=2.0, algorithm="dp-ight")
    before = model.get_params()
    search = regression(estimator=model)
    params = search.get_params()
    search.fit(*table)
    assert model.get_params() == before
    assert not hasattr(model, "coef_")
    assert {**search.get_params(), "estimator": model} == params
    again = clone(search)
    assert not hasattr(again, "certificate_")
    assert again.set_params(estimator__sparsity=3).estimator.sparsity == 3


def test_a_fitted_search_can_be_pickled(table):
    search = regression().fit(*table)
    again = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(again.predict(table[0]), search.predict(table[0]))
    assert again.certificate_ == search.certificate_
    assert again.plan_ == search.plan_


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array, sparse.coo_array])
def test_sparse_rows_give_the_same_model(table, form):
    X, y = table
    dense, scattered = (regression(random_state=0).fit(rows, y) for rows in (X, form(X)))
    np.testing.assert_allclose(scattered.best_estimator_.coef_, dense.best_estimator_.coef_, rtol=1e-6, atol=1e-9)


def test_names_of_columns_are_kept(table):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table[0], columns=[f"gene {j}" for j in range(D)])
    search = regression().fit(frame, table[1])
    assert list(search.best_estimator_.feature_names_in_) == list(frame.columns) == list(search.feature_names_in_)
    with pytest.raises(ValueError, match="feature names"):
        search.predict(frame[frame.columns[::-1]])


def test_a_plan_says_what_would_be_paid_and_warns_of_a_delta_that_is_too_large(table):
    assert regression().plan(N, D) == regression().fit(*table).plan_
    with pytest.warns(PrivacyWarning, match="delta=0.1 is not below"):
        regression(delta=0.1).fit(*table)


def test_uncertainty_of_the_best_model_is_kept(table):
    search = regression(estimator=MODELS["pursuit"], epsilon=20.0).fit(*table)
    assert search.best_estimator_.intervals(0.9).shape == (len(search.best_estimator_.support_), 2)


def test_a_page_can_be_written(table, tmp_path):
    pytest.importorskip("matplotlib")
    search = regression().fit(*table)
    search.best_estimator_.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "how well a model does on rows it was not fitted to" in page


@pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")
@pytest.mark.parametrize("make", [SparseRegressor, SparseClassifier])
def test_check_estimator_passes_without_exceptions(make):
    wide = {"feature_bound": 10.0, **({"target_bound": 100.0} if make is SparseRegressor else {})}
    search = PrivateSearchCV(make(1, **wide), {"algorithm": ["pursuit", "dp-ight"]}, epsilon=1e4, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(search, on_fail=None)
    failed = {
        result["check_name"]: str(result["exception"])[:200] for result in results if result["status"] == "failed"
    }
    assert failed == {}
    assert sum(result["status"] == "passed" for result in results) > 30


def test_the_total_is_not_that_of_one_trial(table):
    """A certificate of the best trial alone would understate the cost, and is not to be had."""
    search = regression().fit(*table)
    trial = search.plan_.settings["trial_epsilon"]
    assert trial < 0.8 * search.certificate_.epsilon
    understated = replace(search.certificate_, epsilon=trial)
    assert not understated.verify()


# -- people with several rows, and ledgers --------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_person_is_fitted_or_scored_with_all_their_rows(table, adjacency, monkeypatch):
    X, y = table
    people = np.arange(N) // 4
    estimator = SparseRegressor(
        2, feature_bound=1.0, target_bound=2.0, algorithm="dp-ight", adjacency=adjacency,
        n_public=N // 4 if adjacency == "add-remove" else None,
    )  # fmt: skip
    seen = []
    parts = Trials._parts

    def look(self, release):
        seen.append(parts(self, release))
        return seen[-1]

    monkeypatch.setattr(Trials, "_parts", look)
    search = regression(estimator=estimator).fit(X, y, groups=people)
    ((X_fit, _, owners), (X_scored, _, _)) = seen[0]
    whose = {tuple(row): person for row, person in zip(X, people, strict=True)}
    fitted, scored = ({whose[tuple(row)] for row in rows} for rows in (X_fit, X_scored))
    assert not fitted & scored
    assert fitted | scored == set(range(N // 4))
    assert len(set(owners)) == owners.max() + 1 == len(fitted)
    assert (search.certificate_.unit, search.certificate_.n_samples) == ("person", N // 4)
    assert search.best_estimator_.certificate_.verify()
    assert not re.search(rf"(?<![\d.]){N}(?!\d)", search.certificate_.to_json())


def test_groups_of_one_row_each_change_nothing_but_the_unit(table):
    X, y = table
    plain, grouped = (regression(random_state=3).fit(X, y, groups=g) for g in (None, np.arange(N)))
    np.testing.assert_array_equal(plain.best_estimator_.coef_, grouped.best_estimator_.coef_)
    assert plain.best_score_ == grouped.best_score_


def test_a_candidate_that_has_no_price_for_people_is_refused_before_a_ledger_is_asked(table, tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.grant("people", 9.0, 1e-6, unit="person")
    search = regression({"algorithm": ["dp-ight", "two-stage"]}, ledger=ledger, dataset="people")
    with pytest.raises(ValueError, match="'two-stage'"):
        search.fit(*table, groups=np.arange(N) // 4)
    assert ledger.spent("people").epsilon == 0


def test_a_ledger_pays_for_a_search_once_and_before_it_begins(table, tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.grant("people", 2.5, 1e-6)
    search = regression(ledger=ledger, dataset="people")
    fitted = clone(search).fit(*table)
    (entry,) = [entry for entry in ledger.history("people") if entry.kind == "fit"]
    assert (entry.algorithm, entry.status) == ("private-search", "committed")
    assert 0.99 * 2 < ledger.spent("people").epsilon <= 2
    assert ledger.verify(certificate=fitted.best_estimator_.certificate_)
    with pytest.raises(BudgetExceeded, match="this fit costs"):
        pickle.loads(pickle.dumps(search)).fit(*table)
    fitted.best_estimator_.save(tmp_path / "model.json")
    assert ledger.verify(certificate=load_model(tmp_path / "model.json").certificate_)


def test_the_estimator_of_a_search_does_not_pay_by_itself(table):
    estimator = SparseRegressor(2, feature_bound=1.0, target_bound=2.0, ledger="budget.db", dataset="people")
    with pytest.raises(ValueError, match="give ledger= and dataset= to PrivateSearchCV"):
        regression(estimator=estimator).fit(*table)
