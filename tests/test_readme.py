"""The README's Python examples run as they stand, and its commands exist."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shown import blocks, commands, problem_of

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_the_python_examples_run_and_find_the_two_features(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks(README, "python"):
        exec(block, names)  # noqa: S102
    model = names["model"]
    assert {3, 7} <= set(model.support_)
    assert (model.certificate_.epsilon, model.certificate_.grade) == (1.0, "proved")
    assert model.intervals().shape == (len(model.support_), 2)
    assert (tmp_path / "model.json").exists()
    assert np.abs(names["dense"].coef_[0, :2] - [3, -2]).max() < 0.9  # the largest error in 20 runs was .45
    for name in ("local", "public"):  # the largest error of a coefficient in 30 runs of each was .09
        assert np.abs(names[name].coef_[[3, 7]] - [0.8, -0.6]).max() < 0.2
    assert set(names["joint"].support_) == {3, 7}
    assert names["visits"].certificate_.unit == "person"
    search, ledger = names["search"], names["ledger"]
    assert round(search.plan(10_000, 500).settings["trial_epsilon"], 1) == 2.5
    assert search.best_estimator_.certificate_.epsilon == 4.0
    assert round(ledger.spent("patients").epsilon, 3) == 1.0
    assert ledger.verify().ok
    assert names["joint"].certificate_.verify()
    assert (round(names["result"].epsilon_lower, 1), names["result"].violated) == (1.8, False)


@pytest.mark.parametrize("line", commands(README))
def test_every_option_shown_for_the_command_line_exists(line):
    assert problem_of(line) is None
