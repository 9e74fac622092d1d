"""The vault of a module: what it answers, with how much noise, and that no example moves it by more than stated."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inside import examples_of
from networks import GivenBatch, clipped, gradient_alone, make_vault, perceptron, some_examples, torch
from thresher.privacy.budget import Adjacency, BudgetExceeded
from thresher.privacy.releases import GaussianGradient, SampledGradient, SampledMomentum
from thresher.privacy.sensitivity import gradient_sensitivity, momentum_clip
from thresher.torch.gradients import flattened, set_parameters, trainable_parameters
from thresher.vaults.randomness import NoiseSource

cross_entropy = torch.nn.functional.cross_entropy
N, BATCH = 12, 4
ROWS = [1, 3, 4, 8, 11]  # a Poisson batch need not have the expected size
CLIP, DIFFERENCE, MOMENTUM = 0.6, 0.2, 0.3


def sampled(kind, sd=0.0, times=3, n=N, adjacency="replace-one"):
    return kind(times, sd, BATCH, n, "poisson", Adjacency(adjacency))


def points(vault):
    theta = vault.problem.origin()
    return theta, theta + 0.3 * np.random.default_rng(5).normal(size=len(theta))


def ask(question, vault, release):
    before, theta = points(vault)
    if question == "gradient":
        return vault.gradient(theta, release, CLIP)
    if question == "sampled gradient":
        return vault.sampled_gradient(theta, release, CLIP)
    return vault.sampled_momentum(theta, before, release, CLIP, DIFFERENCE, MOMENTUM)


def release_for(question, sd=0.0, n=N, adjacency="replace-one"):
    if question == "gradient":
        return GaussianGradient(3, sd)
    return sampled(SampledGradient if question == "sampled gradient" else SampledMomentum, sd, 3, n, adjacency)


def by_hand(question, module, X, y, theta, before):
    """The answer without noise, one example after the other."""

    def gradients(at):
        set_parameters(trainable_parameters(module), at)
        return [gradient_alone(module, cross_entropy, *pair) for pair in zip(X, y, strict=True)]

    now = gradients(theta)
    if question == "gradient":
        return sum(clipped(g, CLIP) for g in now) / N
    if question == "sampled gradient":
        return sum(clipped(now[row], CLIP) for row in ROWS) / BATCH
    then = gradients(before)
    moves = [clipped(now[row] - then[row], DIFFERENCE) for row in ROWS]
    return sum((1 - MOMENTUM) * m + MOMENTUM * clipped(now[r], CLIP) for m, r in zip(moves, ROWS, strict=True)) / BATCH


QUESTIONS = ["gradient", "sampled gradient", "sampled momentum"]


@pytest.mark.parametrize("virtual_batch", [1, 2, 256])
@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_without_noise_are_those_of_a_loop_whatever_the_virtual_batch(question, virtual_batch):
    X, y = some_examples(N)
    release = release_for(question)
    vault = make_vault(X, y, release, noise=GivenBatch(ROWS), virtual_batch=virtual_batch)
    before, theta = points(vault)
    expected = by_hand(question, perceptron(), X, y, theta, before)
    np.testing.assert_allclose(ask(question, vault, release), expected, rtol=3e-3, atol=1e-5)


class Side(torch.nn.Module):
    """Two layers whose biases have the same gradient, in the same memory, from a loss that says the same to all."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.left, self.right = torch.nn.Linear(5, 3), torch.nn.Linear(5, 3)

    def forward(self, x):
        return torch.tanh(self.left(x)) + self.left(x) + self.right(x)


def test_gradients_that_share_memory_are_not_mixed_up():
    X, y = some_examples(N)
    X[4] = np.float32(3e38)  # and one of them is dropped
    release = release_for("sampled momentum")
    vault = make_vault(X, y, release, module=Side(), noise=GivenBatch(ROWS))
    before, theta = points(vault)
    answer = ask("sampled momentum", vault, release)
    rows = [row for row in ROWS if row != 4]
    module, sums = Side(), []
    for row in rows:
        now, then = (
            (set_parameters(trainable_parameters(module), at), gradient_alone(module, cross_entropy, X[row], y[row]))[1]
            for at in (theta, before)
        )
        sums.append((1 - MOMENTUM) * clipped(now - then, DIFFERENCE) + MOMENTUM * clipped(now, CLIP))
    np.testing.assert_allclose(answer, sum(sums) / BATCH, rtol=3e-3, atol=1e-5)


@pytest.mark.parametrize("question", ["sampled gradient", "sampled momentum"])
def test_an_empty_batch_has_an_answer(question):
    release = release_for(question, sd=1.0)
    vault = make_vault(*some_examples(N), release, noise=GivenBatch([]))
    answer = ask(question, vault, release)
    assert np.all(np.isfinite(answer))
    assert np.any(answer != 0)


WILD = st.sampled_from([0.0, 1e30, -1e30, 3e38, 1e-30, 1e4])


@settings(max_examples=60, deadline=None)
@given(st.lists(WILD | st.floats(-3, 3, width=32), min_size=5, max_size=5), st.integers(0, 2))
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_no_example_moves_an_answer_by_more_than_the_sensitivity(question, adjacency, wild, label):
    """Both neighbours draw the example that differs; with add-remove, one of them does not have it."""
    X, y = some_examples(N)
    other, labels = X.copy(), y.copy()
    other[4], labels[4] = wild, label
    release = release_for(question, adjacency=adjacency)
    with_it = make_vault(other, labels, release, adjacency=adjacency, noise=GivenBatch(ROWS))
    if adjacency == "replace-one":
        without = make_vault(X, y, release, adjacency=adjacency, noise=GivenBatch(ROWS))
    else:
        rows = [row for row in ROWS if row != 4] if question != "gradient" else ROWS
        without = make_vault(X, y, release, adjacency=adjacency, noise=GivenBatch(rows))
        if question == "gradient":
            take = examples_of(without).take
            examples_of(without).take = lambda at, take=take: take(at[at != 4])
    moved = np.linalg.norm(ask(question, with_it, release) - ask(question, without, release))
    (answer,) = with_it.answers
    assert moved <= answer.sensitivity * (1 + 1e-6)


