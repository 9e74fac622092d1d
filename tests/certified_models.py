"""One small fitted model of every kind that carries a certificate."""

from __future__ import annotations

import warnings
from functools import lru_cache, partial

import numpy as np
from sklearn.base import clone

import surveys
from thresher import DenseClassifier, DenseRegressor, PrivateSearchCV, SparseClassifier, SparseRegressor
from thresher.algorithms import (
    DPAGD,
    DPIGHT,
    DPSGD,
    DPSLKT,
    DPSRM,
    FrankWolfe,
    ObjectivePerturbation,
    OutputPerturbation,
    TwoStage,
)
from thresher.federated import FederatedDenseClassifier, FederatedSparseClassifier, FederatedSparseRegressor
from thresher.models.scaler import PrivateScaler

N, D, S = 240, 6, 3
FEW = {"batch": 30, "passes": 0.5}
PLAIN = {"epsilon": 1.0, "delta": 1e-6, "hardened": False}  # unless a fit says otherwise


@lru_cache
def rows(kind="numbers"):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N, D))
    margin = X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=N)
    if kind == "numbers":
        return X, margin
    return X, (margin > 0).astype(int) if kind == "two classes" else np.digitize(margin, [-0.4, 0.4])


PEOPLE = np.arange(N) // 2


def numbers(algorithm, door=SparseRegressor, groups=None, **facts):
    sparsity = {"sparsity": S} if door is SparseRegressor else {}
    known = {**PLAIN, "feature_bound": 1.0, "target_bound": 2.0, **sparsity}
    return _fit(door(algorithm=algorithm, **{**known, **facts}), rows(), groups)


def classes(algorithm, door=SparseClassifier, kind="two classes", groups=None, **facts):
    sparsity = {"sparsity": S} if door is SparseClassifier else {}
    labels = [0, 1] if kind == "two classes" else [0, 1, 2]
    known = {**PLAIN, "feature_bound": 1.0, "classes": labels, **sparsity}
    return _fit(door(algorithm=algorithm, **{**known, **facts}), rows(kind), groups)


def _fit(model, table, groups):
    return model.fit(*table) if groups is None else model.fit(*table, groups=groups)


def parties(kind):
    X, y = rows(kind)
    return [(X[a:b], y[a:b]) for a, b in ((0, 60), (60, 140), (140, N))]


def federated(door, algorithm, **facts):
    kind, known = "two classes", {"classes": [0, 1]}
    if door is FederatedSparseRegressor:
        kind, known = "numbers", {"target_bound": 2.0}
    known |= {"sparsity": S} if door in (FederatedSparseRegressor, FederatedSparseClassifier) else {}
    known |= {"epsilon": 1.0, "delta": 1e-6, "feature_bound": 1.0, "algorithm": algorithm}
    return door(**{**known, **facts}).fit(parties(kind))


def local(name):
    """People simulated in one process."""
    return clone(surveys.ESTIMATORS[name]).fit(*surveys.records(name))


def scaler(**facts):
    return PrivateScaler(**{**PLAIN, "feature_bound": 4.0, **facts}).fit(rows()[0])


def search(hardened=False):
    each = SparseRegressor(S, feature_bound=1.0, target_bound=2.0, algorithm="dp-ight", hardened=hardened)
    return PrivateSearchCV(each, {"sparsity": [2, 3]}, epsilon=2.0, delta=1e-6, trials=2).fit(*rows())


def trained(**facts):
    """A small network."""
    from networks import perceptron, some_examples, torch
    from thresher import Budget
    from thresher.torch import PrivateTrainer

    algorithm = DPSGD(batch=20, passes=1.0)
    entropy = torch.nn.functional.cross_entropy
    return PrivateTrainer(perceptron(), entropy, algorithm, Budget(2.0, 1e-5), **facts).fit(*some_examples(100))


