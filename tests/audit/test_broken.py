"""Each broken copy is broken in the way it says, and in no other."""

import math

import numpy as np
import pytest
from scipy import stats

from inside import drawn_batch
from thresher.audit.broken import (
    ClippedEarly,
    FreeSign,
    QuietLabels,
    QuietNoise,
    QuietReports,
    Rerun,
    ReusedBatch,
    SwappedClips,
    Twice,
    TwoSided,
    Unbounded,
    Unclipped,
    UnclippedLabels,
    WholeBatch,
    WrongSign,
    quieter,
)
from thresher.audit.questions import QUESTIONS
from thresher.audit.witness import Witness, witness_of
from thresher.privacy.budget import Budget
from thresher.privacy.plan import Plan
from thresher.privacy.releases import ExactRelease
from thresher.vaults import CentralVault, LabelVault, SimulatedVault
from thresher.vaults.randomisers import Gaussian, Laplace, Piecewise
from thresher.vaults.randomness import NoiseSource

CHOICES = ["selection", "votes", "quantile", "near-maximum", "vertex", "step-length"]
PROJECTED = ["projected-gradient", "projected-gram"]
NUMBERS = ["gradient", "restricted-gradient", "mean", "moments", "gram", "minimiser", "pure-minimiser", "labels"]
NUMBERS += PROJECTED


def vault_of(kind, name, *, noise=None, rows="second"):
    question = QUESTIONS[name]
    plan = question.probe.plan(question.pair.problem, Budget(1.0, 1e-5, question.pair.adjacency))
    return kind(*getattr(question.pair, rows), plan, noise or NoiseSource(0))


def answer_of(kind, name, **facts):
    with vault_of(kind, name, **facts) as vault:
        return np.atleast_1d(QUESTIONS[name].probe.run(vault))


# -- quiet noise ----------------------------------------------------------------------------------------------------


KINDS = (NoiseSource, QuietNoise)


def draws(kind, law, count):
    noise = kind(KINDS.index(kind))
    if law == "gaussian":
        return noise.gaussian(np.zeros(count), 2.0, 3.0)[0]
    if law == "l2-laplace":
        return np.array([np.linalg.norm(noise.l2_laplace(6.0, 3)) for _ in range(count)])
    # the larger of two equal scores leads by Logistic(scale): a choice between 0 and a lead shows its scale
    lead = 6.0
    return np.array([noise.gumbel_top(np.array([0.0, lead]), 1, 2.0, 3.0)[0][0] for _ in range(count)])


@pytest.mark.parametrize("law", ["gaussian", "l2-laplace"])
def test_quiet_noise_has_seven_tenths_of_the_spread(law):
    """The ratio of two estimates from 20,000 draws each, within 3.9 deviations: false alarm rate with fresh seeds 1e-4.

    A Gaussian sd has a relative error of 1/sqrt(2 count), the mean of Gamma(3) norms of 1/sqrt(3 count).
    """
    count = 20_000
    spread = [np.std(x) if law == "gaussian" else x.mean() for x in (draws(kind, law, count) for kind in KINDS)]
    error = stats.norm.isf(0.5e-4) * math.sqrt(2 * (1 / (2 if law == "gaussian" else 3) / count))
    assert spread[1] / spread[0] == pytest.approx(0.7, rel=error)
    assert error < 0.03  # so 0.65 and 0.75 would fail


@pytest.mark.parametrize(("kind", "scale"), [(NoiseSource, 6.0), (QuietNoise, 4.2)])
def test_quiet_choices_follow_seven_tenths_of_the_scale(kind, scale):
    """A lead of 6 wins with chance 1 / (1 + e^(-6/scale)): 0.731, or 0.807. False alarms with a fresh seed: 1e-4."""
    wins = int(draws(kind, "gumbel", 4000).sum())
    assert stats.binomtest(wins, 4000, 1 / (1 + math.exp(-6 / scale))).pvalue > 1e-4


