"""The game of an audit: a coin chooses one of two neighbouring data sets, the attacker guesses which from the outcome.

Played many times, with the rule for guessing fixed before the runs that are counted: from algebra, or on runs that are
not counted. ``thresher.audit.bounds`` turns the counts into a lower bound on epsilon.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from thresher.algorithms import DENSE, LOCAL, REGISTRY, Algorithm, LocalAlgorithm, resolve, resolve_dense, resolve_local
from thresher.audit.bounds import epsilon_lower, gaussian_epsilon_lower
from thresher.audit.cases import Claim, Claimed, Estimator, Target
from thresher.audit.guessing import Event, best_event, learnt_scores
from thresher.audit.pairs import Pair
from thresher.audit.parallel import fresh_clone, run_in_parallel
from thresher.audit.reopening import opener
from thresher.audit.witness import vault_of, witness_of
from thresher.privacy.arrays import Floats, Integers, Matrix
from thresher.privacy.budget import Adjacency, Budget, is_whole
from thresher.privacy.plan import Plan
from thresher.privacy.warnings import ThresherWarning
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource
from thresher.vaults.vault import Vault

__all__ = ["AuditResult", "Suspect", "audit", "fit_of", "name_of", "plan_of", "suspect_of"]

Play = Callable[..., tuple[Integers, list[Any]]]
"""Some runs: their coins, and what was seen of each."""

LEARNING = 0.25  # of the runs: where the rule for guessing is learnt; the others are counted
CHUNK = 250  # runs done in one go; fixed, so that the number of processes changes nothing
DIGITS = 9  # of a privacy loss, behind the point: what is smaller is rounding, in which floating-point noise does leak
GAUSSIAN = "if the release is Gaussian: one mu describes the whole trade-off between the two data sets"


@dataclass(frozen=True)
class Suspect:
    """An algorithm over a vault of another class, or with noise from elsewhere: a copy to be tested.

    ``vault`` is by default the one that the algorithm's plan trusts; ``noise`` makes a noise source from a seed, or
    from None.

    Parameters
    ----------
    algorithm : Algorithm
        What is run.
    vault : class, optional
        A vault to run it over, perhaps a broken one. None: that of the algorithm's plan.
    noise : callable
        Makes a noise source from a seed, or from None.

    Examples
    --------
    >>> from thresher.algorithms import DPIGHT
    >>> from thresher.audit import Suspect
    >>> Suspect(DPIGHT(iterations=1)).vault is None
    True
    """

    algorithm: Algorithm | LocalAlgorithm
    vault: type[Vault] | None = None
    noise: Callable[[int | None], NoiseSource] = NoiseSource

    def witness(self, plan: Plan) -> Any:
        """The vault with an auditor's ear."""
        return witness_of(self.vault or vault_of(plan))