FITS = {
    "pursuit": lambda: numbers("pursuit"),
    "pursuit of classes": lambda: classes("pursuit"),
    "pursuit of three classes": lambda: classes("pursuit", kind="three classes", epsilon=4.0),
    "pursuit, hardened": lambda: numbers("pursuit", hardened=True),
    "pursuit of people": lambda: numbers("pursuit", groups=PEOPLE),
    "pursuit, one stage": lambda: numbers("pursuit", epsilon=8.0, row_bound=2.0, fit_intercept=False),
    "pursuit, seeded": lambda: numbers("pursuit", random_state=0),
    "dp-ight": lambda: numbers("dp-ight"),
    "dp-ight, hardened": lambda: numbers("dp-ight", hardened=True),
    "dp-ight, add-remove": lambda: numbers("dp-ight", adjacency="add-remove", n_public=N),
    "dp-ight, add-remove, counted": lambda: numbers("dp-ight", adjacency="add-remove"),
    "dp-ight of three classes": lambda: classes("dp-ight", kind="three classes"),
    "dp-ight, printed": lambda: numbers(DPIGHT(calibration="printed", iterations=5)),
    "screened-ight": lambda: numbers("screened-ight"),
    "screened-ight of three classes": lambda: classes("screened-ight", kind="three classes"),
    "peeling": lambda: numbers("peeling"),
    "peeling of three classes": lambda: classes("peeling", kind="three classes"),
    "two-stage": lambda: numbers("two-stage"),
    "two-stage by votes": lambda: classes(TwoStage(stage_one="votes")),
    "output-perturbation": lambda: numbers("output-perturbation", hardened=True),
    "output-perturbation, pure": lambda: numbers(OutputPerturbation(noise="l2-laplace"), delta=0.0),
    "objective-perturbation": lambda: numbers(ObjectivePerturbation(), sparsity=D),
    "dpsl-kt": lambda: numbers("dpsl-kt"),
    "dpsl-kt, convex": lambda: numbers(DPSLKT(teacher="convex")),
    "dpsl-kt, printed": lambda: numbers(DPSLKT(calibration="printed", iterations=5)),
    "frank-wolfe": lambda: numbers("frank-wolfe"),
    "frank-wolfe, printed": lambda: numbers(FrankWolfe(calibration="printed", iterations=5)),
    "noisy-frank-wolfe": lambda: classes("noisy-frank-wolfe"),
    "ight": lambda: numbers("ight", epsilon=float("inf")),
    "dp-sgd": lambda: numbers(DPSGD(**FEW), DenseRegressor),
    "dp-sgd, hardened": lambda: numbers(DPSGD(**FEW), DenseRegressor, hardened=True),
    "dp-sgd, fixed": lambda: numbers(DPSGD(**FEW, sampling="fixed"), DenseRegressor),
    "dp-sgd of three classes": lambda: classes(DPSGD(**FEW), DenseClassifier, "three classes"),
    "dp-sgd of people": lambda: numbers(DPSGD(**FEW), DenseRegressor, groups=PEOPLE),
    "dp-srm": lambda: numbers(DPSRM(**FEW, first_batch=20), DenseRegressor),
    "dp-adam": lambda: numbers("dp-adam", DenseRegressor, penalty=0.1),
    "dp-gd": lambda: classes("dp-gd", DenseClassifier),
    "dp-lssgd": lambda: numbers("dp-lssgd", DenseRegressor),
    "dp-lsadam": lambda: numbers("dp-lsadam", DenseRegressor),
    "rrpsgd": lambda: numbers("rrpsgd", DenseRegressor),
    "sgd": lambda: numbers("sgd", DenseRegressor, epsilon=float("inf")),
    "storm": lambda: numbers("storm", DenseRegressor, epsilon=float("inf")),
    "dp-agd": lambda: numbers(DPAGD(splits=5), DenseRegressor),
    "federated dp-ight": lambda: federated(FederatedSparseRegressor, "dp-ight"),
    "federated classes, skellam": lambda: federated(FederatedSparseClassifier, "dp-ight", aggregation="skellam"),
    "federated minimisers": lambda: federated(FederatedDenseClassifier, "mpc-out-p"),
    "federated pathak": lambda: federated(FederatedDenseClassifier, "pathak"),
    "federated, own gradients": lambda: federated(FederatedDenseClassifier, "local-grad-p"),
    "federated, own minimisers": lambda: federated(FederatedDenseClassifier, "local-out-p"),
    "federated, own objectives": lambda: federated(FederatedDenseClassifier, "local-obj-p"),
    "federated, rajkumar-agarwal": lambda: federated(FederatedDenseClassifier, "rajkumar-agarwal"),
    "scaler": scaler,
    "scaler, hardened": lambda: scaler(hardened=True),
    "search": search,
    "search, hardened": lambda: search(hardened=True),
    "network": trained,
}
FITS |= {f"local, {name}": partial(local, name) for name in surveys.ESTIMATORS}
FITS |= {
    f"survey, {name}": lambda name=name: surveys.held(surveys.server_of(name), name).model()
    for name in ("priv-unit", "sampled-signs", "laplace labels", "three class labels")
}


@lru_cache
def fitted(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FITS[name]()
