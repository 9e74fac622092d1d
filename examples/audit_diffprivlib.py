"""Audit a released third-party library: linear regression of diffprivlib 0.6.6, which claims pure epsilon = 1.

It does not work with the scikit-learn that thresher is tested with, so give it an environment of its own:

    python -m venv other && other/bin/pip install . diffprivlib==0.6.6 "scikit-learn<1.9"
    other/bin/python examples/audit_diffprivlib.py

Both data sets lie inside the bounds. The noise on X'X is scaled by the square of the lower bound of the features, taken
twice instead of once with the upper one: for features in [0, 1] it is zero (upstream issues 104 and 105).
"""

import numpy as np
from diffprivlib.models import LinearRegression
from diffprivlib.tools import mean

from thresher.audit import Pair, audit


def slope(X, y, seed):
    model = LinearRegression(epsilon=1.0, bounds_X=(0, 1), bounds_y=(0, 1), fit_intercept=False, random_state=seed)
    return model.fit(X, y).coef_


def private_mean(X, y, seed):
    return mean(X[:, 0], epsilon=1.0, bounds=(0, 1), random_state=seed)


def neighbours(name, usual, wild):
    X = np.full((5, 1), usual)
    Z = X.copy()
    Z[0] = wild
    return Pair(name, (X, np.full(5, 0.5)), (Z, np.full(5, 0.5)))


if __name__ == "__main__":
    print(audit(slope, neighbours("a feature of .1 becomes 1", 0.1, 1.0), claimed=1.0, runs=8000, random_state=0))
    print(audit(private_mean, neighbours("a value of 0 becomes 1", 0.0, 1.0), claimed=1.0, runs=8000, random_state=0))
