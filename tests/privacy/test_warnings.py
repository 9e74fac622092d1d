"""Warnings have names of their own, say what to do, and are given where they belong and nowhere else."""

from __future__ import annotations

import ast
import builtins
import warnings
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import thresher
import thresher.privacy.warnings
from thresher import (
    FittedBefore,
    LargeDelta,
    NoiseDrowns,
    PrintedNoise,
    PrivacyOff,
    PrivacyWarning,
    SparseRegressor,
    ThresherWarning,
    Unsettled,
    UtilityWarning,
    WideRanges,
)
from thresher.algorithms import DPIGHT, OutputPerturbation
from thresher.cli.app import app
from thresher.models.scaler import PrivateScaler

ROOT = Path(thresher.__file__).parent
NAMED = set(thresher.privacy.warnings.__all__)
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (4000, 20))
y = 2 * X[:, 3] + rng.normal(0, 0.3, 4000)


def model(**changes):
    return SparseRegressor(**{"sparsity": 2, "feature_bound": 1.0, "target_bound": 4.0, **changes})


def kinds_passed(source):
    """What calls of warnings.warn in a file are given as the kind of warning."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("warnings.warn", "warn"):
            yield ast.unparse(node.args[1]) if len(node.args) > 1 else None


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_warning_in_the_source_has_a_name_of_ours(path):
    """``kind`` is the argument of the one function that warns of plans; mypy holds it to ThresherWarning."""
    assert set(kinds_passed(path.read_text())) <= NAMED | ({"kind"} if path == ROOT / "models" / "fit.py" else set())


def test_a_bare_warning_would_be_noticed():
    assert list(kinds_passed("import warnings\nwarnings.warn('x', stacklevel=2)\nwarnings.warn('x', UserWarning)")) == [
        None, "UserWarning",
    ]  # fmt: skip


def test_every_name_is_public_has_a_parent_of_ours_and_is_raised_somewhere():
    source = "".join(path.read_text() for path in ROOT.rglob("*.py") if path.name not in ("warnings.py", "__init__.py"))
    for name in NAMED:
        kind = getattr(thresher, name)
        assert issubclass(kind, ThresherWarning)
        assert not hasattr(builtins, name)
        if kind not in (ThresherWarning, PrivacyWarning, UtilityWarning):
            assert f"{name},\n" in source
    assert {kind.__bases__ for kind in (PrivacyOff, PrintedNoise, LargeDelta, FittedBefore, Unsettled)} == {
        (PrivacyWarning,)
    }
    assert {kind.__bases__ for kind in (NoiseDrowns, WideRanges)} == {(UtilityWarning,)}
    assert thresher.privacy.budget.PrivacyWarning is PrivacyWarning


CASES = {
    PrivacyOff: (lambda: model(epsilon=float("inf")).fit(X, y), r"epsilon=inf: privacy is OFF.*give a finite epsilon"),
    PrintedNoise: (
        lambda: model(algorithm=DPIGHT(calibration="printed")).fit(X, y),
        r"calibration='printed': .*use calibration='proved'",
    ),
    LargeDelta: (lambda: model(delta=0.01).fit(X, y), r"delta=0.01 is not below 1/n=0.00025: .*use delta=None"),
    FittedBefore: (
        lambda: [model().fit(X, y) for _ in range(3)],
        r"fit: these rows, or many of them, were fitted before. 2 fits .* cost epsilon=1.\d+ .*; give a ledger",
    ),
    NoiseDrowns: (
        lambda: model(epsilon=0.5, sparsity=5).fit(X[:60], y[:60]),
        r"epsilon=0.5, sparsity=5 with 60 rows: .*bring more rows, a larger epsilon",
    ),
    WideRanges: (
        lambda: PrivateScaler(epsilon=0.1, feature_bound=1.0, quantiles=(0.01, 0.99)).fit(X),
        r"epsilon=0.1, quantiles=\(0.01, 0.99\): .* off by \d+ rows, and only 40 lie outside.*use a larger epsilon",
    ),
}


@pytest.mark.parametrize("kind", CASES)
def test_a_warning_names_the_argument_its_value_and_the_remedy(kind):
    cause, message = CASES[kind]
    with pytest.warns(kind, match=message) as caught:
        cause()
    assert [warning.category for warning in caught] == [kind]
    assert caught[0].filename == __file__  # where fit was called


def test_a_fit_that_may_work_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model().fit(X, y)
        model().fit(X, y, groups=np.arange(4000) // 2)
        PrivateScaler(epsilon=4.0, feature_bound=1.0).fit(-X)


def test_a_warning_that_is_an_error_stops_a_fit_before_anything_is_paid():
    with warnings.catch_warnings():
        warnings.simplefilter("error", UtilityWarning)
        stopped = model(epsilon=0.5, sparsity=5)
        with pytest.raises(NoiseDrowns):
            stopped.fit(X[:60], y[:60])
    assert not hasattr(stopped, "certificate_")


def test_the_command_line_shows_warnings_in_one_line(tmp_path):
    names = ",".join([*(f"x{j}" for j in range(20)), "y"])
    np.savetxt(tmp_path / "t.csv", np.column_stack([X, y])[:60], delimiter=",", header=names, comments="")
    options = ["--target", "y", "--feature-bound", "1", "--target-bound", "4", "--epsilon", "0.5", "--sparsity", "5"]
    shown = CliRunner().invoke(app, ["fit", str(tmp_path / "t.csv"), *options, "--out", str(tmp_path / "m.json")])
    assert shown.exit_code == 0, shown.stderr
    (line,) = shown.stderr.splitlines()
    assert line.startswith("thresher: warning: epsilon=0.5, sparsity=5 with 60 rows: ")


def test_a_pure_guarantee_needs_no_rule_of_gaussian_noise():
    """delta=0 has no zCDP to predict with: the fit goes on without that warning."""
    X, y = np.eye(30), np.linspace(-1, 1, 30)
    pure = OutputPerturbation(noise="l2-laplace")
    model = SparseRegressor(2, epsilon=0.1, delta=0.0, feature_bound=1.0, target_bound=1.0, algorithm=pure)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.fit(X, y).certificate_.delta == 0