@dataclass(frozen=True)
class AuditResult:
    """What an audit found: with the stated confidence, epsilon at the claimed delta is above ``epsilon_lower``.

    Parameters
    ----------
    target, pair : str
        What was attacked, and where.
    claimed_epsilon, delta : float
        What was claimed.
    epsilon_lower : float
        What epsilon is above, with ``confidence``.
    mu_lower : float or None
        The same for mu of Gaussian DP, if ``assumption`` holds.
    confidence : float
        Of the bound.
    event : Event
        The rule for guessing.
    right, wrong : int
        Guesses, in the runs that are counted.
    counted, runs : int
        How many runs are counted, of all that were played.
    assumption : str or None
        What the bound rests on, beside counting.
    seconds : float
        How long it took.

    Examples
    --------
    >>> from thresher.audit import audit, pairs
    >>> result = audit("output-perturbation", pairs.mirrored_row(n=20), claimed=(1.0, 1e-3), runs=400)
    >>> result.counted, result.to_dict()["violated"] == result.violated
    (400, True)
    """

    target: str
    pair: str
    claimed_epsilon: float
    delta: float
    epsilon_lower: float
    mu_lower: float | None
    confidence: float
    event: Event
    right: int
    wrong: int
    counted: int
    runs: int
    assumption: str | None
    seconds: float

    @property
    def violated(self) -> bool:
        """Whether the claim is disproved."""
        return self.epsilon_lower > self.claimed_epsilon

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, ready for JSON."""
        rule = {name: value if math.isfinite(value) else str(value) for name, value in asdict(self.event).items()}
        return {**asdict(self), "event": rule, "violated": self.violated}

    def __str__(self) -> str:
        claim = f"({self.claimed_epsilon:g}, {self.delta:g})" if self.delta else f"{self.claimed_epsilon:g}"
        verdict = "VIOLATED" if self.violated else "not disproved"
        return (
            f"{self.target} on {self.pair}: claimed {claim}, epsilon is above {self.epsilon_lower:.3f} "
            f"with confidence {self.confidence:g}: {verdict} ({self.right} of {self.right + self.wrong} guesses right)"
        )


def audit(
    target: Target,
    pair: Pair,
    *,
    claimed: Claimed,
    runs: int = 10_000,
    confidence: float = 0.99,
    gaussian: bool | None = None,
    random_state: int | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    name: str | None = None,
) -> AuditResult:
    """Try to prove false that ``target`` is differentially private as ``claimed``.

    Parameters
    ----------
    target : algorithm, estimator, or function
        An algorithm (its name, or an instance from ``thresher.algorithms``) is planned for ``pair.problem`` and the
        claimed budget, and attacked with all its answers in view, in the local model with every single report: the
        score is the privacy loss itself. An estimator is cloned, seeded through its ``random_state`` and fitted; what
        is seen is ``coef_`` and ``intercept_``. A function is called as ``target(X, y, seed)`` and may return any
        number or array of a fixed size.
    pair : Pair
        Neighbouring data sets; see ``thresher.audit.pairs``.
    claimed : Budget, (epsilon, delta) or epsilon
        What is to be disproved. A bare number is a claim of pure epsilon-DP.
    runs : int
        How often the game is played. Where the rule for guessing has to be learnt, a quarter of the runs goes there and
        is not counted.
    confidence : float
        A sound mechanism is flagged with at most the chance that is left of 1.
    gaussian : bool
        Turn the counts into mu of Gaussian DP, which is far sharper at a small delta, and state the assumption.
        Default: for algorithms whose releases are all Gaussian.
    random_state : int
        Makes the audit repeatable, whatever ``n_jobs`` is.
    n_jobs : int
        Processes, as in scikit-learn; -1 takes all cores.
    verbose : int
        1 shows a progress bar on a terminal.
    name : str
        How the result calls the target.

    Returns
    -------
    AuditResult

    Examples
    --------
    A mechanism without noise, which claims to be private:

    >>> from thresher.audit import audit, pairs
    >>> result = audit(lambda X, y, seed: y.mean(), pairs.mirrored_row(n=20), claimed=1.0, runs=400, random_state=0)
    >>> result.violated
    True
    """
    claim = Claim.of(claimed)
    _check(pair, runs, confidence, claimed, gaussian)
    runs, confidence, started = int(runs), float(confidence), time.perf_counter()
    suspect = suspect_of(target, 1 if pair.problem is None else pair.problem.outputs)
    play: Play
    arguments: tuple[Any, ...]
    if suspect is not None:
        plan = plan_of(suspect, pair.stated_problem, claim, pair.adjacency)
        _check_neighbours(plan, pair)
        play, arguments = hear_run, (suspect, plan, pair)
        gaussian = claim.delta > 0 and math.isfinite(plan.cost.gaussian_mu) if gaussian is None else gaussian
    else:
        play, arguments = see_run, (fit_of(target), pair)
    coins, outcomes = play_games(play, arguments, runs, random_state, n_jobs, verbose, title := name or name_of(target))
    known = suspect is not None and gaussian  # the privacy loss of a Gaussian release: guess by its sign
    learning = 0 if known else int(LEARNING * runs)
    scores = _scores(pair, suspect is not None, coins, outcomes, learning)
    counted, event = runs - learning, Event(0.0, 0.0)
    if not known:
        event = best_event(coins[:learning], scores[:learning], claim, confidence, gaussian)
    right, wrong = event.counts(coins[learning:], scores[learning:])
    mu = None
    if gaussian:
        lower, mu = gaussian_epsilon_lower(right, counted, claim.delta, confidence)
    else:
        lower = float(epsilon_lower(right, wrong, counted, claim.delta * event.directions / 2, confidence))
    return AuditResult(
        target=title, pair=pair.name, claimed_epsilon=claim.epsilon, delta=claim.delta, epsilon_lower=lower,
        mu_lower=mu, confidence=confidence, event=event, right=right, wrong=wrong, counted=counted, runs=runs,
        assumption=GAUSSIAN if gaussian else None, seconds=time.perf_counter() - started,
    )  # fmt: skip


# -- playing ----------------------------------------------------------------------------------------------------


def play_games(
    play: Play, arguments: tuple[Any, ...], runs: int, random_state: int | None,
    n_jobs: int | None, verbose: int, title: str,
) -> tuple[Integers, list[Any]]:  # fmt: skip
    sizes = [min(CHUNK, runs - start) for start in range(0, runs, CHUNK)]
    seeds: list[int | None] = [None] * len(sizes)
    if random_state is not None:
        seeds = [int(seed) for seed in NoiseSource(random_state).uniform_integers(2**32, len(sizes))]
    tasks = [(*arguments, size, seed) for size, seed in zip(sizes, seeds, strict=True)]
    parts = run_in_parallel(play, tasks, title=f"audit {title}", n_jobs=n_jobs, verbose=verbose)
    return np.concatenate([coins for coins, _ in parts]), [outcome for _, part in parts for outcome in part]


def hear_run(suspect: Suspect, plan: Plan, pair: Pair, runs: int, seed: int | None) -> tuple[Integers, list[float]]:
    """Coins and, for each run, how much more likely the second data set makes everything that was answered."""
    witness, noise = suspect.witness(plan), suspect.noise(seed)
    first, second = (opener(witness, *rows, plan, noise) for rows in (pair.first, pair.second))
    coins = noise.uniform_integers(2, runs)
    scores = []
    for coin in coins:
        ours, theirs = (second, first) if coin else (first, second)
        with ours(None) as live:
            suspect.algorithm.run(live)
        with theirs(live.transcript) as other:
            suspect.algorithm.run(other)
        loss = live.log_likelihood - other.log_likelihood
        loss = loss if noise.hardened else round(loss, DIGITS)  # without it, the last bits are idealised
        scores.append(loss if coin else -loss)
    return coins, scores


def see_run(fit: Callable[..., Any], pair: Pair, runs: int, seed: int | None) -> tuple[Integers, list[Any]]:
    """Coins and, for each run, what the function returned, or the pair's score of it."""
    noise = NoiseSource(seed)
    coins = noise.uniform_integers(2, runs)
    seeds = noise.uniform_integers(2**31, runs)
    outcomes = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ThresherWarning)
        for coin, run_seed in zip(coins, seeds, strict=True):
            outcome = fit(*deepcopy(pair.second if coin else pair.first), int(run_seed))  # it may write into its rows
            outcomes.append(
                np.ravel(np.asarray(outcome, dtype=np.float64)) if pair.score is None else pair.score(outcome)
            )
    return coins, outcomes


