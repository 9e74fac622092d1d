"""What a survey says in public before anybody answers: its task.

It is JSON that a person's device reads from a server it has no reason to trust. So nothing in it is believed that can
be computed here: unknown fields, wrong types and absurd sizes are refused, and the privacy it states must be what the
release costs by our own books.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from thresher.algorithms import LDPIHT, LOCAL
from thresher.local.json_fields import (
    Reader,
    any_number,
    canonical,
    flag,
    list_of,
    name_of,
    number,
    one_of,
    optional,
    parse_json,
    short,
    whole,
)
from thresher.privacy.bounds import LARGEST, SMALLEST, Bounds
from thresher.privacy.plan import Plan
from thresher.privacy.releases import (
    ClassReport,
    GaussianReport,
    HypercubeReport,
    LaplaceReport,
    PiecewiseReport,
    Release,
    SphereReport,
    release_from_dict,
)
from thresher.privacy.trust import TRUST, Trust
from thresher.vaults.losses import LOSSES, MEASUREMENTS, is_own, loss_named
from thresher.vaults.people import Unrandomised, label_randomiser, vector_randomiser
from thresher.vaults.problem import LinearProblem, linear_problem
from thresher.vaults.randomisers import Classes, Gaussian, Hypercube, Laplace, Piecewise, Sphere

if TYPE_CHECKING:
    from thresher.models.options import Labels

__all__ = ["MOST_FEATURES", "MOST_ROUNDS", "SurveyTask"]


TASK_FORMAT = "thresher-task-1"
MOST_PEOPLE = 2**32 - 1  # the number of a row travels as 32 bits
MOST_FEATURES = 10**6
MOST_ROUNDS = 10**5
MOST_CLASSES = 2**16
MOST_EPSILON, MOST_DELTA = 20.0, 0.01  # a report that costs more hides next to nothing
MOST_SIZE = 1e13  # of a report over the value in it: beyond, coins of 53 bits no longer have the right chances
SAME = 1e-9  # relative: what is stated was computed on another machine

REPORTS: Mapping[str, type[Release]] = {
    kind.__name__: kind
    for kind in (SphereReport, HypercubeReport, LaplaceReport, PiecewiseReport, GaussianReport, ClassReport)
}
QUESTIONS: Mapping[Trust, str] = {"local": "local gradient", "labels": "local labels"}


Label = str | float | bool

Randomiser = Sphere | Hypercube | Laplace | Piecewise | Gaussian | Classes


@dataclass(frozen=True)
class SurveyTask:
    """The public statement of a survey: all that a person needs in order to decide, and to answer.

    There is no inconsistent one, whether it comes from a plan or from JSON: the release is of a kind that is priced
    here, it answers the question of the trust model in the problem's dimension, and ``epsilon`` and ``delta`` are what
    it costs. They are what a person must look at: a task that states an epsilon of 15 honestly is still a bad deal.

    Parameters
    ----------
    survey : str
        Its name, another for each survey, or reports to an earlier one of the same kind would count again.
    algorithm : str
        What makes the model of the reports.
    trust : "local" or "labels"
        Whether records are private, or labels alone.
    people : int
        How many are expected; how many come is another matter.
    features, sparsity : int
        How many numbers a record has, and how many coefficients the model.
    loss, measurement : str
        What is fitted, by name.
    feature_bound, row_bound, target_bound : float or sequence or None
        To what a record is clipped.
    intercept : bool
        Whether the model has a constant.
    classes : sequence or None
        The labels of a classification, in the order they are numbered.
    epsilon, delta : float
        What a report costs.
    release : Release
        The channel that a report goes through.
    rounds : int
        How many questions are asked; a person answers one of them.
    clip : float or None
        Residuals are clipped to [-clip, clip]; None where labels are reported alone.

    Examples
    --------
    >>> from thresher import LocalSparseRegressor
    >>> from thresher.local import Server, SurveyTask
    >>> server = Server(LocalSparseRegressor(1, 4.0, feature_bound=1.0, target_bound=2.0), people=100, features=2)
    >>> task = SurveyTask.from_json(server.task.to_json())
    >>> task.describe()[:43]
    'You are asked for one report, ever, in the '
    """

    survey: str  # a name of its own for each, or reports to an earlier survey of the same kind would count again
    algorithm: str
    trust: Trust
    people: int  # how many are expected; how many come is another matter
    features: int
    sparsity: int
    loss: str
    measurement: str
    feature_bound: float | tuple[float, ...] | None
    row_bound: float | None
    target_bound: tuple[float, float] | None
    intercept: bool
    classes: tuple[Label, ...] | None  # the labels of a classification, in the order they are numbered
    epsilon: float
    delta: float
    release: Release
    rounds: int
    clip: float | None  # residuals are clipped to [-clip, clip]; None where only labels are reported

    def __post_init__(self) -> None:
        for name, read in _TASK_FIELDS.items():
            object.__setattr__(self, name, read(name, getattr(self, name)))
        _check_consistent(self)
        _check_price(self)

    @classmethod
    def from_plan(cls, plan: Plan, survey: str, classes: Labels = None) -> Self:
        """The task of a plan of the local model; ``classes`` are the labels of a classification, as numbered."""
        problem = linear_problem(plan)
        bounds = problem.bounds
        if not is_own(problem.loss):
            raise ValueError(
                f"loss={problem.loss.name!r} is a class, which cannot be sent to people; use one of "
                f"{', '.join(map(repr, LOSSES))}"
            )
        if problem.loss.measurement not in MEASUREMENTS:
            raise ValueError(
                "measurement=(f, derivative of f) is a pair of functions, which cannot be sent to people; use one that "
                f"has a name: {', '.join(map(repr, MEASUREMENTS))}"
            )
        if not plan.budget.private:
            raise ValueError("epsilon=inf: people's reports would be their records; give a finite epsilon")
        if plan.calibration != "proved":
            raise ValueError(f"calibration={plan.calibration!r} is for reproduction only; a survey takes 'proved'")
        (release,) = plan.releases
        cost = release.cost()
        delta = 0.0 if math.isfinite(cost.pure) else plan.budget.delta
        return cls(
            survey=survey, algorithm=plan.algorithm, trust=plan.trust, people=problem.n, features=problem.d,
            sparsity=problem.sparsity, loss=problem.loss.name, measurement=problem.loss.measurement,
            feature_bound=bounds.feature, row_bound=bounds.row, target_bound=bounds.target, intercept=problem.intercept,
            classes=None if classes is None else np.asarray(classes).tolist(),
            epsilon=cost.epsilon(delta)[0], delta=delta, release=release, rounds=release.times,
            clip=plan.settings.get("clip"),
        )  # fmt: skip

    @cached_property
    def problem(self) -> LinearProblem:
        """The public facts, as vaults and devices use them."""
        return LinearProblem(
            n=self.people,
            d=self.features,
            sparsity=self.sparsity,
            loss=loss_named(self.loss, self.measurement),
            bounds=Bounds(self.feature_bound, self.row_bound, self.target_bound),
            intercept=self.intercept,
            outputs=len(self.classes) if self.classes and len(self.classes) > 2 else 1,
        )

    @cached_property
    def randomiser(self) -> Randomiser:
        """The channel that a report goes through."""
        found = (vector_randomiser if self.trust == "local" else label_randomiser)(self.release)
        assert not isinstance(found, Unrandomised)  # noqa: S101  (no release of REPORTS is exact)
        return found

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the JSON: questions and reports name their task by it."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def to_json(self) -> str:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return canonical({**values, "format": TASK_FORMAT, "release": self.release.to_dict()})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The task that ``text`` states, or a ValueError that names the field which is wrong."""
        return cls(**parse_json(text, TASK_FORMAT, _TASK_FIELDS))

    def describe(self) -> str:
        """What will be sent, and what that costs, in one paragraph."""
        chance = f", but for a chance of delta = {self.delta:.3g}" if self.delta > 0 else ""
        return (
            f"You are asked for one report, ever, in the survey {self.survey!r} of about {self.people} people. It fits "
            f"a model with at most {self.sparsity} of {self.features} coefficients ({self.algorithm}). "
            f"{_words_for_clipping(self)} What leaves your device is {_words_for_report(self)}. Privacy: "
            f"epsilon = {self.epsilon:.4g}, so that nothing "
            f"you could send is more than e^epsilon = {math.exp(self.epsilon):.3g} times as likely as it would be if "
            f"you were anybody else{chance}. Protected is {TRUST[self.trust]['protected']}. You must trust "
            f"{TRUST[self.trust]['must be trusted']}."
        )