def test_quiet_noise_tells_the_scale_it_used():
    assert QuietNoise(0).gaussian(np.zeros(2), 2.0, 3.0)[1] == pytest.approx(4.2)
    assert QuietNoise(0).gumbel_top(np.zeros(2), 1, 2.0, 3.0)[1] == pytest.approx(4.2)


@pytest.mark.parametrize("name", ["gradient", "restricted-gradient", "mean", "moments", "labels"])
def test_quiet_answers_lie_seven_tenths_as_far_from_the_truth(name):
    """With the same random bits: the noise of the sound copy, scaled."""
    exact, plain, quiet = [], [], []
    for kind, answers in ((NoiseSource, plain), (QuietNoise, quiet)):
        with vault_of(Witness, name, noise=kind(5)) as vault:
            QUESTIONS[name].probe.run(vault)
        answers.append(vault.transcript[0].answer)
        exact.append(vault.transcript[0].value)
    np.testing.assert_array_equal(exact[0], exact[1])
    np.testing.assert_allclose(quiet[0] - exact[0], 0.7 * (plain[0] - exact[0]), rtol=1e-9)


# -- no clip --------------------------------------------------------------------------------------------------------


def exact_value(kind, name, rows):
    with vault_of(witness_of(kind), name, rows=rows) as vault:
        QUESTIONS[name].probe.run(vault)
    return vault.transcript[0].value, vault.answers[0].sensitivity


@pytest.mark.parametrize("name", NUMBERS)
def test_unclipped_values_move_by_far_more_than_the_sensitivity_on_record(name):
    moves, stated = {}, {}
    for kind in (CentralVault, Unclipped):
        (one, sensitivity), (other, _) = (exact_value(kind, name, rows) for rows in ("first", "second"))
        moves[kind], stated[kind] = float(np.linalg.norm(one - other)), sensitivity
    assert stated[CentralVault] == stated[Unclipped]
    assert moves[CentralVault] <= stated[CentralVault] * (1 + 1e-9)
    assert moves[Unclipped] > 2 * stated[Unclipped]


@pytest.mark.parametrize("name", ["selection", "vertex"])
def test_unclipped_scores_move_by_far_more_than_the_sensitivity_on_record(name):
    """A score that rises by a million times the noise is chosen in every run."""
    chosen = {int(answer_of(Unclipped, name, noise=NoiseSource(seed))[0]) for seed in range(20)}
    sound = {int(answer_of(CentralVault, name, noise=NoiseSource(seed))[0]) for seed in range(20)}
    assert len(chosen) == 1
    assert len(sound) > 1


def test_unclipped_rows_are_copies():
    X, y = QUESTIONS["gradient"].pair.first
    before = X.copy(), y.copy()
    answer_of(Unclipped, "gradient", rows="first")
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])


def test_an_unclipped_gradient_by_hand():
    """At the origin: minus the mean of target times row, both a thousand."""
    question = QUESTIONS["gradient"]
    plan = Plan("exact", question.pair.problem, Budget(math.inf, 1e-5), (ExactRelease(1, "gradient"),))
    with Unclipped(*question.pair.second, plan, NoiseSource(0)) as vault:
        gradient = vault.gradient(vault.problem.origin(), plan.releases[0], 1.0)
    np.testing.assert_allclose(gradient, np.full(4, -1e6 / 20))


@pytest.mark.parametrize(("name", "further"), [("projected-gradient", 5**0.5), ("projected-gram", 5.0)])
def test_rows_that_are_clipped_early_move_an_answer_by_as_much_as_the_basis_makes_them_longer(name, further):
    moves, records = {}, {}
    for kind in (CentralVault, ClippedEarly):
        (one, records[kind]), (other, _) = (exact_value(kind, name, rows) for rows in ("first", "second"))
        moves[kind] = float(np.linalg.norm(one - other))
    assert moves[ClippedEarly] == pytest.approx(further * moves[CentralVault], rel=1e-9)
    assert records[ClippedEarly] == records[CentralVault]


@pytest.mark.parametrize("name", ["gradient", "restricted-gradient", "gram"])
def test_rows_without_a_basis_are_clipped_in_time(name):
    sound, broken = (answer_of(kind, name, noise=NoiseSource(4)) for kind in (CentralVault, ClippedEarly))
    np.testing.assert_array_equal(sound, broken)