def test_the_stated_sensitivity_is_reached():
    """Two examples with opposite, large gradients: nothing is given away."""
    X, y = some_examples(N)
    release = release_for("sampled gradient")
    answers = []
    for label in (0, 1):
        labels = y.copy()
        labels[4] = label
        far = X.copy()
        far[4] = 100.0
        vault = make_vault(far, labels, release, noise=GivenBatch(ROWS))
        answers.append(vault.sampled_gradient(vault.problem.origin(), release, 1e-3))
    assert np.linalg.norm(answers[0] - answers[1]) > 0.7 * vault.answers[0].sensitivity


@pytest.mark.parametrize("wrong", [1.0, 0.8, 1.25])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_noise_has_the_stated_scale(question, adjacency, wrong):
    """Of about 9000 coordinates the sd is estimated with a relative error of sd .0075, so that 5 % off is rejected in
    truth with a chance below 1e-10, and 1.25 times too small or too large is accepted with less than that."""
    X, y = some_examples(N)
    module = perceptron(width=1000)
    quiet, noisy = release_for(question, 0.0, N, adjacency), release_for(question, 1.7, N, adjacency)
    truth, answer = (
        ask(question, make_vault(X, y, r, module=module, adjacency=adjacency, noise=GivenBatch(ROWS)), r)
        for r in (quiet, noisy)
    )
    clip = CLIP if question != "sampled momentum" else momentum_clip(CLIP, DIFFERENCE, MOMENTUM)
    stated = 1.7 * gradient_sensitivity(clip, N if question == "gradient" else BATCH, Adjacency(adjacency))
    assert (abs(np.std(answer - truth) / (wrong * stated) - 1) < 0.05) == (wrong == 1.0)


def test_batches_are_drawn_by_the_release():
    X, y = some_examples(200)
    release = SampledGradient(400, 0.0, 50, 200, "poisson", Adjacency.REPLACE_ONE)
    vault = make_vault(X, y, release)
    sizes, take = [], examples_of(vault).take
    examples_of(vault).take = lambda at: (sizes.append(len(at)), take(at))[1]
    for _ in range(400):
        vault.sampled_gradient(vault.problem.origin(), release, 1.0)
    assert abs(np.mean(sizes) - 50) < 5 * np.sqrt(200 * 0.25 * 0.75 / 400)
    assert 4 < np.std(sizes) < 8.5


def test_what_is_not_planned_or_used_up_is_not_answered_and_touches_nothing():
    X, y = some_examples(N)
    release = sampled(SampledGradient, times=1)
    vault = make_vault(X, y, release)
    examples_of(vault).take = None
    with pytest.raises(RuntimeError, match="TypeError"):  # it was charged before the examples were touched
        vault.sampled_gradient(vault.problem.origin(), release, 1.0)
    assert vault.charged == 1
    for question in QUESTIONS:
        with pytest.raises(BudgetExceeded):
            ask(question, vault, release)


@pytest.mark.parametrize("clip", [0.0, -1.0, 1e-20, np.nan, np.inf])
def test_clips_that_cannot_be_enforced_are_refused_and_cost_nothing(clip):
    release = sampled(SampledGradient, sd=1.0)
    vault = make_vault(*some_examples(N), release)
    with pytest.raises(ValueError, match="clip"):
        vault.sampled_gradient(vault.problem.origin(), release, clip)
    assert vault.charged == 0


def test_a_closed_vault_answers_nothing():
    release = sampled(SampledGradient)
    with make_vault(*some_examples(N), release) as vault:
        pass
    with pytest.raises(RuntimeError, match="closed"):
        vault.sampled_gradient(vault.problem.origin(), release, 1.0)


def test_lost_answers_are_zero_paid_for_and_ask_nobody():
    X, y = some_examples(N)
    release = sampled(SampledGradient, sd=1.0)
    earlier = make_vault(X, y, release)
    earlier.sampled_gradient(earlier.problem.origin(), release, CLIP)
    vault = make_vault(X, y, release, noise=NoiseSource(0, stream=2))
    vault.resume(earlier.answers, lost=1)
    take, examples_of(vault).take = examples_of(vault).take, None
    assert not vault.sampled_gradient(vault.problem.origin(), release, CLIP).any()
    examples_of(vault).take = take
    assert vault.sampled_gradient(vault.problem.origin(), release, CLIP).all()
    with pytest.raises(BudgetExceeded):
        vault.sampled_gradient(vault.problem.origin(), release, CLIP)
    assert vault.answers == earlier.answers * 3


def test_the_vault_leaves_gradients_of_parameters_alone():
    module = perceptron()
    release = sampled(SampledGradient)
    vault = make_vault(*some_examples(N), release, module=module)
    vault.sampled_gradient(vault.problem.origin(), release, CLIP)
    assert all(parameter.grad is None for parameter in module.parameters())
    np.testing.assert_allclose(flattened(trainable_parameters(module)), vault.problem.origin())
