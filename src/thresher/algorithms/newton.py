"""Private Newton steps on a noisy Gram matrix, pruned on the quadratic that was released."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit

from thresher.algorithms.defaults import largest_residual
from thresher.algorithms.quadratic import eliminate, inverse_root, raised, ridge_for
from thresher.privacy.arrays import Floats, Indices
from thresher.privacy.budget import Budget
from thresher.privacy.conversions import zcdp_rho
from thresher.privacy.facts import INTERCEPT_ENTRY
from thresher.privacy.plan import Plan
from thresher.privacy.releases import (
    GaussianGram,
    GaussianMean,
    GaussianRestrictedGradient,
    GumbelNearMaximum,
    GumbelQuantile,
    GumbelSelection,
    Release,
)
from thresher.vaults import CentralVault
from thresher.vaults.problem import LinearProblem

__all__ = ["Newton"]

START, CENTRE, GRAM, LAST = 0.02, 0.03, 0.25, 0.03
REFINE, REGRAM = 0.4, 0.15
GROWTH = 1.15
LEVELS = 1.25 ** -np.arange(59, -1, -1.0)
INWARD = 1 - 1e-12


@dataclass(frozen=True)
class Newton:
    """Newton."""

    name: ClassVar[str] = "newton"

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        rho = zcdp_rho(budget.epsilon, budget.delta)
        strength = problem.n * math.sqrt(2 * rho) if math.isfinite(rho) else math.inf
        d, s = problem.d, problem.sparsity
        classes = problem.loss.classifies
        staged = not (d <= 3 * s or d <= min(150, 0.12 * strength) or d <= 0.03 * strength)
        one = d <= s or strength < 150
        steps, refine = (6, 0) if one else (4, 2)
        stages = 0
        clips = 2 + steps + refine + (not classes) + (not one)
        share = min(max((25 / strength) ** 2, 0.005), 0.03) if math.isfinite(rho) else 0.01
        left = 1 - START - CENTRE - GRAM - LAST - clips * share
        part = 1.0 if one else 1 - REFINE
        shares = GROWTH ** np.arange(steps)
        shares = part * left * shares / shares.sum()
        releases: list[Release] = [GumbelNearMaximum.for_rho(share * rho, times=1)]
        releases = [GumbelNearMaximum.for_rho(clips * share * rho, times=clips)]
        if problem.intercept:
            start = START * rho
            releases.append(
                GaussianRestrictedGradient.for_rho(start) if classes else GumbelQuantile.for_rho(start)
            )
            releases.append(GaussianMean.for_rho(CENTRE * rho))
        releases.append(GaussianGram.for_rho(GRAM * rho))
        releases += [GaussianRestrictedGradient.for_rho(x * rho * INWARD) for x in shares]
        if not one:
            again = REFINE * left
            releases.append(GaussianGram.for_rho(REGRAM * again * rho))
            later = GROWTH ** np.arange(refine)
            later = (1 - REGRAM) * again * later / later.sum()
            releases += [GaussianRestrictedGradient.for_rho(x * rho * INWARD) for x in later]
        if problem.intercept:
            releases.append(GaussianRestrictedGradient.for_rho(LAST * rho))
        settings = {"steps": steps, "refinements": refine, "clip": "private"}
        return Plan(self.name, problem, budget, tuple(releases), settings)

    def run(self, vault: CentralVault) -> Floats:
        return _Run(vault).result()


def _of(kind: type[Release], plan: Plan) -> list[Release]:
    return [release for release in plan.releases if isinstance(release, kind)]


class _Run:
    def __init__(self, vault: CentralVault) -> None:
        self.vault, self.problem, self.plan = vault, vault.problem, vault.plan
        self.n = self.problem.n
        (self.near,) = _of(GumbelNearMaximum, self.plan)
        self.grams = _of(GaussianGram, self.plan)
        self.values = _of(GaussianRestrictedGradient, self.plan)
        self.medians = _of(GumbelQuantile, self.plan)
        self.means = _of(GaussianMean, self.plan)
        self.classes = self.problem.loss.classifies
        self.units = self.problem.units
        self.largest = largest_residual(self.problem)

    def result(self) -> Floats:
        p, problem = self.plan.settings, self.problem
        self.support = np.arange(problem.dimension)
        self.beta = np.zeros(problem.dimension)  # in units
        if problem.intercept:
            self.start()
        self.centre()
        gram, sd = self.ask_gram(self.grams[0])
        keep = problem.sparsity
        self.newton(gram, sd, p["steps"], keep if not p["refinements"] else int(1.5 * keep))
        if p["refinements"]:
            gram2, sd2 = self.ask_gram(self.grams[1])
            old, weight = self.gram[np.ix_(self.left, self.left)], 1 / self.gram_sd**2
            total = (old * weight + gram2 / sd2**2) / (weight + 1 / sd2**2) if sd2 else gram2
            self.newton(total, 1 / math.sqrt(weight + 1 / sd2**2) if sd2 else 0.0, p["refinements"], keep)
        if problem.intercept:
            self.last()
        theta = problem.origin()
        theta[self.support] = self.beta / self.units[self.support]
        return theta

    def noise(self) -> float:
        return self.vault.answers[-1].scale

    def theta(self, beta: Floats) -> Floats:
        theta = self.problem.origin()
        theta[self.support] = beta / self.units[self.support]
        return theta

    def start(self) -> None:
        problem = self.problem
        at = np.array([problem.d])
        if self.classes:
            mean = self.vault.restricted_gradient(problem.origin(), at, self.values.pop(0), INTERCEPT_ENTRY / 2)
            sd = 2 * self.noise() / INTERCEPT_ENTRY * 0.5
            ones = 0.5 - mean[0] / problem.intercept_column
            self.ones = float(np.clip(ones, min(2 * sd, 0.5), 1 - min(2 * sd, 0.5)))
            value = math.log(self.ones / (1 - self.ones))
        else:
            levels = np.linspace(-problem.target_radius, problem.target_radius, 257)
            value = self.vault.quantile("targets", 0.5, levels, problem.origin(), self.medians[0])
        self.beta[-1] = value / INTERCEPT_ENTRY

    def centre(self) -> None:
        """mu."""
        k = len(self.support)
        self.mu = np.zeros(k - self.problem.intercept)
        if not self.means:
            return
        top = self.problem.norm_in_units(self.problem.d)
        clip = self.near_max("row norms", top, 0.02 * self.n)
        mean = self.vault.mean(self.support, self.means[0], clip)
        self.mu = mean[:-1]

    def basis(self) -> Floats:
        """z = (x - mu, 1)."""
        k = len(self.support)
        C = np.eye(k)
        if self.problem.intercept:
            C[-1, :-1] = -self.mu / INTERCEPT_ENTRY
            C[-1, -1] = 1 / INTERCEPT_ENTRY
        return C

    def near_max(self, of: str, top: float, price: float, basis: Floats | None = None, theta: Floats | None = None) -> float:
        theta = self.problem.origin() if theta is None else theta
        return self.vault.near_maximum(of, top * LEVELS, price, theta, self.near, self.support, basis)

    def ask_gram(self, release: Release) -> tuple[Floats, float]:
        C = self.basis()
        top = math.hypot(self.problem.norm_in_units(len(self.mu)) + np.linalg.norm(self.mu), 1.0)
        k = len(self.support)
        price = max(0.25 * math.sqrt(2 * k) * release.multiplier, 0.5 * self.near.multiplier)
        clip = self.near_max("row norms", top, price, C)
        clip = max(clip, 0.5)
        gram = self.vault.gram(self.support, release, clip, C)
        return gram, self.noise()

    def newton(self, gram: Floats, sd: float, steps: int, keep: int) -> None:
        k = len(self.support)
        free = int(self.problem.intercept)
        least = (0.5 if self.classes else 0.1) * sd * math.sqrt(2 * k)
        least = max(least, 1e-9)
        gram = raised(gram, least)
        self.gram, self.gram_sd = gram, max(sd, 1e-12)
        C = self.basis()
        points, slopes, weights = [], [], []
        beta = self.beta
        move_limit = 1.0 if self.classes else 2 * self.problem.target_radius
        to_phi = np.linalg.inv(C)  # beta = C phi
        phi = to_phi @ beta
        scale = self.largest
        for step in range(steps):
            release = self.values.pop(0)
            kappa = self.curvature(phi, gram)
            H = kappa * gram
            eta = 0.03 * kappa if self.classes else 0.2
            most = max(2.0, self.n / release.multiplier * math.sqrt(eta / 4)) if release.multiplier else 1e9
            ridge = ridge_for(H, most, least * kappa, free)
            W = H + ridge * np.diag(np.append(np.ones(k - free), np.zeros(free)))
            root = inverse_root(W)
            B = C @ root
            top = scale * math.sqrt(k) / math.sqrt(kappa) * 30
            price = max(0.25 * math.sqrt(2 * k) * release.multiplier, 0.5 * self.near.multiplier)
            theta = self.theta(C @ phi)
            clip = self.near_max("gradient norms", top, price, B, theta)
            g = self.vault.restricted_gradient(theta, self.support, release, clip, B)
            gradient = np.linalg.inv(root) @ g  # in phi coordinates
            noise = self.noise()
            if step > 0 or steps == 1:
                points.append(phi), slopes.append(gradient), weights.append(1 / max(noise, 1e-12) ** 2)
                w = np.array(weights) / sum(weights)
                base, slope = w @ np.array(points), w @ np.array(slopes)
            else:
                base, slope = phi, gradient
            new = base - np.linalg.solve(W, slope)
            moved = new - phi
            size = math.sqrt(float(moved @ gram @ moved))
            if size > move_limit:
                new = phi + moved * move_limit / size
            phi = new
        self.last_W = W
        values, left = phi, np.arange(k)
        if k - free > keep:
            values, left = eliminate(phi, W, keep, free)
        self.left = left
        self.support = self.support[left]
        self.mu = self.mu[left[: len(left) - free]]
        self.beta = self.basis() @ values
        sdw = noise
        self.phi, self.W, self.sd_last = values, W[np.ix_(left, left)], sdw

    def curvature(self, phi: Floats, gram: Floats) -> float:
        if not self.classes:
            return 1.0
        nodes, w = np.polynomial.hermite_e.hermegauss(41)
        b = phi[-1] if self.problem.intercept else 0.0
        rest = phi[:-1] if self.problem.intercept else phi
        v = float(rest @ gram[: len(rest), : len(rest)] @ rest)
        p = expit(b + math.sqrt(max(v, 0)) * nodes)
        return float(w @ (p * (1 - p)) / w.sum())

    def last(self) -> None:
        at = self.support
        release = self.values.pop(0)
        theta = self.theta(self.beta)
        one = np.array([self.problem.d])
        if self.classes:
            clip = INTERCEPT_ENTRY
            g = self.vault.restricted_gradient(theta, one, release, clip)[0] / self.problem.intercept_column
            self.beta[-1] -= math.log1p(0) if False else 0
            pi = self.ones
            target = float(np.clip(pi - g, 0.5 * pi, 1 - 0.5 * (1 - pi)))
            self.beta[-1] += (math.log(target / (1 - target)) - math.log(pi / (1 - pi))) / INTERCEPT_ENTRY
        else:
            near = self.vault.near_maximum(
                "residuals", self.largest * LEVELS, max(0.25 * release.multiplier, 0.5 * self.near.multiplier),
                theta, self.near,
            )
            g = self.vault.restricted_gradient(theta, one, release, near * INTERCEPT_ENTRY)[0]
            self.beta[-1] -= g / self.problem.intercept_column / INTERCEPT_ENTRY
        _ = at
