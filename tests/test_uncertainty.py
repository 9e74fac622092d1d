"""Standard errors, intervals and stability: what they depend on, how they are kept, and how often they are right."""

import json

import numpy as np

from thresher.uncertainty import Uncertainty


def test_it_survives_json():
    found = Uncertainty(np.array([[0.1, np.nan]]), np.array([[0.2, np.nan]]), np.array([[0.9, np.nan]]), "as said")
    entries = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    again = Uncertainty.from_dict(entries)
    for part in ("noise", "sampling", "stability", "standard_errors"):
        np.testing.assert_array_equal(getattr(again, part), getattr(found, part))
    assert again.method == "as said"
    assert again.to_dict() == found.to_dict()