# -- words --------------------------------------------------------------------------------------------------------


def _words_for_clipping(task: SurveyTask) -> str:
    within = (
        "" if task.target_bound is None else f" to the range from {task.target_bound[0]:g} to {task.target_bound[1]:g}"
    )
    if task.trust == "local":
        return f"Your {task.features} numbers are clipped to public bounds{within and f', your target{within}'}."
    return f"Your label is clipped{within}." if within else f"Your label is one of {len(task.classes or ())} classes."


def _words_for_report(task: SurveyTask) -> str:
    release = task.release
    if isinstance(release, SphereReport):
        return f"a random direction in {release.dimension} dimensions that only leans towards your part of the gradient"
    if isinstance(release, HypercubeReport):
        return (
            f"the signs of {release.sampled} of {release.dimension} entries of your part of the gradient, made random"
        )
    if isinstance(release, ClassReport):
        return "the number of your row, which is public, and a random class that is only more often yours than another"
    return f"the number of your row, which is public, and your label with {release.noise} noise"


# -- consistency --------------------------------------------------------------------------------------------------


def _check_consistent(task: SurveyTask) -> None:
    """The fields against each other."""
    problem, release = task.problem, task.release
    if (task.classes is not None) != problem.loss.classifies:
        raise ValueError(f"classes must list the labels for loss={task.loss!r}, and be null for 'squared' alone")
    if task.classes is not None and task.target_bound is not None:
        raise ValueError(f"target_bound={task.target_bound!r} must be null where classes are listed")
    trust: Trust = "local" if task.algorithm == LDPIHT.name else "labels"
    if task.trust != trust:
        raise ValueError(f"trust={task.trust!r} must be {trust!r} for algorithm={task.algorithm!r}")
    if release.question.name != QUESTIONS[trust]:
        raise ValueError(f"release is of a {release.question}, the task asks for {QUESTIONS[trust]}")
    if release.times != task.rounds or (trust == "labels" and task.rounds > 1):
        raise ValueError(f"rounds={task.rounds} must be the release's times={release.times}, and 1 for labels")
    if (task.clip is None) != (trust == "labels"):
        raise ValueError(f"clip={task.clip!r} must be a number for trust='local', and null for trust='labels'")
    if trust == "local" and (problem.outputs > 1 or getattr(release, "dimension", 0) != problem.dimension):
        raise ValueError(f"release must have one gradient of the problem's dimension, {problem.dimension}")
    if trust == "labels" and getattr(release, "classes", None) != (task.classes and len(task.classes)):
        raise ValueError(f"release must report {'a class of those listed' if task.classes else 'a number'}")


