"""One run instead of thousands: many canaries, each with a coin of its own (Steinke, Nasr and Jagielski 2023).

Beside the real rows stand canaries. The coin of each decides whether its target stands as it is or mirrored in the
target's range; for every canary the two data sets are replace-one neighbours. The attacker looks at the one run, ranks
the canaries by how much more it looks like one side of the coin, and guesses those at both ends of the ranking.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from thresher.audit.bounds import one_run_epsilon_lower
from thresher.audit.cases import Claim, Claimed, Target
from thresher.audit.game import AuditResult, Suspect, fit_of, name_of, plan_of, suspect_of
from thresher.audit.guessing import Event
from thresher.audit.transcript import RecordedAnswer
from thresher.privacy.arrays import Floats, Matrix, Values
from thresher.privacy.budget import Adjacency, Budget, is_whole
from thresher.privacy.plan import Plan
from thresher.privacy.progress import progress_bar
from thresher.privacy.warnings import ThresherWarning
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

__all__ = ["one_run", "random_canaries"]

GUESSED = 0.2  # of the canaries, by default: those at either end of the ranking


def one_run(
    target: Target,
    problem: LinearProblem,
    X: Matrix,
    y: Values,
    *,
    claimed: Claimed,
    canaries: tuple[Matrix, Values] | None = None,
    guesses: int | None = None,
    confidence: float = 0.99,
    random_state: int | None = None,
    verbose: int = 0,
) -> AuditResult:
    """Try to disprove a claim of replace-one differential privacy with a single run on real rows and canaries.

    Parameters
    ----------
    target : algorithm, estimator or function
        As for ``thresher.audit.audit``. Of an algorithm every noisy number is heard, in the local model every
        report; of the others only the model: coefficients and, last, the intercept.
    problem : LinearProblem
        Public facts; ``problem.n`` counts the real rows and the canaries.
    X, y : matrix, array
        The real rows, and their targets.
    claimed : Budget, (epsilon, delta) or epsilon
        What is to be disproved. A bare number is a claim of pure epsilon-DP.
    canaries : (X, y)
        Rows of the attacker's making; default: as many as ``problem.n`` leaves room for, by ``random_canaries``.
    guesses : int
        How many canaries the attacker guesses; default: a fifth of them. Fixed before the run.
    confidence : float
        A sound mechanism is flagged with at most the chance that is left of 1.
    random_state : int
        Makes the run, its coins and its canaries repeatable.
    verbose : int
        1 shows a progress bar on a terminal.

    Returns
    -------
    AuditResult

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.algorithms import DPIGHT
    >>> from thresher.audit import one_run
    >>> from thresher.privacy.bounds import Bounds
    >>> from thresher.vaults.losses import SQUARED
    >>> from thresher.vaults.problem import LinearProblem
    >>> X = np.sin(np.arange(2500.0)).reshape(50, 50)
    >>> problem = LinearProblem(100, 50, Bounds(feature=1.0, target=(-1.0, 1.0)), sparsity=5, loss=SQUARED)
    >>> result = one_run(DPIGHT(iterations=2), problem, X, X[:, 2], claimed=(1.0, 1e-3), random_state=0)
    >>> result.counted, result.runs, result.violated
    (50, 1, False)
    """
    claim, started = Claim.of(claimed), time.perf_counter()
    rows, targets = canaries or random_canaries(problem, max(problem.n - len(y), 0), random_state)
    guesses = _check(problem, y, targets, guesses, confidence, claimed)
    suspect = suspect_of(target)
    noise = (NoiseSource if suspect is None else suspect.noise)(random_state)
    coins = noise.uniform_integers(2, len(targets))
    mirrored = mirrored_targets(targets, problem)
    stacked = (
        sparse.vstack([sparse.csr_array(X), sparse.csr_array(rows)]) if sparse.issparse(X) else np.vstack([X, rows])
    )
    whole = (stacked, np.concatenate([np.asarray(y, dtype=float), np.where(coins == 1, targets, mirrored)]))
    if suspect is not None:
        plan = plan_of(suspect, problem, claim)
        if plan.trust in ("local", "labels"):
            scores = _scores_of_reports(suspect, plan, whole, (targets, mirrored), noise)
        else:
            scores = _scores_of_answers(suspect, plan, whole, (X, y), (rows, targets, mirrored), noise, verbose)
    else:
        scores = _scores_of_model(
            fit_of(target), whole, (rows, targets, mirrored), int(noise.uniform_integers(2**31, 1)[0])
        )
    order = np.argsort(scores, kind="stable")
    first, second = order[: guesses // 2], order[len(order) - (guesses - guesses // 2) :]
    right = int(np.sum(coins[first] == 0) + np.sum(coins[second] == 1))
    return AuditResult(
        target=name_of(target), pair=f"one run, {len(targets)} canaries", claimed_epsilon=claim.epsilon,
        delta=claim.delta, mu_lower=None, confidence=confidence, right=right, wrong=guesses - right,
        epsilon_lower=one_run_epsilon_lower(right, guesses, len(targets), claim.delta, confidence),
        event=Event(float(scores[first].max(initial=-np.inf)), float(scores[second].min())), counted=len(targets),
        runs=1, assumption=None, seconds=time.perf_counter() - started,
    )  # fmt: skip


def random_canaries(problem: LinearProblem, count: int, random_state: int | None = None) -> tuple[Floats, Floats]:
    """Rows at their bounds with random signs and targets at the top of the range: as loud as a row can be, and, where
    there are more columns than canaries, almost at right angles to each other.
    """
    # another generator than that of the coins: from the same one, equal seeds would make the signs know the coins
    signs = np.random.default_rng(random_state).choice([-1.0, 1.0], (count, problem.d))
    rows = signs * problem.bounds.entries(problem.d)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    top = 1.0 if problem.bounds.target is None else problem.bounds.target[1]
    return rows * np.minimum(1.0, problem.bounds.row_norm(problem.d) / norms), np.full(count, top)


def mirrored_targets(targets: Floats, problem: LinearProblem) -> Floats:
    """The targets at the other side of their range: the other class, or as far from the middle on the other side."""
    low, high = problem.bounds.target or (0.0, 1.0)
    return low + high - np.asarray(targets, dtype=float)


# -- scores -----------------------------------------------------------------------------------------------------


def _scores_of_answers(
    suspect: Suspect, plan: Plan, whole: tuple[Matrix, Floats], real: tuple[Matrix, Values],
    canaries: tuple[Matrix, Floats, Floats], noise: NoiseSource, verbose: int,
) -> Floats:  # fmt: skip
    """For each canary, sum_t <answer_t - value_t, own_t - mirrored_t> / scale_t^2 over the noisy numbers of the run.

    value_t is what the real rows alone would have answered, own_t and mirrored_t what the canary adds: the same
    questions put to a vault that holds nothing but that row, with the public n unchanged. For averages, which add up
    over rows, this is the log-likelihood ratio of the canary's coin, up to what the other canaries add.
    """
    witness = suspect.witness(plan)
    with witness(*whole, plan, noise) as live:
        suspect.algorithm.run(live)

    def values(X: Matrix, y: Values) -> list[Floats]:
        with witness(X, np.asarray(y, dtype=float), plan, noise, script=live.transcript) as vault:
            suspect.algorithm.run(vault)
        return [said.value for said in vault.transcript if said.value is not None]

    numbers: list[RecordedAnswer] = [said for said in live.transcript if said.value is not None]
    surprises = [(said.answer - v) / said.scale**2 for said, v in zip(numbers, values(*real), strict=True)]
    rows, targets, mirrored = canaries
    scores = np.empty(len(targets))
    with progress_bar("canaries", len(targets), enabled=verbose > 0) as advance:
        for i in range(len(targets)):
            own, other = (values(rows[[i]], side[[i]]) for side in (targets, mirrored))
            scores[i] = sum(float(s @ (a - b)) for s, a, b in zip(surprises, own, other, strict=True))
            advance()
    return scores


def _scores_of_reports(
    suspect: Suspect, plan: Plan, whole: tuple[Matrix, Floats], sides: tuple[Floats, Floats], noise: NoiseSource
) -> Floats:
    """For each canary, how much more likely its own target makes its report than the mirrored one.

    People report independently of each other, so the likelihoods of all canaries are had from one replay for each side.
    """
    witness, (X, y) = suspect.witness(plan), whole
    with witness(X, y, plan, noise) as live:
        suspect.algorithm.run(live)
    likelihoods, count = [], len(sides[0])
    for side in sides:
        with witness(X, np.concatenate([y[:-count], side]), plan, noise, script=live.transcript) as vault:
            suspect.algorithm.run(vault)
        likelihoods.append(vault.by_person[-count:])
    scores: Floats = likelihoods[0] - likelihoods[1]
    return scores


def _scores_of_model(
    fit: Callable[..., Any], whole: tuple[Matrix, Floats], canaries: tuple[Matrix, Floats, Floats], seed: int
) -> Floats:
    """How far the model's prediction for each canary leans towards its own target, away from the mirrored one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ThresherWarning)
        model = np.ravel(np.asarray(fit(*whole, seed), dtype=np.float64))
    rows, targets, mirrored = canaries
    d = rows.shape[1]
    if len(model) not in (d, d + 1):
        raise ValueError(f"the function returned {len(model)} values; return {d} coefficients and, last, an intercept")
    leaning: Floats = (rows @ model[:d]) * (targets - mirrored)
    return leaning


def _check(
    problem: LinearProblem, y: Values, targets: Values, guesses: int | None, confidence: float, claimed: Claimed
) -> int:
    count = len(targets)
    if isinstance(claimed, Budget) and claimed.adjacency is not Adjacency.REPLACE_ONE:
        raise ValueError(
            f"claimed={claimed!r}: the two sides of a canary's coin are replace-one neighbours; claim those"
        )
    if problem.outputs > 1:
        raise ValueError("problem: canaries are mirrored between two classes or ends; audit one class against the rest")
    if problem.n != len(y) + count:
        raise ValueError(f"problem.n={problem.n} must be the {len(y)} rows and the {count} canaries together")
    if count < 2:
        raise ValueError(f"canaries: {count} are too few; a thousand or more give a useful bound")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence!r} must lie strictly between 0 and 1; 0.99 is usual")
    guesses = max(2, int(GUESSED * count)) if guesses is None else guesses
    if not (is_whole(guesses) and 1 <= guesses <= count):
        raise ValueError(f"guesses={guesses!r} must be a whole number from 1 to the number of canaries, {count}")
    return int(guesses)
