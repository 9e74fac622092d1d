"""The candidates of a search: public, fixed before any row is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thresher.privacy.budget import is_whole

__all__ = ["Params", "candidates_of", "told"]

Params = dict[str, Any]
"""What makes a candidate special: values of an estimator's parameters."""

FIXED = {
    "epsilon": "the search plans each trial's; give epsilon= to PrivateSearchCV",
    "delta": "the search plans each trial's; give delta= to PrivateSearchCV",
    "adjacency": "all candidates protect the same neighbours; set it on the estimator",
    "n_public": "all candidates see the same rows; set it on the estimator",
    "classes": "all candidates tell the same classes apart; set them on the estimator",
    "hardened": "all candidates share one source of noise; set it on the estimator",
    "ledger": "a search is paid as a whole; give ledger= to PrivateSearchCV",
    "dataset": "a search is paid as a whole; give dataset= to PrivateSearchCV",
    "random_state": "noise is not to be chosen; give random_state= to PrivateSearchCV, for tests only",
    "verbose": "nothing may be told about single trials",
}

SEED = 0
"""Of the draws from distributions. They are public, and always the same so that plan() shows what fit() will try."""


def candidates_of(estimator: Any, param_distributions: Any, n_iter: int) -> list[Params]:
    """Every combination if all values are listed; otherwise ``n_iter`` draws."""
    from sklearn.model_selection import ParameterGrid, ParameterSampler  # takes long to import

    spaces = [param_distributions] if isinstance(param_distributions, Mapping) else param_distributions
    if not isinstance(spaces, (list, tuple)) or not spaces or not all(isinstance(s, Mapping) and s for s in spaces):
        raise ValueError(
            f"param_distributions={param_distributions!r} must be a dict, or a list of dicts, that says which values "
            "each parameter may take, for example {'sparsity': [5, 10, 20]}"
        )
    for name in sorted({name for space in spaces for name in space}):
        if name in FIXED:
            raise ValueError(f"param_distributions: {name!r} cannot be searched over: {FIXED[name]}")
        if name not in estimator.get_params():
            raise ValueError(
                f"param_distributions: {name!r} is no parameter of {type(estimator).__name__}; it has "
                f"{', '.join(sorted(set(estimator.get_params()) - set(FIXED)))}"
            )
    if not any(hasattr(values, "rvs") for space in spaces for values in space.values()):
        return list(ParameterGrid(list(spaces)))
    if not is_whole(n_iter) or n_iter < 1:
        raise ValueError(f"n_iter={n_iter!r} must be a whole number of at least 1: how many candidates are drawn")
    return list(ParameterSampler(list(spaces), n_iter, random_state=SEED))


def told(params: Mapping[str, Any]) -> Params:
    """A candidate as certificates list it: numbers and names as they are, anything else in words."""
    plain = {name: value.item() if hasattr(value, "item") else value for name, value in params.items()}
    return {name: v if isinstance(v, (int, float, str, type(None))) else str(v) for name, v in plain.items()}
