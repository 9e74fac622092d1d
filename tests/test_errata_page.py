"""docs/errata.md has every erratum that the code cites, and its numbers are those of the code."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from scipy.optimize import brentq

from repository import DOCS, ROOT
from thresher.algorithms import DPIGHT, FrankWolfe
from thresher.audit.adversarial_rows import support_flip_rows
from thresher.audit.catalogue import find_cases
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.privacy.conversions import gaussian_epsilon, gaussian_mu, zcdp_rho
from thresher.privacy.releases import SampledGradient
from thresher.vaults.losses import SQUARED
from thresher.vaults.problem import LinearProblem
from thresher_papers.experiments.errata import ERRATA

PAGE = (DOCS / "errata.md").read_text()
SUMMARY, DETAILS = PAGE.split("## See for yourself")
PROBLEM = LinearProblem(4000, 100, Bounds(feature=1.0, target=(-8.0, 8.0)), sparsity=10, loss=SQUARED)


def section(number):
    (found,) = re.findall(rf"^### {number}$(.*?)(?=^##|\Z)", DETAILS, flags=re.MULTILINE | re.DOTALL)
    return found


def test_every_erratum_that_the_code_cites_has_a_section():
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "papers" / "src").rglob("*.py")]
    sources = "".join(path.read_text() for path in files)
    cited = set(re.findall(r"\bE-\d+\b", sources))
    sections = re.findall(r"^### (E-\d+)$", PAGE, flags=re.MULTILINE)
    assert cited == set(ERRATA) == set(sections)
    assert len(sections) == len(set(sections))


def test_the_summary_links_every_erratum_once():
    assert sorted(re.findall(r"\[(E-\d+)\]\(#(?:e-\d+)\)", SUMMARY)) == sorted(ERRATA)
    assert all(number.lower() == anchor for number, anchor in re.findall(r"\[(E-\d+)\]\(#(e-\d+)\)", SUMMARY))


def printed_cost(algorithm, epsilon, delta, adjacency="replace-one"):
    return algorithm.plan(PROBLEM, Budget(epsilon, delta, adjacency)).ledger_epsilon  # in what adds up


REMARK = DPIGHT(calibration="printed")
COROLLARY = DPIGHT(calibration="printed", printed_constant=1.0)
VERTICES = FrankWolfe(calibration="printed", iterations=100)
LABEL_SD = 0.05 * math.sqrt(32 * math.log(1.25 / 1e-3))


def note(name):
    """The exact cost that the catalogue of audits states."""
    (case,) = find_cases(name)
    return float(case.note.split("exactly ")[1])


@pytest.mark.parametrize(
    ("number", "claimed", "really"),
    [
        ("E-1", "10, 0.01", printed_cost(REMARK, 10, 0.01)),
        ("E-2", "2, 0.01", printed_cost(COROLLARY, 2, 0.01)),
        ("E-11", "10, 0.01", gaussian_epsilon(10 / math.sqrt(2 * math.log(125)), 0.01)),
        ("E-12", "1, 0.001", note("label-ldp-iht-printed")),
        ("E-15", "1, 1e-05", printed_cost(VERTICES, 1, 1e-5)),
        ("E-22", "0.5, 0", math.sqrt(104) * 0.5),
        ("E-23", "0.5, 0.001", gaussian_epsilon(math.sqrt(2) * 0.5, 1e-3)),
        ("E-26", "0.1, 0", note("dp-agd-printed")),
    ],
)
def test_the_summary_says_what_the_printed_noise_really_costs(number, claimed, really):
    (row,) = (line for line in SUMMARY.splitlines() if f"[{number}]" in line)
    *_, said, cost, _ = (cell.strip() for cell in row.split("|"))
    assert said == claimed
    assert float(cost) == pytest.approx(really, abs=0.5 * 10.0 ** -len(cost.partition(".")[2]))


@pytest.mark.parametrize(
    ("number", "words"),
    [
        ("E-1", f"{printed_cost(REMARK, 2, 1e-5):.2f} for a claimed 2 at delta 1e-5"),
        ("E-1", f"{printed_cost(REMARK, 2, 0.01):.2f} for a claimed 2 at delta .01"),
        ("E-2", f"{printed_cost(COROLLARY, 10, 0.01):.1f} for a claimed 10 at delta .01"),
        ("E-2", f"{printed_cost(COROLLARY, 10, 1e-5):.1f} at delta 1e-5"),
        ("E-12", f"{gaussian_epsilon((10 + 2 * 0.05) / LABEL_SD, 1e-3):.0f}."),
        ("E-15", f"{printed_cost(VERTICES, 2, 1e-5):.2f} for a claimed 2"),
        ("E-27", f"{0.5 - 2 * math.log(1 / (4 * 500 * 0.001)):.2f}, where the right one is negative"),
    ],
)
def test_what_sections_say_is_computed(number, words):
    assert words in section(number)


def test_row_by_row_add_remove_the_printed_frank_wolfe_noise_holds_to_about_4_5():
    assert printed_cost(VERTICES, 4.5, 1e-5, "add-remove") < 4.5 < 5.5 < printed_cost(VERTICES, 5.5, 1e-5, "add-remove")


@pytest.mark.parametrize(("epsilon", "delta", "times"), [(10, 1e-5, "1.24"), (1, 1e-5, "1.08"), (0.5, 0.01, ".71")])
def test_sound_noise_is_close_to_the_printed_one(epsilon, delta, times):
    L = math.log(1 / delta)
    ratio = 2 / gaussian_mu(epsilon, delta) * (math.sqrt(L + epsilon) - math.sqrt(L))
    assert f"{times} times at ({epsilon:g}, ".replace("(0.5", "(.5") in section("E-1")
    assert ratio == pytest.approx(float(times), abs=0.005)


@pytest.mark.parametrize(("delta", "limit"), [(0.01, "6.77"), (1e-5, "8.42")])
def test_where_the_classical_gaussian_formula_ends(delta, limit):
    def excess(epsilon):
        return gaussian_epsilon(epsilon / math.sqrt(2 * math.log(1.25 / delta)), delta) - epsilon

    assert brentq(excess, 3, 30) == pytest.approx(float(limit), abs=0.005)
    assert f"above {limit}" in section("E-11")


def test_the_sparse_teacher_moves_as_far_as_the_page_says():
    """By trying every single column: (1/2n) sum (x theta - y)^2 + (lambda/2) theta^2 at lambda .05."""
    n, ridge, models = 801, 0.05, []
    for X, y in support_flip_rows(n):
        gains, curvatures = X.T @ y / n, (X**2).mean(axis=0) + ridge
        best = np.argmax(gains**2 / curvatures)
        models.append(np.eye(X.shape[1])[best] * gains[best] / curvatures[best])
    moved, allowed = np.linalg.norm(models[0] - models[1]), math.sqrt(2) / (n * ridge)
    assert f"moves by {moved:.3f}" in section("E-5")
    assert f"{allowed:.4f};" in section("E-5")


@pytest.mark.parametrize(("epsilon", "times"), [(1, "1.19"), (4.5, "1.02"), (8, ".94")])
def test_gumbel_noise_of_the_printed_scale(epsilon, times):
    """Printed over needed: sqrt(8 T L)/epsilon against 2 sqrt(T/(2 rho)), in units of what one row adds."""
    ratio = math.sqrt(8 * math.log(1e5)) / epsilon / (2 * math.sqrt(1 / (2 * zcdp_rho(epsilon, 1e-5))))
    assert ratio == pytest.approx(float(times), abs=0.005)
    assert times in section("E-16")


def test_the_lemma_of_dp_srm_certifies_no_small_epsilon():
    """alpha <= (2 v/3) log(1/(tau alpha (1 + v))) + 1, whatever the variance v >= .7 is."""
    tau = 50 / 32561

    def largest(v):
        return brentq(lambda a: 2 * v / 3 * math.log(1 / (tau * a * (1 + v))) + 1 - a, 1, 1e4)

    order = max(map(largest, np.geomspace(0.7, 500, 2000)))
    assert f"an order above {order:.1f}" in section("E-17")
    assert f"no epsilon below {math.log(1e5) / (order - 1):.2f}".replace("0.", ".") in section("E-17")


def test_the_noise_of_dp_srm_is_more_than_enough():
    n, batch, rounds, epsilon, beta = 32561, 50, 3256, 0.2, 0.5
    order = math.log(1e5) / ((1 - beta) * epsilon) + 1
    sd = math.sqrt(14 * rounds * order / (beta * n**2 * epsilon))  # for gradients of norm 1
    cost = SampledGradient(rounds, sd * batch / 2, batch, n, "fixed", "replace-one").cost().epsilon(1e-5)[0]
    assert f"costs {cost:.2f} where .2".replace("0.", ".") in section("E-17")


def test_the_noise_of_the_code_of_dp_lssgd_would_do_if_rows_were_clipped():
    rounds = 50 * 60_000 // 128
    cost = SampledGradient(rounds, 0.3471 * 128 / 2, 128, 60_000, "poisson", "replace-one").cost().epsilon(1e-5)[0]
    assert f"would cost {cost:.3f} where .1".replace("0.", ".") in section("E-20")


@pytest.mark.parametrize("name", ["dpsl-kt-printed", "dp-lssgd-printed", "frank-wolfe-printed"])
def test_audited_numbers_are_those_of_the_audit_table(name):
    table = (DOCS / "auditing.md").read_text()
    (number,) = re.findall(rf"^\| {name} \|[^|]*\|[^|]*\| ([0-9.]+) \|", table, flags=re.MULTILINE)
    assert number in PAGE
