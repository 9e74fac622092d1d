"""Certificates that add up: the total of several fits on the same rows is the accountant's, and cannot be thinned."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from thresher import DenseRegressor, SparseRegressor
from thresher.algorithms import DPAGD, DPSGD, DPSRM, OutputPerturbation
from thresher.models.scaler import PrivateScaler
from thresher.privacy.accounting import Cost
from thresher.privacy.certificate import Certificate, combine
from thresher.privacy.releases import GaussianGradient, GaussianMinimiser, GumbelQuantile, release_from_dict

pytestmark = [
    pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning"),
    pytest.mark.filterwarnings("ignore:the ends of a column's range"),
]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1000, 4))
    return X, X[:, 0] + rng.normal(0, 0.1, 1000)


def regressor(**changes):
    params = {"sparsity": 2, "epsilon": 0.5, "feature_bound": 1.0, "target_bound": 2.0, "algorithm": "dp-ight"}
    params["hardened"] = True  # else no fit would be proved
    return SparseRegressor(**{**params, **changes})


@pytest.fixture(scope="module")
def fits(table):
    """A fit of Gumbel choices, one of Gaussian gradients, and one whose sensitivity depends on its own ridge."""
    return (
        PrivateScaler(0.4, 1e-7, feature_bound=10.0, hardened=True).fit(*table),
        regressor(delta=2e-7).fit(*table),
        regressor(delta=3e-7, algorithm=OutputPerturbation(ridge=0.3)).fit(*table),
        regressor(delta=4e-7, algorithm=OutputPerturbation(ridge=0.02)).fit(*table),
    )


@pytest.fixture(scope="module")
def total(fits):
    return combine(*fits)


def test_the_total_is_the_accountants_composition(fits, total):
    releases = [release for fit in fits for release in fit.plan_.releases]
    assert {type(release) for release in releases} == {GumbelQuantile, GaussianGradient, GaussianMinimiser}
    cost, method = sum((release.cost() for release in releases), Cost()).epsilon(1e-6)
    assert total.delta == pytest.approx(1e-6, rel=1e-12)
    assert total.epsilon == pytest.approx(cost, rel=1e-9)
    assert method in total.composition
    assert max(fit.epsilon for fit in fits) < total.epsilon < sum(fit.epsilon for fit in fits)
    assert total.claimed_epsilon == pytest.approx(1.9)
    assert total.verify().epsilon == total.epsilon
    assert total.second_opinion() == pytest.approx(total.epsilon, rel=0.05)


def test_two_gaussian_fits_are_priced_by_the_exact_curve(fits):
    pair = combine(fits[1], fits[2])
    assert "exact Gaussian curve" in pair.composition
    assert pair.epsilon < 0.76  # sqrt(0.5^2 + 0.5^2) and a little more


def test_every_release_bound_and_note_is_listed(fits, total):
    assert total.algorithm == " + ".join(fit.algorithm_ for fit in fits)
    assert len(total.releases) == sum(len(fit.certificate_.releases) for fit in fits) == 5
    assert total.bounds["feature"] == [10.0, 1.0, 1.0, 1.0]
    assert [part["settings"].get("ridge") for part in total.settings["parts"]][2:] == [0.3, 0.02]
    assert (total.grade, total.n_samples, total.n_features) == ("proved", 1000, 4)


def test_json_keeps_it_and_it_still_verifies(total):
    again = Certificate.from_json(total.to_json())
    assert again.to_json() == total.to_json()
    assert again.verify().epsilon == total.epsilon
    json.loads(total.to_json(), parse_constant=_never)  # strict JSON: no NaN, no Infinity


def test_combining_in_steps_is_combining_at_once(fits, total):
    steps = combine(combine(*fits[:2]), combine(*fits[2:]))
    assert steps.verify()
    assert steps.epsilon == pytest.approx(total.epsilon, rel=1e-12)
    assert [entry["part"] for entry in steps.releases] == [entry["part"] for entry in total.releases]
    assert steps.settings == total.settings


def test_one_fit_alone_costs_what_it_costs(fits):
    alone = combine(fits[1])
    assert alone.verify()
    assert alone.epsilon <= fits[1].certificate_.epsilon
    assert alone.epsilon == pytest.approx(0.5, rel=1e-6)


@pytest.mark.parametrize("dropped", range(5))
def test_a_dropped_release_is_noticed(total, dropped):
    thinner = replace(total, releases=total.releases[:dropped] + total.releases[dropped + 1 :])
    assert not thinner.verify()
    assert any("listed are" in problem for problem in thinner.verify().problems)


def test_a_dropped_part_is_noticed(total):
    kept = {"parts": total.settings["parts"][:-1]}
    thinner = replace(total, releases=total.releases[:-1], settings=kept)
    assert any("the parts are not those of" in problem for problem in thinner.verify().problems)


def test_a_release_cannot_pass_as_that_of_another_part(total):
    """The minimiser fitted with ridge 0.02 has 15 times the sensitivity of the one with 0.3."""
    entries = list(total.releases)
    entries[3], entries[4] = {**entries[3], "part": 3}, {**entries[4], "part": 2}
    swapped = replace(total, releases=tuple(entries))
    assert any("is below" in problem for problem in swapped.verify().problems)


def test_a_smaller_epsilon_than_the_sum_does_not_verify(fits, total):
    for stated in (total.epsilon * 0.999, max(fit.epsilon for fit in fits)):
        assert any("more than the stated" in problem for problem in replace(total, epsilon=stated).verify().problems)


def test_less_noise_than_a_part_needs_does_not_verify(total):
    record = json.loads(total.to_json())
    for entry in record["releases"]:
        entry["answers"][0]["scale"] /= 1.25
        assert not Certificate.from_dict(record).verify()
        entry["answers"][0]["scale"] *= 1.25
    assert Certificate.from_dict(record).verify()


@pytest.mark.parametrize("broken", [7, -9, None, "first"])
def test_a_part_number_that_does_not_exist_is_malformed_not_a_crash(total, broken):
    entries = ({**total.releases[0], "part": broken}, *total.releases[1:])
    assert not replace(total, releases=entries).verify()


def test_the_weakest_grade_counts(fits, table):
    X, y = table
    seeded = regressor(random_state=0).fit(X, y)
    switched_off = regressor(epsilon=float("inf")).fit(X, y)
    conditional = combine(fits[0], seeded)
    assert conditional.grade == "conditional"
    assert any("random_state" in assumption for assumption in conditional.assumptions)
    none = combine(fits[0], switched_off, seeded)
    assert (none.grade, none.epsilon, none.claimed_epsilon) == ("none", None, None)
    assert Certificate.from_json(none.to_json()).verify()
    assert replace(none, epsilon=1.0).verify().ok is False


def test_only_fits_on_the_same_rows_with_one_adjacency_add_up(fits, table):
    X, y = table
    with pytest.raises(ValueError, match=r"n_samples differs: \[1000, 900\].*same rows"):
        combine(fits[0], regressor().fit(X[:900], y[:900]))
    with pytest.raises(ValueError, match=r"adjacency differs"):
        combine(fits[0], regressor(adjacency="add-remove").fit(X, y))
    removable = combine(*(regressor(adjacency="add-remove", n_public=1000).fit(X, y) for _ in range(2)))
    assert removable.adjacency == "add-remove"
    assert removable.verify()


def test_a_pipeline_is_the_sum_of_its_steps(table):
    X, y = table
    union = FeatureUnion([(str(bound), PrivateScaler(0.3, feature_bound=bound)) for bound in (1, 9)])
    pipeline = make_pipeline(FunctionTransformer(), "passthrough", union, regressor()).fit(X, y)
    total = combine(pipeline)
    assert total.algorithm == "private-scaler + private-scaler + dp-ight"
    assert total.n_features == 8
    assert total.verify()


def test_a_step_that_learns_without_a_certificate_is_refused(table):
    pipeline = make_pipeline(StandardScaler(), regressor()).fit(*table)
    with pytest.raises(ValueError, match=r"StandardScaler has no certificate.*not private"):
        combine(pipeline)


def test_a_function_that_may_mix_rows_is_refused(table):
    """scikit-learn says that it needs no fit, but one row may move all the others."""
    pipeline = make_pipeline(FunctionTransformer(lambda rows: rows - rows.mean(axis=0)), regressor()).fit(*table)
    with pytest.raises(ValueError, match=r"FunctionTransformer applies a function that may mix rows"):
        combine(pipeline)


@pytest.mark.parametrize("nothing", [(), (FunctionTransformer(),), (make_pipeline("passthrough"),)])
def test_nothing_to_combine_is_said(nothing):
    with pytest.raises(ValueError, match="nothing to combine"):
        combine(*nothing)


@pytest.mark.parametrize("stranger", [5, PrivateScaler(), object()])
def test_what_carries_no_certificate_is_refused(stranger):
    with pytest.raises(ValueError, match="has no certificate"):
        combine(stranger)


def test_the_releases_of_a_total_can_be_priced_one_by_one(total):
    assert all(release_from_dict(entry["release"]).cost().rho > 0 for entry in total.releases)


def _never(constant):
    raise AssertionError(constant)


# -- random batches and filters -------------------------------------------------------------------------------------


def dense(algorithm, **changes):
    return DenseRegressor(
        **{"epsilon": 0.5, "feature_bound": 1.0, "target_bound": 2.0, "algorithm": algorithm, **changes}
    )


@pytest.fixture(scope="module")
def sampled(table):
    """Two rounds of batches, and of batches of a fixed size; a run that a filter ended."""
    few = {"batch": 100, "passes": 0.5}
    fitted = {
        "poisson": dense(DPSGD(**few)).fit(*table).certificate_,
        "fixed": dense(DPSGD(**few, sampling="fixed")).fit(*table).certificate_,
        "momentum": dense(DPSRM(**few, first_batch=50)).fit(*table).certificate_,
        "filter": dense(DPAGD(splits=5)).fit(*table).certificate_,
    }
    return {name: json.loads(certificate.to_json()) for name, certificate in fitted.items()}


def changed(record, at=0, *, entry=None, release=None, answer=None, **facts):
    """A certificate of which a few numbers were changed afterwards."""
    record = {**json.loads(json.dumps(record)), **facts}
    listed = record["releases"][at]
    listed.update(entry or {})
    listed["release"].update(release or {})
    for given in listed["answers"]:
        given.update(answer or {})
    return Certificate.from_dict(record).verify()


@pytest.mark.parametrize("name", ["poisson", "fixed", "momentum", "filter"])
def test_certificates_of_batches_and_filters_verify_as_they_are(sampled, name):
    assert changed(sampled[name])
    assert not changed(sampled[name], epsilon=0.45)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("poisson", {"release": {"batch": 50}}),
        ("fixed", {"release": {"batch": 50}}),
        ("momentum", {"at": 1, "release": {"batch": 50}}),
        ("poisson", {"release": {"population": 2000}}),
        ("fixed", {"release": {"population": 2000}}),
        ("poisson", {"n_samples": 2000}),
        ("fixed", {"release": {"sampling": "poisson"}}),
        ("poisson", {"release": {"adjacency": "add-remove"}}),
        ("poisson", {"adjacency": "add-remove"}),
        ("fixed", {"adjacency": "add-remove", "release": {"adjacency": "add-remove"}}),
        ("poisson", {"release": {"sd_per_sensitivity": 1e3}}),
        ("poisson", {"release": {"times": 1}}),
        ("poisson", {"release": {"kind": "SampledMomentum"}}),
        ("poisson", {"entry": {"within": "filter"}}),
        ("momentum", {"entry": {"within": "filter"}}),
        ("poisson", {"answer": {"sensitivity": 1e-9}}),
        ("momentum", {"at": 1, "answer": {"clip": 1e3}}),
    ],
    ids=str,
)
def test_a_batch_that_is_priced_for_less_than_it_was_is_noticed(sampled, name, changes):
    """Rate, population, sampling, neighbours, noise, count: none can be made cheaper by itself."""
    assert not changed(sampled[name], **changes)


def test_batches_that_pass_as_drawn_independently_say_so_in_the_settings_too(sampled):
    """What was fixed is listed as Poisson: less than half of the price, but the settings tell."""
    verdict = changed(sampled["fixed"], release={"sampling": "poisson"})
    assert verdict.epsilon < 0.5
    assert any("in another way than the settings say" in problem for problem in verdict.problems)


def test_a_filter_covers_what_passed_it_and_nothing_else(sampled):
    record = sampled["filter"]
    assert record["releases"][0]["release"]["kind"] == "ZCDPFilter"
    assert all(entry["within"] == "filter" for entry in record["releases"][1:])
    rho = record["releases"][0]["release"]["rho"]
    passed = sum(release_from_dict(entry["release"]).cost().rho for entry in record["releases"][1:])
    assert 0.5 * rho < passed <= rho
    assert not changed(record, release={"rho": 0.99 * passed})
    assert not changed(record, release={"rho": 1.01 * rho})  # costs more than the stated epsilon
    assert not changed(record, at=1, release={"sd_per_sensitivity": 0.01})
    assert not changed(record, at=1, release={"times": 10**6})
    assert not changed(record, at=1, entry={"part": 1})


def test_a_filter_does_not_pay_for_itself(sampled):
    """Listed within itself it would cost nothing, even if nothing else were listed."""
    record = sampled["filter"]
    alone = {**record, "releases": record["releases"][:1]}
    assert changed(alone).epsilon > 0
    for each in (record, alone):
        assert not changed(each, entry={"within": "filter"})


def test_batches_cannot_be_listed_within_a_filter(sampled):
    """They have no zCDP that the filter could have counted."""
    record, stranger = sampled["filter"], sampled["poisson"]["releases"][0]
    entries = [*record["releases"], {**stranger, "within": "filter"}]
    assert not changed({**record, "releases": entries})


def test_batches_and_filters_add_up(sampled):
    fits = [Certificate.from_dict(sampled[name]) for name in ("poisson", "fixed", "filter")]
    total = combine(*fits)
    assert total.verify()
    assert max(fit.epsilon for fit in fits) < total.epsilon <= sum(fit.epsilon for fit in fits)
    assert not changed(json.loads(total.to_json()), at=1, release={"sampling": "poisson"})
