"""One small survey of every kind: all algorithms, randomisers, label noises, bounds, losses and class counts."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from thresher import LocalSparseClassifier, LocalSparseRegressor
from thresher.algorithms import LDPIHT, LabelLDPIHT
from thresher.local import Client, Server
from thresher.local.estimators import features_are_public
from thresher.vaults.randomisers import VECTOR_RANDOMISERS, Hypercube, Piecewise, Sphere

PEOPLE, FEATURES = 60, 5
TARGETS = {"feature_bound": 1.0, "target_bound": 2.0}
NAMES = np.array(["blue", "green", "red"])


def _gradients(sparsity=2, epsilon=2.0, algorithm=None, **parameters):
    return LocalSparseRegressor(sparsity, epsilon, algorithm=algorithm or LDPIHT(iterations=3), **parameters)


ESTIMATORS = {
    **{
        name: _gradients(algorithm=LDPIHT(iterations=3, randomiser=name), **TARGETS)
        for name in VECTOR_RANDOMISERS
    },
    "row bound": _gradients(row_bound=2.0, target_bound=(-1.0, 2.0)),
    "column bounds": _gradients(feature_bound=(1.0, 0.5, 2.0, 1.0, 0.1), target_bound=2.0),
    "no intercept": _gradients(fit_intercept=False, **TARGETS),
    "logistic measurement": _gradients(measurement="logistic", feature_bound=1.0, target_bound=(0.0, 1.0)),
    "fixed step": _gradients(algorithm=LDPIHT(iterations=3, step=0.5, ball=1.0), **TARGETS),
    "two classes": LocalSparseClassifier(
        2, 2.0, algorithm=LDPIHT(iterations=3), feature_bound=1.0, classes=["blue", "red"]
    ),
    **{
        f"{noise} labels": LocalSparseRegressor(
            2, 2.0, algorithm=LabelLDPIHT(noise=noise), delta=1e-6 if noise == "gaussian" else 0.0, target_bound=2.0
        )
        for noise in ("piecewise", "laplace", "gaussian")
    },
    "lasso": LocalSparseRegressor(2, 2.0, algorithm="label-lasso", target_bound=(-1.0, 2.0)),
    "cube root labels": LocalSparseRegressor(
        2, 2.0, algorithm="label-ldp-iht", measurement="cube root", target_bound=2.0, fit_intercept=False
    ),
    "two class labels": LocalSparseClassifier(2, 2.0, algorithm="label-ldp-iht", classes=[-1, 1]),
    "three class labels": LocalSparseClassifier(2, 2.0, algorithm="label-ldp-iht", classes=NAMES),
}  # fmt: skip

LABELS = {name for name, estimator in ESTIMATORS.items() if features_are_public(estimator.algorithm)}


@lru_cache
def records(name, people=PEOPLE, seed=0):
    """Features and targets that a survey of this name may ask for."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (people, FEATURES))
    margin = 2 * X[:, 0] - X[:, 1]
    classes = getattr(ESTIMATORS[name], "classes", None)
    if classes is None:
        return X, margin + 0.1 * rng.standard_normal(people)
    levels = np.searchsorted([-0.5, 0.5] if len(classes) == 3 else [0.0], margin)
    return X, np.unique(classes)[levels]


def server_of(name, people=PEOPLE, seed=0):
    estimator = ESTIMATORS[name]
    if name in LABELS:
        return Server(estimator, X=records(name, people, seed)[0])
    return Server(estimator, people, FEATURES)


def client_of(task, name, person, people=PEOPLE, seed=0, **options):
    X, y = records(name, people, seed)
    if name in LABELS:
        return Client(task, None, y[person], row=person, **options)
    return Client(task, X[person], y[person], **options)


def held(server, name, noise=None, seed=0):
    """The server after everybody who was planned for has reported."""
    people = server.task.people
    for group in np.array_split(np.arange(people), server.task.rounds):
        question = server.question()
        for person in group:
            client = client_of(server.task, name, person, people, seed, _noise=noise)
            assert server.receive(client.answer(question))
        server.close_round()
    return server


def could_be_sent(task, units):
    """Whether the task's randomiser can report something that is rounded to these units."""
    randomiser = task.randomiser
    if isinstance(randomiser, Hypercube):
        return units.shape == (randomiser.dimension,) and np.abs(units).sum() == randomiser.sampled and units.max() <= 1
    if isinstance(randomiser, Sphere):
        return _beside_the_sphere(np.abs(units), 32767)
    if task.classes:
        return 0 <= units[0] < len(task.classes)
    most = randomiser.size if isinstance(randomiser, Piecewise) else 1 + 16 * randomiser.size
    return abs(units[0]) * max(1.0, randomiser.size) / 1024 <= most * (1 + 1e-12)


def _beside_the_sphere(sizes, radius):
    """Looks for a point of the sphere less than one step away in every coordinate, by bisection between corners."""
    near, far = np.maximum(sizes - 1.0, 0), sizes + 1.0
    low, high = 0.0, 1.0
    for _ in range(80):
        middle = (low + high) / 2
        shorter = np.linalg.norm(near + middle * (far - near)) < radius
        low, high = (middle, high) if shorter else (low, middle)
    point = near + low * (far - near)
    return math.isclose(np.linalg.norm(point), radius, rel_tol=1e-9) and np.all(np.abs(point - sizes) <= 1)
