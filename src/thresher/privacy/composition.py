"""What choices and answers in a known order cost together: the exact adaptive composition, never from below.

For two neighbours let phi(g) be the most that H_g(P||Q) = sup_S P(S) - g Q(S) can be over everything that is still to
be asked, with g = e^x. Nothing to ask: phi = (1 - g)+. What is asked before acts on phi as an operator:

* a **choice** of bounded range eta (an exponential mechanism): its likelihood ratio lies in some [a, a e^eta], so that
  E phi(g r) is at most the largest chord of phi over [u, e^eta u], read at g, over u in [g e^-eta, g];
* an **answer** with the profile k(y) >= H_{e^y}: with phi = c + sum of kappa_v (1 - g/v)+, at most
  c + sum of kappa_v k(log(g/v)).

The first asked is the outermost; delta(epsilon) is the value at g = e^epsilon. Proof and limits: docs/guarantees.md.

phi is kept as upper bounds at the nodes x_j = epsilon + j h and read linearly in g between them, towards (0, 1) on the
left, and as a constant on the right: phi is convex and does not increase, so that this is nowhere too low.

Round-off goes upwards, too, as in ``thresher.privacy.profiles``: what is computed stays an upper bound of phi.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from thresher.privacy.arrays import Floats
from thresher.privacy.profiles import LEAST, MOST_LOSS, SMALLEST, SPECIAL, UNIT, Answer, GaussianAnswer, TiltedAnswer

__all__ = ["Choice", "Step", "composed_delta"]

CELLS = 48.5
"""Nodes in the range of a choice, were all steps alike. Halves are tighter: kinks of a chord then lie between nodes."""

MOST_NODES = 4000
"""A range that takes more is read at wider steps."""

FEWEST = 16  # steps that a grid is made for; with fewer, small cells take no time
FAR = 4.0  # what is less likely than delta by e^-FAR / cells^2 is left out of a window
_TOGETHER = 24_000  # chords that are taken at once: they stay in the processor's own memory


@dataclass(frozen=True)
class Choice:
    """The largest of several noisy scores, as an exponential mechanism makes it: its loss has the range ``eta``."""

    eta: float

    @property
    def rho(self) -> float:
        return self.eta**2 / 8


Step = Choice | Answer
"""One release, as it is asked."""


def composed_delta(steps: Sequence[Step], epsilon: float, cells: float = CELLS) -> float:
    """A delta with which ``steps``, asked in this order, are (epsilon, delta)-DP; any of them may be left out.

    Questions may depend on earlier answers; the order, and what each step reveals, may not. More ``cells`` are tighter
    and slower; with any number of them the delta is not below the true one.
    """
    merged = _merged(steps)
    if not merged:
        return 0.0
    if any(isinstance(step, Choice) and step.eta > MOST_LOSS for step in merged):
        return 1.0
    grid, windows = _windows(merged, epsilon, cells)
    values = grid.innermost(merged[-1], windows[-1])
    for step, window, after in zip(merged[-2::-1], windows[-2::-1], windows[:0:-1], strict=True):
        values = grid.before(step, values, after, window)
    return min(1.0, float(values[0]))


def _merged(steps: Sequence[Step]) -> list[Step]:
    """Gaussian answers next to each other are one; what reveals nothing is none. All are a little more than they were,
    for what it took to compute them."""
    merged: list[Step] = []
    for step in steps:
        last = merged[-1] if merged else None
        if step in (Choice(0.0), GaussianAnswer(0.0)):
            continue
        if isinstance(step, GaussianAnswer) and isinstance(last, GaussianAnswer):
            merged[-1] = GaussianAnswer(max(math.hypot(step.mu, last.mu), LEAST) * (1 + 4 * UNIT))
        elif isinstance(step, Choice):
            merged.append(Choice(max(step.eta, LEAST) * (1 + 4 * UNIT)))
        elif isinstance(step, GaussianAnswer):
            merged.append(GaussianAnswer(max(step.mu, LEAST) * (1 + 4 * UNIT)))
        else:
            merged.append(step)
    return merged


@dataclass(frozen=True)
class _Grid:
    """The nodes epsilon + j h."""

    epsilon: float
    h: float
    smallest: float
    """What is far below any delta of interest: tails are cut there, and what they hold is added."""

    def innermost(self, step: Step, window: range) -> Floats:
        """The value before the last step, in closed form, a little to the left of nodes that are not known better."""
        nodes = self.epsilon + self.h * np.arange(window.start, window.stop, dtype=np.float64)
        x = nodes - 8 * UNIT * max(self.epsilon, abs(nodes[0]), abs(nodes[-1]))
        if isinstance(step, Choice):
            return _falling(_last_choice(step.eta, x) * (1 + SPECIAL))
        return _falling((-np.expm1(np.minimum(x, 0.0)) + step.excess(x)) * (1 + SPECIAL))

    def before(self, step: Step, values: Floats, known: range, window: range) -> Floats:
        """The value before ``step`` on ``window``, from that after it, which is ``known`` there."""
        if isinstance(step, Choice):
            return _falling(self._before_choice(step.eta, values, known, window))
        return _falling(self._before(step, values, known, window))

    def _read(self, values: Floats, known: range, window: range) -> Floats:
        """The values on ``window``: towards (0, 1) to the left of what is known, a constant to the right."""
        left = max(known.start - window.start, 0)
        towards = values[0] + (1 - values[0]) * -np.expm1(self.h * np.arange(-left, min(window.stop - known.start, 0)))
        middle = values[max(window.start - known.start, 0) : max(window.stop - known.start, 0)]
        right = min(max(window.stop - known.stop, 0), len(window))
        return np.concatenate([towards, middle, np.full(right, values[-1])])

    def _before(self, answer: Answer, values: Floats, known: range, window: range) -> Floats:
        """c + sum of kappa_j k(x - x_j): the values, and what the kinks have in excess of (1 - g/v)+."""
        kinks = self._kinks(values)
        most = max(window.stop - known.start, 1), max(known.stop - window.start, 1)  # farther lags do not occur
        right = _until(answer, self.smallest, self.h, most[0])
        left = _until(answer, self.smallest, -self.h, most[1])
        lags = self.h * np.arange(-left, right + 1, dtype=np.float64)
        excess = answer.excess(lags * (1 - 4 * UNIT))  # it falls on both sides: no less than at the lags themselves
        spread = np.zeros(len(window))
        first = known.start - left - window.start  # where the first kink's first lag is
        whole = np.convolve(kinks, excess)[max(-first, 0) : max(len(window) - first, 0)]
        spread[max(first, 0) : max(first, 0) + len(whole)] = whole
        left_out = (excess[0] if left < most[1] else 0.0), (excess[-1] if right < most[0] else 0.0)
        beyond = kinks.sum() * max(left_out)  # nor has a lag that is left out more
        here = self._read(values, known, window)
        return (here + (spread + beyond) * (1 + 20 * SPECIAL)) * (1 + 4 * UNIT) + SMALLEST  # type: ignore[no-any-return]

    def _kinks(self, values: Floats) -> Floats:
        """kappa_j, the change of slope at g_j times g_j; 0 instead of less, where bounds are not convex, is more."""
        steps = np.diff(values, append=values[-1])
        down = steps / math.expm1(self.h)
        up = np.concatenate([[values[0] - 1.0], steps[:-1] / -math.expm1(-self.h)])
        kinks: Floats = np.maximum(down - up, 0.0) + 16 * UNIT * (np.abs(down) + np.abs(up))
        return kinks

    def _before_choice(self, eta: float, values: Floats, known: range, window: range) -> Floats:
        """The largest chord over [u, e^eta u], u = g e^-t, read at g.

        An end passes a node at t = k h, the other at t = eta - k h. Between two such places both stay within a cell,
        and what is read is a + d u + s/u: its largest value is at an end unless d, s < 0, and then at most
        (u1 L1 + u2 L2)/(u1 + u2) + tanh(log(u2/u1)/2) (D1 - D2)+ with D the intercepts of the chords at g = 0.

        Round-off is at most 2^-53 (150 + 50 eta + 10 eta/h) of the largest value read: more than that is added.
        """
        reach = math.floor(eta / self.h)
        part = eta - reach * self.h
        n, whole, cell = len(window), math.expm1(eta), math.expm1(self.h)
        here = self._read(values, known, range(window.start - reach - 1, window.stop + reach + 1))
        before, at, ahead, beyond = (here[shift : shift + n + reach] for shift in (0, 1, reach + 1, reach + 2))
        far, near = math.expm1(part) / cell, math.expm1(self.h - part) / cell
        lower = _Chords.over(at, (1 - far) * ahead + far * beyond)  # u at a node
        upper = _Chords.over((1 - near) * before + near * at, ahead)  # e^eta u at a node
        sooner = upper.inside(lower, part, whole)
        later = _Chords(lower.near[:-1], lower.rise[:-1]).inside(
            _Chords(upper.near[1:], upper.rise[1:]), self.h - part, whole
        )
        times = self.h * np.arange(reach, -1, -1, dtype=np.float64)
        q, q_later = np.expm1(times)[:, None] / whole, np.expm1(part + times)[:, None] / whole
        best = np.zeros(n)
        for chords, places in (lower, q), (upper, q_later), (sooner, q), (later, q_later[1:]):
            chords.raise_to(best, places)
        return best + 32 * UNIT * (3 + eta + eta / self.h) * here[:n] + SMALLEST


def _windows(steps: Sequence[Step], epsilon: float, cells: float) -> tuple[_Grid, list[range]]:
    """The grid, and the nodes at which the value before each step is computed; before the first, at epsilon alone.

    Before a step a loss l was had, and the value is read near epsilon - l. Its window leaves out losses that have a
    chance far below delta, and places where the value itself is; both by zCDP. What is cut off costs tightness.
    """
    rhos = np.array([step.rho for step in steps])
    sure = np.array([step.jacobian if isinstance(step, TiltedAnswer) else 0.0 for step in steps])
    rho = math.fsum(rhos)
    beyond = max(epsilon - rho - math.fsum(sure), 0.0) ** 2 / (4 * rho) + FAR + 2 * math.log(cells)
    before, after = np.cumsum(rhos)[:-1], np.cumsum(rhos[::-1])[-2::-1]
    right = np.cumsum(sure[::-1])[-2::-1] + after + np.sqrt(4 * after * beyond)
    left = np.maximum(epsilon - np.cumsum(sure)[:-1] - before - np.sqrt(4 * before * beyond), -right)
    widest = float(np.max(right - left, initial=0.0))
    h = max(math.sqrt(8 * rho / max(len(steps), FEWEST)) / cells, widest / (MOST_NODES - 4))
    ranges = Counter(step.eta for step in steps if isinstance(step, Choice))
    usual = max(ranges, key=lambda eta: (round(ranges[eta] * eta**2 / rho, 6), eta), default=0.0)
    whole = math.floor(usual / h * (1 + LEAST) - 0.5)
    if whole > 0:  # a half more than whole nodes is tighter: the kinks of a chord then lie between nodes
        h = usual / (whole + 0.5)
    starts, stops = np.floor((left - epsilon) / h).astype(int), np.ceil((right - epsilon) / h).astype(int) + 2
    grid = _Grid(epsilon, h, math.exp(-beyond - 10))
    return grid, [range(1), *map(range, starts.tolist(), stops.tolist())]


@dataclass(frozen=True)
class _Chords:
    """Chords over [u, e^eta u], one for each of many u: near + q rise at g = e^t u, q = (e^t - 1)/(e^eta - 1)."""

    near: Floats
    rise: Floats

    @classmethod
    def over(cls, near: Floats, far: Floats) -> _Chords:
        return cls(near, far - near)

    def inside(self, before: _Chords, width: float, whole: float) -> _Chords:
        """The bound between these and those ``before``, whose t is smaller by ``width`` and whose u is larger, as a
        chord that is read with the q of those; ``whole`` is e^eta - 1."""
        share = 1 / (1 + math.exp(width))
        gain = np.maximum((self.near - before.near) - (self.rise - before.rise) / whole, 0.0)
        mean = share * (self.near + math.expm1(width) / whole * self.rise) + (1 - share) * before.near
        return _Chords(mean + math.tanh(width / 2) * gain, (1 - share) * (self.rise + before.rise))

    def raise_to(self, best: Floats, q: Floats) -> None:
        """Make ``best`` no less than any of these chords; a row of ``q`` for each lag, the farthest first."""
        # a row for each lag, one further on than the row before; as_strided is the same and takes ten times as long
        rows = (len(q), len(best))
        near, rise = (np.ndarray(rows, np.float64, each, 0, each.strides * 2) for each in (self.near, self.rise))
        together = _TOGETHER // (len(q) + 1) + 1
        for start in range(0, len(best), together):
            some = slice(start, start + together)
            values = q * rise[:, some]
            values += near[:, some]
            np.maximum(best[some], values.max(axis=0, initial=0.0), out=best[some])


def _falling(values: Floats) -> Floats:
    """Bounds that hold to the left of where they were found are none the worse to the right; nothing is above 1."""
    falling: Floats = np.maximum.accumulate(np.minimum(values, 1.0)[::-1])[::-1]
    return falling


def _until(answer: Answer, smallest: float, h: float, most: int) -> int:
    """How many lags of size h are looked at, of ``most``: about up to the first with less than ``smallest``."""
    some = np.floor(np.linspace(0.0, most, 65))
    return int(some[np.argmax(np.append(answer.excess(h * some[:-1]) <= smallest, True))])


def _last_choice(eta: float, x: Floats) -> Floats:
    """T (1 - g)+: (e^(eta/2) - e^(x/2))^2 / (e^eta - 1) for |x| <= eta, (1 - g)+ beyond."""
    within = np.clip(x, -eta, eta)
    inside = np.square(-np.expm1((within - eta) / 2)) / -math.expm1(-eta)
    return np.maximum(inside * (np.abs(x) <= eta), -np.expm1(np.minimum(x, 0.0)))
