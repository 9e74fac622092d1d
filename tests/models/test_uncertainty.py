"""Standard errors, intervals and stability: what they depend on, how they are kept, and how often they are right."""

import json
import math
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from typer.testing import CliRunner

from thresher import LocalSparseRegressor, SparseClassifier, SparseRegressor
from thresher.algorithms import REGISTRY, Pursuit
from thresher.algorithms.uncertainty import (
    Competition,
    Move,
    Uncertainty,
    _Margins,
    errors_of_classes,
    errors_of_numbers,
    keeping_chance,
)
from thresher.cli.app import app
from thresher.models.files import load_model
from thresher_papers.datasets import dpsl_kt_law

pytestmark = pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")  # the papers' delta of 0.01 is too large

FACTS = {"epsilon": 2.0, "delta": 1e-5, "feature_bound": 1.0, "random_state": 0}


def table(n=4000, d=30, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, 2 * X[:, 3] - X[:, 7] + rng.normal(0, 0.3, n)


def regressor(**facts):
    return SparseRegressor(**{"sparsity": 3, "algorithm": "pursuit", "target_bound": 4.0, **FACTS, **facts})


def classifier(**facts):
    return SparseClassifier(**{"sparsity": 3, "algorithm": "pursuit", "classes": [0, 1], **FACTS, **facts})


@pytest.fixture(scope="module")
def fitted():
    return regressor().fit(*table())


# -- the record ---------------------------------------------------------------------------------------------------


def test_it_survives_json():
    found = Uncertainty(np.array([[0.1, np.nan]]), np.array([[0.2, np.nan]]), np.array([[0.9, np.nan]]), "as said")
    again = Uncertainty.from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False)))
    for part in ("noise", "sampling", "stability", "standard_errors"):
        np.testing.assert_array_equal(getattr(again, part), getattr(found, part))
    assert again.method == "as said"


def test_intervals_are_normal_ones_of_both_parts():
    found = Uncertainty(np.array([3.0]), np.array([4.0]), np.array([1.0]), "")
    np.testing.assert_allclose(found.intervals(np.array([1.0]), 0.9), [[1 - 5 * 1.644854, 1 + 5 * 1.644854]], rtol=1e-6)
    np.testing.assert_allclose(found.intervals(np.array([1.0]), 0.5), [[1 - 5 * 0.674490, 1 + 5 * 0.674490]], rtol=1e-5)


@pytest.mark.parametrize("level", [0.0, 1.0, 90, math.nan])
def test_a_level_that_is_no_probability_is_refused(fitted, level):
    with pytest.raises(ValueError, match=f"level={level!r} must lie strictly between 0 and 1"):
        fitted.intervals(level)


def test_coefficients_of_another_shape_are_refused(fitted):
    with pytest.raises(ValueError, match="coefficients have shape"):
        fitted.uncertainty_.intervals(np.zeros(99))


# -- in the model -------------------------------------------------------------------------------------------------


def test_a_regressor_has_one_entry_per_selected_feature(fitted):
    found, k = fitted.uncertainty_, len(fitted.support_)
    assert found.noise.shape == found.sampling.shape == found.stability.shape == (k,)
    assert fitted.intervals().shape == (k, 2)
    np.testing.assert_array_equal(found.standard_errors, np.hypot(found.noise, found.sampling))
    low, high = fitted.intervals().T
    np.testing.assert_allclose((low + high) / 2, fitted.coef_[fitted.support_])
    assert np.all((found.stability >= 0) & (found.stability <= 1))


def test_two_classes_have_one_entry_per_selected_feature():
    X, y = table()
    model = classifier().fit(X, (y > 0).astype(int))
    assert model.uncertainty_.noise.shape == (len(model.support_),)
    assert model.intervals().shape == (len(model.support_), 2)


def test_several_classes_have_a_row_each_and_nothing_for_features_a_class_does_not_use():
    X, y = table(20_000)
    model = classifier(classes=[0, 1, 2], epsilon=8.0).fit(X, np.digitize(y, [-0.7, 0.7]))
    used = model.coef_[:, model.support_] != 0
    assert used.any()
    assert not used.all()
    assert model.uncertainty_.noise.shape == used.shape
    assert model.intervals().shape == (*used.shape, 2)
    np.testing.assert_array_equal(np.isfinite(model.uncertainty_.standard_errors), used)


