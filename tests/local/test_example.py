"""The example runs as it stands and shows what it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SURVEY = Path(__file__).parents[2] / "examples" / "local_survey.py"


def test_the_survey_with_cheaters_ends_in_a_certified_model():
    """Two rounds of 200 people on two workers: each worker hands in 5 hostile reports a round, 2 of them noise."""
    arguments = ["--people", "200", "--rounds", "2", "--workers", "2"]
    run = subprocess.run([sys.executable, str(SURVEY), *arguments], capture_output=True, text=True, check=True)
    assert "You are asked for one report, ever" in run.stdout
    assert "62 bytes per report, 400 accepted" in run.stdout
    assert "rejected: 8 malformed, 4 range, 4 replayed, 4 task" in run.stdout
    assert "certificate: local model, epsilon=4, grade proved" in run.stdout
    assert "verifies: True; planned for 400 people; reports accepted by round: 200, 200" in run.stdout
    assert run.stderr == ""


def test_the_example_says_what_is_wrong_with_its_arguments():
    run = subprocess.run([sys.executable, str(SURVEY), "--epsilon", "30"], capture_output=True, text=True, check=False)
    assert run.returncode != 0
    assert "epsilon=30.0 must be a number from 1e-06 to 20" in run.stderr