@dataclass(frozen=True)
class _EstimatorFit:
    """An estimator as a function: what its model shows."""

    estimator: Estimator

    def __call__(self, X: Matrix, y: ArrayLike, seed: int) -> Floats:
        model = fresh_clone(self.estimator, seed)
        model.fit(X, y)
        return np.concatenate([np.ravel(model.coef_), np.ravel(model.intercept_)])


# -- guessing ---------------------------------------------------------------------------------------------------


def _scores(pair: Pair, heard: bool, coins: Integers, outcomes: list[Any], learning: int) -> Floats:
    if heard or pair.score is not None:
        return np.asarray(outcomes, dtype=np.float64)
    if len({outcome.size for outcome in outcomes}) > 1:
        raise ValueError("the function returned arrays of different sizes; return a fixed number of values")
    return learnt_scores(np.vstack(outcomes), coins[:learning])


# -- what is audited --------------------------------------------------------------------------------------------


def suspect_of(target: Target, outputs: int = 1) -> Suspect | None:
    """An algorithm, whatever form it was given in; None for estimators and functions."""
    suspect = target if isinstance(target, Suspect) else Suspect(target)
    algorithm = suspect.algorithm
    if isinstance(algorithm, type) or not (isinstance(algorithm, str) or hasattr(algorithm, "run")):
        return None
    if name_of(suspect) in LOCAL:
        return replace(suspect, algorithm=resolve_local(algorithm))
    if isinstance(algorithm, str) and algorithm in DENSE and algorithm not in REGISTRY:
        return replace(suspect, algorithm=resolve_dense(algorithm))
    return replace(suspect, algorithm=resolve(algorithm, outputs))