# -- two sides at the price of one ----------------------------------------------------------------------------------


def test_two_sided_scores_move_twice_as_far_apart_and_are_noised_like_one_sided_ones():
    apart = {}
    for kind in (CentralVault, TwoSided):

        class Glass(kind):
            """Shows its exact scores."""

            def _pick_noisy(self, scores, *args):
                self.scores = scores.copy()
                return super()._pick_noisy(scores, *args)

        vaults = [vault_of(Glass, "near-maximum", rows=rows) for rows in ("first", "second")]
        for vault in vaults:
            QUESTIONS["near-maximum"].probe.run(vault)
        assert {vault.answers[0].scale for vault in vaults} == {QUESTIONS["near-maximum"].probe.release.multiplier}
        apart[kind] = float(np.ptp(vaults[1].scores - vaults[0].scores))
    assert apart == {CentralVault: 1.0, TwoSided: 2.0}


# -- free signs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gradient", "restricted-gradient", "mean", "minimiser", "pure-minimiser", "labels"])
def test_free_signs_are_those_of_the_exact_values_and_sizes_are_noisy(name):
    sizes = set()
    for seed in range(20):
        with vault_of(witness_of(FreeSign), name, noise=NoiseSource(seed)) as vault:
            QUESTIONS[name].probe.run(vault)
        said = vault.transcript[0]
        assert np.all(said.value != 0)
        np.testing.assert_array_equal(np.sign(said.answer), np.sign(said.value))
        sizes.add(float(np.abs(said.answer).ravel()[0]))
    assert len(sizes) == 20


def test_free_signs_have_the_sizes_of_the_sound_copy():
    plain, signed = (answer_of(kind, "gradient", noise=NoiseSource(2)) for kind in (CentralVault, FreeSign))
    np.testing.assert_array_equal(np.abs(plain), np.abs(signed))


@pytest.mark.parametrize(("rows", "ahead"), [("first", False), ("second", True)])
def test_the_free_sign_of_a_vertex_is_exact_and_its_axis_is_noisy(rows, ahead):
    """The four vertices ahead and the four behind are told apart in every one of 40 runs; the axis is any of four."""
    runs = [int(answer_of(FreeSign, "signed-vertex", noise=NoiseSource(s), rows=rows)[0]) for s in range(40)]
    assert {vertex < 4 for vertex in runs} == {ahead}
    assert len({vertex % 4 for vertex in runs}) == 4


def test_a_sound_vertex_has_a_noisy_sign():
    """Each sign has a chance of at least 0.26 in every run: 40 runs agree with chance below 1e-5."""
    runs = [int(answer_of(CentralVault, "signed-vertex", noise=NoiseSource(s))[0]) for s in range(40)]
    assert {vertex < 4 for vertex in runs} == {True, False}


# -- runs until one looks good --------------------------------------------------------------------------------------


def share_of_best(kind, scores, count=1500):
    """How often one pick of noisy scores has the largest exact one."""
    question = QUESTIONS["selection"]
    plan = question.probe.plan(question.pair.problem, Budget(1.0, 1e-5))
    with kind(*question.pair.first, plan, NoiseSource(7)) as vault:
        picks = [vault._pick_noisy(scores, 1, "gumbel", 1.0, 2.0, 0.0)[0] for _ in range(count)]
    return sum(bool(scores[pick[0]] == scores.max()) for pick in picks)


def test_a_rerun_finds_the_best_as_often_as_ten_tries_would():
    """1500 choices each; false alarm rate with a fresh seed: 1e-4 for each of the two counts."""
    scores = np.array([0.0, 0.5, 1.0, 0.2, -1.0, 0.0, 0.3, 0.1])
    once = float(np.exp(scores[2] / 2) / np.sum(np.exp(scores / 2)))
    assert stats.binomtest(share_of_best(CentralVault, scores), 1500, once).pvalue > 1e-4
    assert stats.binomtest(share_of_best(Rerun, scores), 1500, 1 - (1 - once) ** 10).pvalue > 1e-4
    assert once < 0.25 < 0.8 < 1 - (1 - once) ** 10


