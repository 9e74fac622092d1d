"""The pool of a search is public: the same whenever it is asked for, and of what may be searched over."""

import json

import numpy as np
import pytest
from scipy import stats

from thresher import DenseClassifier, SparseClassifier
from thresher.algorithms import DPSGD
from thresher.models.candidates import FIXED, candidates_of, told

MODEL = SparseClassifier(5, feature_bound=1.0)


def test_lists_give_every_combination():
    pool = candidates_of(MODEL, {"sparsity": [1, 2, 3], "algorithm": ["pursuit", "dp-ight"]}, 1)
    assert len(pool) == 6
    assert {(each["sparsity"], each["algorithm"]) for each in pool} == {
        (s, a) for s in (1, 2, 3) for a in ("pursuit", "dp-ight")
    }


def test_a_distribution_gives_as_many_draws_as_asked_for_and_always_the_same():
    space = {"sparsity": stats.randint(1, 100), "row_bound": stats.loguniform(0.1, 10)}
    one, two = (candidates_of(MODEL, space, 12) for _ in range(2))
    assert one == two
    assert len({each["row_bound"] for each in one}) == 12
    assert candidates_of(MODEL, space, 5) == one[:5]


def test_spaces_of_a_list_are_put_together():
    pool = candidates_of(MODEL, [{"sparsity": [1, 2]}, {"sparsity": [9], "row_bound": [1.0, 2.0]}], 1)
    assert [tuple(sorted(each)) for each in pool] == [("sparsity",)] * 2 + [("row_bound", "sparsity")] * 2


@pytest.mark.parametrize("name", FIXED)
def test_what_all_candidates_share_is_not_searched_over(name):
    with pytest.raises(ValueError, match=f"param_distributions: '{name}' cannot be searched over: {FIXED[name][:20]}"):
        candidates_of(MODEL, {"sparsity": [1], name: [1, 2]}, 1)


def test_every_fixed_name_is_a_parameter_of_the_models():
    assert set(FIXED) <= set(MODEL.get_params())
    assert set(FIXED) <= set(DenseClassifier().get_params())


def test_candidates_can_be_written_down():
    params = {"sparsity": np.int64(3), "row_bound": np.float64(0.5), "algorithm": DPSGD(passes=2), "classes": None}
    written = json.loads(json.dumps(told(params)))
    assert written["sparsity"] == 3
    assert written["row_bound"] == 0.5
    assert written["algorithm"].startswith("DPSGD(passes=2")
    assert written["classes"] is None
    assert told({"target_bound": (0.0, 7.0)}) == {"target_bound": "(0.0, 7.0)"}
