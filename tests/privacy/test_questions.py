"""Questions: each states its own rules, releases pass them on, and a rule that is forgotten is an error everywhere."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pytest

from certified_models import fitted
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Adjacency, Budget
from thresher.privacy.certificate import Certificate
from thresher.privacy.facts import PublicFacts
from thresher.privacy.plan import Plan
from thresher.privacy.questions import _QUESTIONS as KNOWN
from thresher.privacy.questions import CertifiedSearch, Gradient, Question, question_named
from thresher.privacy.releases import (
    _KINDS,
    BinomialGradient,
    BinomialMinimiser,
    ExactRelease,
    GaussianGradient,
    GaussianMinimiser,
    HypercubeReport,
    LaplaceReport,
    Release,
    SampledGradient,
    SphereReport,
    release_from_dict,
)
from thresher.vaults import CentralVault
from thresher.vaults.losses import SQUARED
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

N, D = 20, 3
PROBLEM = LinearProblem(N, D, Bounds(1.0, None, (-1.0, 1.0)), sparsity=2, loss=SQUARED, intercept=False)
FACTS = PublicFacts(N, D, Bounds(1.0, None, (-1.0, 1.0)))
SEARCH = CertifiedSearch(ridge=0.5, tolerance=0.01)
UNPRICED = {"printed labels", "any", "trials"}  # that answer nothing themselves, or nothing that is bounded

each_question = pytest.mark.parametrize("question", KNOWN.values(), ids=str)


# -- every question -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [kind for kind in _KINDS.values() if kind is not ExactRelease])
def test_every_kind_of_release_asks_a_known_question(kind):
    assert question_named(kind.question.name) == kind.question


def test_every_known_question_is_asked_by_some_kind_of_release():
    asked = {kind.question.name for kind in _KINDS.values() if kind is not ExactRelease}
    assert asked == set(KNOWN)


@each_question
def test_every_question_says_what_it_asks_and_whether_it_is_about_single_rows(question):
    assert question.of_rows_only in (True, False)
    for unit in ("row", "person"):
        words = question.asked(unit)
        assert len(words) > 5
        assert "{" not in words


def test_questions_about_batches_and_blocks_are_about_people_where_these_are_the_unit():
    assert "batch of people" in question_named("sampled gradient").asked("person")
    assert "blocks of people" in question_named("votes").asked("person")
    assert "blocks of rows" in question_named("votes").asked("row")
    assert "of the people" in question_named("near maximum").asked("person")
    assert "of the rows" in question_named("near maximum").asked("row")


@each_question
@pytest.mark.parametrize("adjacency", Adjacency)
def test_the_sensitivity_grows_with_the_clip_and_a_replaced_row_moves_no_less_than_an_added_one(question, adjacency):
    if question.name in UNPRICED or question.name.startswith("sampled"):
        with pytest.raises(NotImplementedError, match=question.name):
            question.sensitivity(1.0, N, adjacency, SEARCH)
        return
    one, two = (question.sensitivity(clip, N, adjacency, SEARCH) for clip in (1.0, 2.0))
    assert 0 < one <= two <= 2 * one
    assert one <= question.sensitivity(1.0, N, Adjacency.REPLACE_ONE, SEARCH)


@each_question
def test_a_question_has_a_rule_for_its_clip_wherever_it_has_a_sensitivity(question):
    settings = {"clip": 0.5, "difference_clip": 0.1, "momentum": 0.9, "radius": 2.0, "loss_clip": 0.3}
    if question.name in UNPRICED or question.name == "printed gradient":
        with pytest.raises(NotImplementedError, match=question.name):
            question.clips_of_settings(FACTS, settings, 2)
        return
    least, most = question.clips_of_bounds(FACTS) or question.clips_of_settings(FACTS, settings, 2)
    assert 0 <= least <= most
    assert most > 0


@pytest.mark.parametrize("adjacency", Adjacency)
def test_a_mean_moves_as_a_gradient_does_and_a_near_maximum_by_one_row(adjacency):
    assert question_named("mean").sensitivity(0.3, N, adjacency) == adjacency.contributions * 0.3 / N
    assert question_named("near maximum").sensitivity(1.0, N, adjacency) == 1.0
    assert question_named("near maximum").clips_of_bounds(FACTS) == (1.0, 1.0)
    assert question_named("mean").clips_of_settings(FACTS, {}, 2) == (0.0, FACTS.norm_in_units(2))


def test_an_unknown_question_is_refused_and_the_known_ones_are_listed():
    with pytest.raises(ValueError, match=r"question='anything' must be one of gradient, .*trials"):
        question_named("anything")


@each_question
def test_questions_of_one_kind_are_equal_and_show_their_name(question):
    assert pickle.loads(pickle.dumps(question)) == question
    assert (str(question), repr(question)) == (question.name, repr(question.name))
    assert [other for other in KNOWN.values() if other == question] == [question]


# -- what releases add --------------------------------------------------------------------------------------------


def test_a_batch_is_as_sensitive_as_its_expected_size_makes_it():
    sampled = SampledGradient(1, 2.0, 5, N, "poisson", Adjacency.ADD_REMOVE)
    assert sampled.sensitivity(1.0, N, Adjacency.ADD_REMOVE) == 1 / 5


def test_a_minimiser_without_its_search_has_no_sensitivity():
    with pytest.raises(ValueError, match="moves as far as its ridge lets it"):
        GaussianMinimiser(1, 2.0).sensitivity(1.0, N, Adjacency.REPLACE_ONE)


def test_only_what_is_searched_for_or_added_up_jointly_may_be_wider_than_its_clip_says():
    assert GaussianGradient(1, 2.0).most_sensitivity(1.0, N, 1.5, 0.25) == 1.0
    assert GaussianMinimiser(1, 2.0).most_sensitivity(1.0, N, 1.5, 0.25) == pytest.approx(1.3 * 1.5)
    assert BinomialGradient(1, 2.0, D, 256, 8).most_sensitivity(1.0, N, 1.5, 0.25) == 1.5
    assert BinomialMinimiser(1, 2.0, D, 256, 8).most_sensitivity(1.0, N, 1.5, 0.25) == pytest.approx(N * 1.05 * 1.5)


def test_reports_on_a_sphere_have_the_norm_of_a_row_in_their_clip():
    settings = {"clip": 0.5}
    assert SphereReport(1, 1.0, D, 0.1).clips_of_settings(FACTS, settings, D) == (0.5 * FACTS.row_norm,) * 2
    assert HypercubeReport(1, 1.0, D, 1, 1).clips_of_settings(FACTS, settings, D) == (0.5, 0.5)


def test_reports_are_as_large_as_their_law_and_other_noise_as_its_multiplier_says():
    sphere = SphereReport(1, 1.0, D, 0.1)
    assert sphere.scale(0.5, math.nan) == 0.5 * sphere.law.size
    assert LaplaceReport(1, 2.0).scale(math.nan, 3.0) == 1.5
    assert GaussianGradient(1, 2.0).scale(math.nan, 3.0) == 6.0


def test_an_exact_release_is_written_by_the_name_of_its_question():
    exact = ExactRelease(2, Gradient())
    assert json.dumps(exact.to_dict()) == '{"kind": "ExactRelease", "times": 2, "question": "gradient"}'
    assert release_from_dict(exact.to_dict()) == exact == ExactRelease(2, "gradient")
    assert hash(exact) == hash(ExactRelease(2, "gradient"))
    with pytest.raises(ValueError, match="question='anything' must be one of"):
        ExactRelease(1, "anything")


# -- what is forgotten --------------------------------------------------------------------------------------------


class Unstated(Question):
    """A gradient whose author stated nothing."""

    name = "gradient"


class Insensitive(Unstated):
    """A gradient whose author forgot how far a row moves it."""

    of_rows_only = False


class Unclipped(Gradient):
    """A gradient whose author forgot how settings clip it."""

    clips_of_settings = Question.clips_of_settings


def test_a_release_without_a_question_has_no_rule():
    for rule in (
        lambda release: release.sensitivity(1.0, N, Adjacency.REPLACE_ONE),
        lambda release: release.clips_of_settings(FACTS, {"clip": 1.0}, D),
        lambda release: release.question.of_rows_only,
        lambda release: release.question.words,
    ):
        with pytest.raises(NotImplementedError, match="no rule is stated for"):
            rule(Release(times=1))


def test_a_plan_refuses_a_release_that_does_not_say_whether_people_may_have_several_rows(monkeypatch):
    monkeypatch.setattr(GaussianGradient, "question", Unstated())
    with pytest.raises(NotImplementedError, match="gradient: no rule is stated for people with several rows"):
        Plan("test", PROBLEM, Budget(math.inf, 1e-6), (GaussianGradient(1, 1.0),))


def test_a_vault_answers_nothing_whose_sensitivity_is_not_stated(monkeypatch):
    monkeypatch.setattr(GaussianGradient, "question", Insensitive())
    release = GaussianGradient(1, 1.0)
    plan = Plan("test", PROBLEM, Budget(math.inf, 1e-6), (release,))
    with (
        CentralVault(np.zeros((N, D)), np.zeros(N), plan, NoiseSource(0)) as vault,
        pytest.raises(NotImplementedError, match="gradient: no rule is stated for its sensitivity"),
    ):
        vault.gradient(PROBLEM.origin(), release, 1.0)
    assert vault.answers == ()


@pytest.mark.parametrize(("forgetful", "what"), [(Insensitive(), "its sensitivity"), (Unclipped(), "its clip")])
def test_the_verifier_takes_no_other_rule_for_one_that_is_not_stated(forgetful, what, monkeypatch):
    certificate = Certificate.from_json(fitted("dp-ight, hardened").certificate_.to_json())
    assert certificate.verify().ok
    monkeypatch.setattr(GaussianGradient, "question", forgetful)
    with pytest.raises(NotImplementedError, match=f"gradient: no rule is stated for {what}"):
        certificate.verify()
