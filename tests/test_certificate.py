"""Certificates that add up: the total of several fits on the same rows is the accountant's, and cannot be thinned."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from thresher import SparseRegressor
from thresher.accounting import Cost
from thresher.algorithms import OutputPerturbation
from thresher.certificate import Certificate, combine
from thresher.preprocessing import PrivateScaler
from thresher.releases import GaussianGradient, GaussianMinimiser, GumbelQuantile, release_from_dict

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
    return SparseRegressor(**{**params, **changes})


@pytest.fixture(scope="module")
def fits(table):
    """A fit of Gumbel choices, one of Gaussian gradients, and one whose sensitivity depends on its own ridge."""
    return (
        PrivateScaler(0.4, 1e-7, feature_bound=10.0).fit(*table),
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