@pytest.mark.parametrize("name", [name for name in REGISTRY if name not in ("newton", "pursuit")])
def test_algorithms_without_a_formula_have_none_and_say_which_have_one(name):
    X, y = table(200)
    epsilon = math.inf if name == "ight" else 1.0
    model = regressor(algorithm=name, epsilon=epsilon).fit(X, y)
    assert model.uncertainty_ is None
    with pytest.raises(
        ValueError, match=f"algorithm='{name}' releases do not tell .* those of 'newton' and 'pursuit' do"
    ):
        model.intervals()


def test_a_survey_has_none():
    X, y = table(500, 8)
    assert LocalSparseRegressor(2, 1.0, feature_bound=1.0, target_bound=4.0).fit(X, y).uncertainty_ is None


def test_an_unfitted_model_has_none():
    with pytest.raises(NotFittedError):
        regressor().intervals()
    assert "uncertainty_" not in vars(regressor())


@pytest.mark.parametrize("facts", [{"hardened": True}, {"adjacency": "add-remove", "n_public": 4000}])
def test_hardened_noise_and_either_adjacency_have_it(fitted, facts):
    found = regressor(**facts).fit(*table())
    assert {3, 7} <= set(found.support_)
    assert 0.2 < found.uncertainty_.noise[0] / fitted.uncertainty_.noise[0] < 5
    assert found.certificate_.verify()


def test_add_remove_neighbours_need_half_the_noise_and_the_errors_know():
    """Sensitivities are halved. Of 20 runs the one that counts is that which was least on the move at its end."""
    noise = {name: [] for name in ("replace-one", "add-remove")}
    for seed in range(20):
        for adjacency, found in noise.items():
            model = regressor(adjacency=adjacency, epsilon=0.5, random_state=seed).fit(*table(seed=seed))
            found.append(model.uncertainty_.noise[np.searchsorted(model.support_, 3)])
    assert 1.5 < np.min(noise["replace-one"]) / np.min(noise["add-remove"]) < 2.6


def test_nothing_more_is_asked_than_planned(fitted):
    """The certificate lists as many answers as a plan without any of this did: picks, quantiles, moments, gradients."""
    listed = sum(answer["count"] for entry in fitted.certificate_.releases for answer in entry["answers"])
    assert listed == sum(release.times for release in fitted.plan_.releases)


