"""Hashes of what seeded fits find: recorded before a change of the house, compared after it.

python tools/seeded_fits.py record FILE | compare FILE. A hash covers the bytes of coefficients and intercepts, and the
certificate but for versions.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse

import thresher
from thresher import (
    DenseClassifier,
    DenseRegressor,
    LocalSparseClassifier,
    LocalSparseRegressor,
    PrivateScaler,
    PrivateSearchCV,
    SparseClassifier,
    SparseRegressor,
)
from thresher import algorithms as known

N, D, S = 240, 12, 3
DENSE_NAMES = tuple(known.DENSE)
SPARSE_NAMES = (*known.REGISTRY, "auto")
NOT_PRIVATE = {"ight", "storm", "sgd", "lssgd"}


def table(kind: str) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N, D)) * (rng.random((N, D)) < 0.6)
    margin = 2 * X[:, 0] - 2 * X[:, 1] + 0.2 * rng.normal(size=N)
    if kind == "numbers":
        return X, margin
    return X, (margin > 0).astype(int) if kind == "two" else np.digitize(margin, [-0.6, 0.6])


FORMS: dict[str, Callable[[Any], Any]] = {
    "dense": np.asarray,
    "single": lambda X: X.astype(np.float32),
    "csr": sparse.csr_array,
    "csc single": lambda X: sparse.csc_array(X.astype(np.float32)),
}
KINDS = ("numbers", "two", "three")


def model(name: Any, kind: str, **facts: Any) -> Any:
    epsilon = math.inf if isinstance(name, str) and name in NOT_PRIVATE else 3.0
    shared = {"epsilon": epsilon, "delta": 1e-6, "feature_bound": 1.0, "algorithm": name, "random_state": 7, **facts}
    if kind == "numbers":
        shared["target_bound"] = 4.0
    else:
        shared["classes"] = [0, 1] if kind == "two" else [0, 1, 2]
    if isinstance(name, str) and name in DENSE_NAMES:
        return (DenseRegressor if kind == "numbers" else DenseClassifier)(**shared)
    return (SparseRegressor if kind == "numbers" else SparseClassifier)(S, **shared)


def cases() -> Iterator[tuple[str, Callable[[], Any]]]:
    for name in (*SPARSE_NAMES, *DENSE_NAMES):
        for kind in KINDS:
            for form in FORMS:
                yield f"{name} {kind} {form}", partial(fit_model, name, kind, form)
            changes: dict[str, dict[str, Any]] = {
                "plain noise": {"hardened": False},
                "add-remove": {"adjacency": "add-remove", "n_public": 250},
                "no intercept": {"fit_intercept": False},
            }
            for label, facts in changes.items():
                yield f"{name} {kind} {label}", partial(fit_model, name, kind, "dense", **facts)
            yield f"{name} {kind} people", partial(fit_model, name, kind, "dense", people=np.arange(N) // 2)
    for kind in KINDS:
        for row in ("single", "csr"):
            yield f"row bound {kind} {row}", partial(fit_model, "auto", kind, row, row_bound=1.0)
    for measurement in ("linear", "logistic", "probit", "cube root"):
        for name in ("ldp-iht", "label-ldp-iht", "label-lasso"):
            local = LocalSparseRegressor(
                S, 2.0, algorithm=name, measurement=measurement, feature_bound=1.0, target_bound=4.0, random_state=7
            )  # fmt: skip
            yield f"{name} numbers {measurement}", partial(fit, local, "numbers", "dense")
    for name, kind in (
        ("ldp-iht", "two"),
        ("label-ldp-iht", "two"),
        ("label-ldp-iht", "three"),
        ("label-lasso", "two"),
    ):
        labels = [0, 1] if kind == "two" else [0, 1, 2]
        local = LocalSparseClassifier(S, 2.0, algorithm=name, feature_bound=1.0, classes=labels, random_state=7)
        yield f"{name} {kind}", partial(fit, local, kind, "dense")
    yield from instances()
    yield from others()


def instances() -> Iterator[tuple[str, Callable[[], Any]]]:
    printed = {
        "dp-ight printed": known.DPIGHT(calibration="printed"),
        "dpsl-kt printed": known.DPSLKT(calibration="printed"),
        "frank-wolfe printed": known.FrankWolfe(calibration="printed"),
        "objective-perturbation": known.ObjectivePerturbation(),
        "rajkumar-agarwal": known.RajkumarAgarwal(),
    }
    for label, algorithm in printed.items():
        for kind in ("numbers", "two"):
            yield f"{label} {kind}", partial(fit_model, algorithm, kind, "dense")


def others() -> Iterator[tuple[str, Callable[[], Any]]]:
    from thresher.federated import FederatedSparseClassifier, FederatedSparseRegressor

    for centre in (True, False):
        scaler = PrivateScaler(2.0, 1e-6, feature_bound=4.0, centre=centre, random_state=7)
        yield f"scaler {centre}", partial(scaler.fit, table("numbers")[0])
    for name in ("dp-ight", "auto"):
        for kind in ("numbers", "two"):
            door = FederatedSparseRegressor if kind == "numbers" else FederatedSparseClassifier
            facts = {"target_bound": 4.0} if kind == "numbers" else {"classes": [0, 1]}
            joint = door(S, epsilon=3.0, delta=1e-6, feature_bound=1.0, algorithm="dp-ight", random_state=7, **facts)
            yield f"federated {name} {kind}", partial(joint.fit, halves(kind))
    for kind in ("numbers", "two"):
        search = PrivateSearchCV(model("auto", kind), {"sparsity": [2, 4]}, epsilon=4.0, delta=1e-6, random_state=7)
        yield f"search {kind}", partial(fit, search, kind, "dense")
    try:
        import torch

        from thresher.torch import PrivateTrainer
    except ImportError:
        return
    for optimizer in ("dp-srm", "dp-sgd", "dp-adam", "dp-lssgd"):
        yield f"torch {optimizer}", partial(trained, torch, PrivateTrainer, optimizer)


def trained(torch: Any, trainer: Any, optimizer: str) -> Any:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    X, y = table("two")
    module = torch.nn.Sequential(torch.nn.Linear(D, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    made = trainer(module, torch.nn.CrossEntropyLoss(), optimizer, thresher.Budget(3.0, 1e-5), random_state=7)
    return made.fit(torch.tensor(X, dtype=torch.float32), torch.tensor(y))


def halves(kind: str) -> list[tuple[Any, Any]]:
    X, y = table(kind)
    return [(X[: N // 2], y[: N // 2]), (X[N // 2 :], y[N // 2 :])]


def fit_model(name: Any, kind: str, form: str, people: Any = None, **facts: Any) -> Any:
    return fit(model(name, kind, **facts), kind, form, people)


def fit(estimator: Any, kind: str, form: str, people: Any = None) -> Any:
    X, y = table(kind)
    return estimator.fit(FORMS[form](X), y, **({} if people is None else {"groups": people}))


def found(estimator: Any) -> str:
    digest = hashlib.sha256()
    best = getattr(estimator, "best_estimator_", estimator)
    values = [getattr(best, name) for name in ("coef_", "intercept_", "centre_", "scale_") if hasattr(best, name)]
    if hasattr(best, "module"):
        values = [value.detach().numpy() for value in best.module.state_dict().values()]
    for value in values:
        digest.update(np.ascontiguousarray(value, dtype=np.float64).tobytes())
    certificate = json.loads(estimator.certificate_.to_json())
    for volatile in ("versions", "created", "model"):
        certificate.pop(volatile, None)
    certificate["notes"] = [note for note in certificate["notes"] if "of this process" not in note]  # by order of fits
    digest.update(json.dumps(certificate, sort_keys=True).encode())
    return digest.hexdigest()[:24]


def hashed(at: int) -> tuple[str, str]:
    name, call = list(cases())[at]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return name, found(call())
        except Exception as error:
            return name, f"{type(error).__name__}: {error}"[:200]


def main() -> int:
    command, path = sys.argv[1], Path(sys.argv[2])
    count = len(list(cases()))
    hashes = dict(Parallel(n_jobs=2)(delayed(hashed)(at) for at in range(count)))
    if command == "record":
        path.write_text(json.dumps(hashes, indent=1) + "\n")
        refused = sum(": " in value for value in hashes.values())
        print(f"{len(hashes)} fits recorded, {refused} of them refused")
        return 0
    before = json.loads(path.read_text())
    differ = [name for name in sorted({*before, *hashes}) if before.get(name) != hashes.get(name)]
    for name in differ:
        print(f"{name}: {before.get(name)} -> {hashes.get(name)}")
    print(f"{len(hashes)} fits, {len(differ)} differ")
    return 1 if differ else 0


def smallest() -> None:
    name, call = next(cases())
    print(name, found(call()))


if __name__ == "__main__":
    sys.exit(main())