def _check_price(task: SurveyTask) -> None:
    """The release by our own books, whatever is stated."""
    try:
        size = float(task.randomiser.size)
    except ArithmeticError:
        size = math.inf
    except ValueError as error:
        raise ValueError(f"release: {error}") from None
    if not size <= MOST_SIZE:
        raise ValueError(f"release would magnify what is reported {size:.3g} times, above {MOST_SIZE:g}: it is useless")
    cost = task.release.cost()
    if math.isfinite(cost.pure) and task.delta > 0:
        raise ValueError(f"delta={task.delta!r} must be 0: the release is pure")
    epsilon, _ = cost.epsilon(task.delta)
    if not math.isclose(task.epsilon, epsilon, rel_tol=SAME):  # which is false for a price of infinity
        raise ValueError(f"epsilon={task.epsilon!r} is stated, but the release costs {epsilon:.6g} at {task.delta=:g}")


# -- fields -------------------------------------------------------------------------------------------------------


def _feature_bound(name: str, value: object) -> float | tuple[float, ...]:
    several = isinstance(value, list | tuple)
    return list_of(any_number, 1, MOST_FEATURES)(name, value) if several else any_number(name, value)


def _labels(name: str, value: object) -> tuple[Label, ...]:
    labels = list_of(_label, 2, MOST_CLASSES)(name, value)
    if len(set(labels)) < len(labels):
        raise ValueError(f"{name}={short(value)} lists a label twice")
    return labels


def _label(name: str, value: object) -> Label:
    if isinstance(value, str | bool):
        return value
    given = any_number(name, value)
    return int(given) if given.is_integer() else given


def _release(name: str, value: object) -> Release:
    """A release of a kind that people report, whose fields have the types they are declared with."""
    given = value.to_dict() if isinstance(value, Release) else value
    kind = given.get("kind") if isinstance(given, Mapping) else None
    if not isinstance(given, Mapping) or not isinstance(kind, str) or kind not in REPORTS:
        raise ValueError(f"{name}={short(given)} must be of a kind that people report: {', '.join(REPORTS)}")
    declared = {field.name: _NUMBERS[str(field.type)] for field in fields(REPORTS[kind])}
    if given.keys() != {"kind", *declared}:
        raise ValueError(f"{name}: fields {short(sorted(given.keys() ^ {'kind', *declared}))} are missing or unknown")
    clean = {field: read(f"{name}.{field}", given[field]) for field, read in declared.items()}
    try:
        return release_from_dict({"kind": kind, **clean})
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


_NUMBERS: Mapping[str, Reader[object]] = {"int": whole(1, 2**32), "float": number(0.0, 1e300)}

_TASK_FIELDS: Mapping[str, Reader[object]] = {
    "survey": name_of(64),
    "algorithm": one_of(LOCAL),
    "trust": one_of(QUESTIONS),
    "people": whole(1, MOST_PEOPLE),
    "features": whole(1, MOST_FEATURES),
    "sparsity": whole(1, MOST_FEATURES),
    "loss": one_of(LOSSES),
    "measurement": one_of(MEASUREMENTS),
    "feature_bound": optional(_feature_bound),
    "row_bound": optional(any_number),
    "target_bound": optional(list_of(any_number, 2, 2)),
    "intercept": flag,
    "classes": optional(_labels),
    "epsilon": number(1e-6, MOST_EPSILON),
    "delta": number(0.0, MOST_DELTA),
    "release": _release,
    "rounds": whole(1, MOST_ROUNDS),
    "clip": optional(number(SMALLEST, LARGEST)),
}
