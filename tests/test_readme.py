"""The README can be followed: its Python examples run, and its commands take a table to a certificate."""

from __future__ import annotations

from pathlib import Path

import pytest

from messy_table import write_messy
from page_examples import commands, follow, problem_of
from repository import ROOT
from thresher import Certificate

README = (ROOT / "README.md").read_text()


def section(title):
    """The part of the README under a heading."""
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_the_first_model_is_private_and_finds_the_two_features(tmp_path, monkeypatch, capsys):
    """No seed is set for the noise; either coefficient is more than 25 standard errors away from zero in 10 runs."""
    monkeypatch.chdir(tmp_path)
    model = follow(section("A first private model"), capsys)["model"]
    assert {3, 7} <= set(model.support_)
    assert (model.certificate_.epsilon, model.certificate_.grade) == (1.0, "proved")
    assert Certificate.read("model.json").verify()


def test_a_table_of_ones_own_gets_from_nothing_to_a_certificate(tmp_path, monkeypatch, capsys):
    """The commands as they stand, with a table as messy as they come; the draft is used as it is, so the certificate
    says on what it rests."""
    monkeypatch.chdir(tmp_path)
    write_messy("patients.csv", 5_000)
    write_messy("new_patients.csv", 50, seed=1)
    follow(section("Your own table"), capsys)
    certificate = Certificate.read("model.json")
    assert certificate.grade == "conditional"
    assert "read from the data" in certificate.assumptions[0]
    assert len(Path("predictions.csv").read_text().splitlines()) == 1 + 51


def test_the_first_model_takes_ten_lines():
    code = section("A first private model").split("```python\n")[1].split("```")[0]
    statements = [line for line in code.splitlines() if line and not line.startswith(" ")]
    assert len(statements) <= 10


@pytest.mark.parametrize("line", commands(README))
def test_every_option_shown_for_the_command_line_exists(line):
    assert problem_of(line) is None