@pytest.mark.parametrize("name", CHOICES)
def test_a_rerun_is_charged_and_recorded_once(name):
    with vault_of(Rerun, name) as vault:
        QUESTIONS[name].probe.run(vault)
        assert len(vault.answers) == 1
        with pytest.raises(RuntimeError, match="used up"):
            QUESTIONS[name].probe.run(vault)


def test_broken_copies_answer_numbers_or_choices_they_do_not_break_as_the_sound_one_does():
    for kind, name in ((Rerun, "gradient"), (FreeSign, "moments"), (Unclipped, "votes"), (Unclipped, "quantile")):
        sound, broken = (answer_of(each, name, noise=NoiseSource(4)) for each in (CentralVault, kind))
        np.testing.assert_array_equal(np.abs(sound), np.abs(broken))


# -- random batches -------------------------------------------------------------------------------------------------


def batches_of(kind, name, count=8):
    with vault_of(kind, name) as vault:
        return [tuple(np.sort(drawn_batch(vault, QUESTIONS[name].probe.release))) for _ in range(count)]


def test_a_whole_batch_holds_every_row_and_a_reused_one_never_changes():
    assert set(batches_of(WholeBatch, "sampled-gradients")) == {tuple(range(20))}
    assert len(set(batches_of(ReusedBatch, "fixed-gradient"))) == 1
    assert len(set(batches_of(CentralVault, "fixed-gradient"))) > 1  # eight equal ones of twenty: chance 1e-9


@pytest.mark.parametrize("name", ["sampled-gradient", "sampled-gradients", "fixed-gradient"])
def test_batches_that_are_broken_are_charged_and_noised_like_the_sound_ones(name):
    records = []
    for kind in (CentralVault, WholeBatch, ReusedBatch):
        with vault_of(kind, name) as vault:
            QUESTIONS[name].probe.run(vault)
            records.append(vault.answers)
            with pytest.raises(RuntimeError, match="used up"):
                QUESTIONS[name].probe.run(vault)
    assert records[0] == records[1] == records[2]


@pytest.mark.parametrize(
    ("clip", "difference_clip", "momentum", "ratio"),
    [(0.05, 0.5, 0.1, 0.095 / 0.455), (1.0, 0.01, 0.01, 0.9901 / 0.0199), (0.3, 0.1, 0.8, 0.14 / 0.26)],
    ids=["dangerous", "as in the thesis: merely noisy", "dangerous for a large momentum"],
)
def test_swapped_clips_have_the_noise_of_the_printed_sum(clip, difference_clip, momentum, ratio):
    """(1-g) C1 + g C2 over (1-g) C2 + g C1 (erratum E-18): below 1 if (1-2g)(C2 - C1) > 0."""
    scales = []
    for kind in (CentralVault, SwappedClips):
        with vault_of(kind, "sampled-momentum") as vault:
            release, origin = QUESTIONS["sampled-momentum"].probe.release, vault.problem.origin()
            vault.sampled_momentum(origin + 1, origin, release, clip, difference_clip, momentum)
            scales.append(vault.answers[0].scale)
    assert scales[1] / scales[0] == pytest.approx(ratio, rel=1e-9)
    assert (ratio < 1) == ((1 - 2 * momentum) * (difference_clip - clip) > 0)


def test_the_wrong_sign_hides_the_worst_candidate_far_too_well():
    """Of 21, one that lies a scale below the others wins with chance e^-20 / 21, not e^-1 / (e^-1 + 20) as with Gumbel
    noise: 600 choices never show it, where .02 each would in all but e^-11 of tries.
    """
    scores = np.append(-1.0, np.zeros(20))
    with vault_of(WrongSign, "step-length") as broken, vault_of(CentralVault, "step-length") as sound:
        picks = [
            [int(v._pick_noisy(scores, 1, "gumbel", 1.0, 1.0, 0.0)[0][0]) for _ in range(600)] for v in (broken, sound)
        ]
    assert 0 not in picks[0]
    assert 0 in picks[1]
    assert len(set(picks[0])) == 20  # the others share: each is missed with chance e^-30