def test_it_is_kept_in_the_file_and_copied_with_the_model(fitted, tmp_path):
    fitted.save(tmp_path / "model.json")
    for other in (load_model(tmp_path / "model.json"), pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_array_equal(other.intervals(0.8), fitted.intervals(0.8))
        assert other.uncertainty_.to_dict() == fitted.uncertainty_.to_dict()
    assert clone(fitted).uncertainty_ is None


def test_files_written_before_are_read_and_say_why_there_are_no_intervals(fitted, tmp_path):
    fitted.save(tmp_path / "model.json")
    written = json.loads((tmp_path / "model.json").read_text())
    del written["uncertainty"]
    (tmp_path / "old.json").write_text(json.dumps(written))
    old = load_model(tmp_path / "old.json")
    np.testing.assert_array_equal(old.coef_, fitted.coef_)
    assert old.uncertainty_ is None
    with pytest.raises(ValueError, match="written by a version that kept no standard errors; fit it again"):
        old.intervals()


class Interrupted(Pursuit):
    def run(self, vault):
        raise KeyboardInterrupt


@pytest.mark.parametrize("read_back", [False, True])
def test_a_refit_drops_it(tmp_path, read_back):
    X, y = table()
    model = regressor().fit(X, y)
    if read_back:
        model.save(tmp_path / "model.json")
        model = load_model(tmp_path / "model.json")
    with pytest.raises(KeyboardInterrupt):
        model.set_params(algorithm=Interrupted()).fit(X, y)
    assert model.uncertainty_ is None
    with pytest.raises(NotFittedError):
        model.intervals()
    assert model.set_params(algorithm="dp-ight").fit(X, y).uncertainty_ is None


def test_the_command_line_shows_intervals_and_stability(tmp_path):
    X, y = table(d=10)
    columns = ",".join([*(f"x{j}" for j in range(10)), "y"])
    np.savetxt(tmp_path / "t.csv", np.column_stack([X, y]), delimiter=",", header=columns, comments="")
    bounds = ["--feature-bound", "1", "--target-bound", "4", "--sparsity", "2", "--epsilon", "2", "--target", "y"]
    for algorithm, shown in (("pursuit", True), ("dp-ight", False)):
        out = ["--algorithm", algorithm, "--out", str(tmp_path / f"{algorithm}.json")]
        printed = CliRunner().invoke(app, ["fit", str(tmp_path / "t.csv"), *bounds, *out])
        assert printed.exit_code == 0, printed.output
        assert ("90 % interval" in printed.stdout) == ("100%" in printed.stdout) == shown


# -- what the parts depend on -------------------------------------------------------------------------------------


def still(k=4, variance=1e-4, step=0.5):
    """A last move that went nowhere: what is left is the noise of its gradient."""
    H = np.diag(np.linspace(0.2, 0.4, k))
    zeros, values = np.zeros(k), np.linspace(0.1, 0.5, k)
    return Move(values, values, zeros, np.full(k, variance), step * np.linalg.inv(H), H, clip=0.3)


def test_the_noise_part_is_that_of_the_gradient_times_the_step():
    noise, _ = errors_of_numbers(still(), still(), 0.2, 0.5, 1000)
    np.testing.assert_allclose(noise, 1e-2 * 0.5 / np.linspace(0.2, 0.4, 4))


def of_numbers(variance, n):
    return errors_of_numbers(still(variance=variance), still(), 0.2, 0.5, n)


def of_classes(variance, n):
    return errors_of_classes(still(variance=variance), still(), n, intercept=False)


@pytest.mark.parametrize("errors", [of_numbers, of_classes])
def test_noise_grows_with_the_noise_and_sampling_falls_with_the_root_of_the_rows(errors):
    (_, sampling), (_, quarter) = errors(1e-4, 1000), errors(1e-4, 4000)
    np.testing.assert_allclose(sampling, 2 * quarter)
    without, (little, _), (much, _) = errors(0.0, 1000)[0], errors(1e-4, 1000), errors(4e-4, 1000)
    np.testing.assert_allclose(much**2 - without**2, 4 * (little**2 - without**2))


def test_values_that_still_move_are_less_sure():
    calm, _ = errors_of_numbers(still(), still(), 0.2, 0.5, 1000)
    gradient = np.array([0.0, 0.0, 0.0, 0.1])
    moving = Move(**{**vars(still()), "gradient": gradient})
    noise, _ = errors_of_numbers(moving, still(), 0.2, 0.5, 1000)
    assert np.all(noise >= calm)
    assert noise[3] > 10 * calm[3]


@pytest.mark.parametrize("make", [regressor, classifier])
def test_four_times_the_rows_halve_the_sampling_error(make):
    """Of the same feature, to 25 %: clips are rounded to a grid of 10 % steps and the noise is another."""
    found = []
    for n in (5000, 20_000):
        X, y = table(n)
        model = make(epsilon=5.0).fit(X, y if make is regressor else (y > 0).astype(int))
        found.append(model.uncertainty_.sampling[np.searchsorted(model.support_, 3)])
    assert 1.5 < found[0] / found[1] < 2.5


def test_gaussian_margins_have_the_moments_they_claim():
    """Against 400,000 drawn rows; each entry is within 6 of its standard errors, one in 5e8 of true ones is not."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 3)) / 3
    rows = np.column_stack([np.full(400_000, 0.5), rng.normal(size=(400_000, 3)) @ root.T + [0.2, -0.1, 0.3]])
    H = np.zeros((4, 4))
    centre = np.array([0.5, 0.2, -0.1, 0.3])
    H[1:, 1:] = root @ root.T
    H += np.outer(centre, centre)
    theta = np.array([0.4, 1.0, -0.7, 0.5])
    margins = _Margins(Move(theta, theta, theta, theta, H, H, 1.0), intercept=True)
    p = 1 / (1 + np.exp(-rows @ theta))
    weighted = (p * (1 - p))[:, None, None] * rows[:, :, None] * rows[:, None, :]
    off = np.abs(weighted.mean(axis=0) - margins.moments(margins.p * (1 - margins.p)))
    assert np.all(off <= 6 * weighted.std(axis=0) / 400_000**0.5 + 1e-12)
    pulls = p[:, None] * rows
    off = np.abs(pulls.mean(axis=0) - margins.mean(margins.p))
    assert np.all(off <= 6 * pulls.std(axis=0) / 400_000**0.5 + 1e-12)


# -- stability ----------------------------------------------------------------------------------------------------


def test_stability_grows_with_the_coefficient_and_falls_with_rivals_and_noise():
    values, moments = np.linspace(0, 1, 20), np.full(20, 0.3)
    usual = Competition(1000, 2, gumbel=0.01, slope=0.5, spread=0.005)
    chances = usual.chance(values, moments)
    assert np.all(np.diff(chances) >= -1e-12)
    assert chances[0] < 0.01
    assert chances[-1] > 0.99
    for harder in (Competition(100_000, 2, 0.01, 0.5, 0.005), Competition(1000, 2, 0.02, 0.5, 0.005)):
        assert np.all(harder.chance(values, moments) <= chances + 1e-9)
        assert np.any(harder.chance(values, moments) < chances - 0.1)
    np.testing.assert_array_equal(Competition(3, 3, 0.01, 0.5, 0.005).chance(values, moments), 1.0)
    kept = keeping_chance(values, np.full(20, 0.1), np.full(20, 0.3))
    assert np.all(np.diff(kept) > 0)


@pytest.mark.parametrize("gumbel", [0.0, 0.002, 0.02])
def test_the_chance_of_a_pick_is_that_of_drawn_scores(gumbel):
    """20,000 competitions among 50 columns; within .02, which is 5.6 of their standard errors and 0.002 of formula."""
    rng = np.random.default_rng(1)
    play, moment, values = Competition(50, 1, gumbel, slope=0.5, spread=0.005), 0.3, np.array([0.02, 0.1, 0.4])
    best = _scores(rng, np.zeros(49), gumbel, play.spread * moment**0.5).max(axis=1)
    own = _scores(rng, play.slope * moment * values, gumbel, play.spread * moment**0.5)
    drawn = (own > best[:, None]).mean(axis=0)
    np.testing.assert_allclose(play.chance(values, np.full(3, moment)), drawn, atol=0.02)


def _scores(rng, centres, gumbel, spread):
    size = (20_000, len(centres))
    return np.abs(rng.normal(centres, spread, size)) + gumbel * rng.gumbel(size=size)


# -- how often they are right -------------------------------------------------------------------------------------

LEAST, MOST = 0.85, 0.98


def held(models_and_truths):
    """Whether each 90 % interval of a true feature holds its coefficient."""
    found = []
    for model, theta in models_and_truths:
        (low, high), truth = model.intervals(0.9).T, theta[model.support_]
        found += list(((low <= truth) & (truth <= high))[truth != 0])
    return np.array(found)


def test_nine_of_ten_intervals_of_a_regression_hold_the_truth():
    """About 300 intervals: were 75 % of them to hold, 85 % would by a chance of 2e-5; were 99.9 %, 98 % or fewer would
    by a chance of 1e-6."""

    def fits():
        for seed in range(40):
            X, y, theta = dpsl_kt_law(800, 300, 10).draw(seed)
            yield (
                SparseRegressor(10, algorithm="pursuit", target_bound=8.0, **{**FACTS, "random_state": seed}).fit(X, y),
                theta,
            )

    found = held(fits())
    assert len(found) > 280
    assert LEAST <= found.mean() <= MOST


def test_nine_of_ten_intervals_of_a_classifier_hold_the_truth():
    """About 530 intervals of 120 models. Those of one model are right or wrong together; were only 120 of them
    independent, 75 % would look like 85 % by a chance of .6 %, and 99.9 % like 98 % by one of 2e-4."""

    def fits():
        for seed in range(120):
            rng = np.random.default_rng(seed)
            X, theta = rng.uniform(-1, 1, (4000, 15)), np.zeros(15)
            theta[:5] = rng.uniform(-3, 3, 5)
            ill = rng.random(4000) < 1 / (1 + np.exp(-X @ theta))
            yield classifier(sparsity=5, random_state=seed).fit(X, ill.astype(int)), theta

    found = held(fits())
    assert len(found) > 400
    assert LEAST <= found.mean() <= MOST


def test_features_are_found_again_as_often_as_said():
    """About 280 features of 40 models near the noise. The frequency has a standard error of about .02; it may be .09
    off. Of features said to be likely (above .9) far more are found again than of those said to be a toss-up or less:
    were stability meaningless, a gap of .2 between about 220 and 30 of them would appear by a chance of 1e-3."""
    said, again = [], []
    for seed in range(40):
        models, theta = [], dpsl_kt_law(2, 100, 10).draw(seed)[2]
        for at in (1000 + seed, 2000 + seed):
            rng = np.random.default_rng(at)
            X = rng.uniform(-1, 1, (4000, 100))
            y = X @ theta + rng.normal(0, 0.3, 4000)
            facts = {**FACTS, "epsilon": 0.25, "random_state": at}
            models.append(SparseRegressor(10, algorithm="pursuit", target_bound=8.0, **facts).fit(X, y))
        true = theta[models[0].support_] != 0
        said += list(models[0].uncertainty_.stability[true])
        again += list(np.isin(models[0].support_[true], models[1].support_))
    stability, again = np.array(said), np.array(again)
    assert abs(stability.mean() - again.mean()) < 0.09
    assert again[stability > 0.9].mean() - again[stability < 0.6].mean() > 0.2