def plan_of(
    suspect: Suspect, problem: LinearProblem, claim: Claim, adjacency: Adjacency = Adjacency.REPLACE_ONE
) -> Plan:
    """The suspect's plan for what is claimed, with as little noise as a fit by itself has.

    A pure claim about noise that has no pure guarantee is planned with the least delta there is: counts will tell.
    """
    plan = suspect.algorithm.plan
    try:
        return plan(problem, Budget(claim.epsilon, claim.delta, adjacency)).with_least_noise()
    except ValueError:
        if claim.delta > 0:
            raise
        return plan(problem, Budget(claim.epsilon, np.finfo(float).tiny, adjacency)).with_least_noise()


def _check_neighbours(plan: Plan, pair: Pair) -> None:
    """Where features are public, they are no secret."""
    if plan.trust == "labels" and not pair.same_features:
        raise ValueError(f"pair {pair.name!r}: {plan.algorithm} takes features for public; replace a label alone")


def fit_of(target: Target) -> Callable[..., Any]:
    if not isinstance(target, type) and hasattr(target, "fit") and hasattr(target, "get_params"):
        return _EstimatorFit(target)
    if not isinstance(target, type) and callable(target):
        return target  # type: ignore[no-any-return]
    raise ValueError(
        f"target={target!r} must be an algorithm (an instance, or its name), an unfitted estimator, or a function of "
        "(X, y, seed)"
    )


def name_of(target: Target) -> str:
    if isinstance(target, Suspect):
        target = target.algorithm
    if isinstance(target, str):
        return target
    return str(getattr(target, "name", None) or getattr(target, "__name__", None) or type(target).__name__)


def _check(pair: Pair, runs: int, confidence: float, claimed: Claimed, gaussian: bool | None) -> None:
    if not isinstance(pair, Pair):
        raise ValueError(f"pair={pair!r} must be a Pair, for example one of thresher.audit.pairs")
    if not (is_whole(runs) and runs >= 100):
        raise ValueError(f"runs={runs!r} must be a whole number of at least 100")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence!r} must lie strictly between 0 and 1; 0.99 is usual")
    if isinstance(claimed, Budget) and claimed.adjacency != pair.adjacency:
        raise ValueError(
            f"claimed={claimed!r} speaks of other neighbours than the pair's, {pair.adjacency}; make them one"
        )
    if gaussian and Claim.of(claimed).delta == 0:
        raise ValueError("gaussian=True: no Gaussian release has a delta of 0; claim a pair (epsilon, delta)")