# -- people ---------------------------------------------------------------------------------------------------------


VECTORS = ["sphere-report", "hypercube-report"]
LABELS = ["laplace-report", "piecewise-report", "gaussian-report"]


@pytest.mark.parametrize("name", [*VECTORS, *LABELS, "class-report"])
def test_quiet_reports_cost_a_tenth_part_of_seven_more_than_is_paid(name):
    """As epsilon/0.7; with Gaussian noise as mu/0.7, hence mu^2/0.49."""
    release = QUESTIONS[name].probe.release
    paid, spent = release.cost(), quieter(release).cost()
    if name == "gaussian-report":
        assert spent.mu_squared == pytest.approx(paid.mu_squared / 0.49)
    else:
        assert spent.pure == pytest.approx(paid.pure / 0.7)
    assert type(quieter(release)) is type(release)


@pytest.mark.parametrize(("name", "kind"), [*((v, QuietReports) for v in VECTORS), ("class-report", QuietLabels)])
def test_quiet_reports_are_charged_as_planned_and_lie_less(name, kind):
    with vault_of(kind, name) as vault:
        QUESTIONS[name].probe.run(vault)
    assert {answer.release for answer in vault.answers} == {QUESTIONS[name].probe.release}
    with vault_of(kind.__base__, name) as sound:
        QUESTIONS[name].probe.run(sound)
    assert vault.answers[0].scale < sound.answers[0].scale  # unbiased, so what lies less is less blown up


@pytest.mark.parametrize("name", ["laplace-report", "gaussian-report"])
def test_quiet_labels_have_seven_tenths_of_the_noise(name):
    """With the same random bits."""
    plain, quiet = (answer_of(kind, name, noise=NoiseSource(5)) for kind in (LabelVault, QuietLabels))
    np.testing.assert_allclose(quiet - [1, 0], 0.7 * (plain - [1, 0]), atol=2.0**-22)  # steps of the reports' grid


@pytest.mark.parametrize("name", VECTORS)
def test_people_who_report_twice_are_charged_once(name):
    plan = QUESTIONS[name].probe.plan(QUESTIONS[name].pair.problem, Budget(1.0, 1e-5))
    with vault_of(SimulatedVault, name) as sound, vault_of(Twice, name) as broken:
        groups = [vault._groups(6, 3) for vault in (sound, broken)]
        QUESTIONS[name].probe.run(broken)
    counts = [np.bincount(np.concatenate(each)).tolist() for each in groups]
    assert counts == [[1] * 6, [2] * 6]
    assert plan.cost.pure == 2.0
    assert len(broken.answers) == 2


@pytest.mark.parametrize("randomiser", [Laplace(1.0), Gaussian(2.0), Piecewise(1.0)])
def test_what_lies_beyond_the_range_passes_an_unbounded_randomiser(randomiser):
    """Inside the range it is as good as the sound one; the density follows it outside."""
    values = np.array([-3.0, -0.5, 0.7, 1000.0])
    sound, broken = (each.randomise(values, NoiseSource(0)) for each in (randomiser, Unbounded(randomiser)))
    np.testing.assert_allclose(broken - sound, [-2, 0, 0, 999], atol=1e-9)
    for value, inside, one, other in zip(values, np.clip(values, -1, 1), broken, sound, strict=True):
        density = Unbounded(randomiser).log_density(np.array([one]), value)
        np.testing.assert_allclose(density, randomiser.log_density(np.array([other]), inside), atol=1e-6)


@pytest.mark.parametrize("name", LABELS)
def test_unclipped_labels_come_out_far_beyond_their_range(name):
    """A thousand times the end of the range, with noise of a few units."""
    low, high = (answer_of(UnclippedLabels, name, rows=rows)[0] for rows in ("first", "second"))
    assert low < -900
    assert high > 900
    assert np.abs(answer_of(LabelVault, name)[0]) < 100
