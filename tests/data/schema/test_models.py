"""Models that read tables by a schema: bounds in, original units out, files; a wrong table costs nothing."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import cross_val_predict

from thresher import DenseClassifier, PrivateSearchCV, Schema, SparseClassifier, SparseRegressor, load_model

FACTS = Schema.from_dict({
    "columns": {
        "age": {"bounds": [0, 100], "unit": "years"},
        "pressure": {"bounds": [50, 250], "typical": 120, "unit": "mmHg", "missing": "indicator"},
        "ward": {"categories": ["A", "B", "C"], "base": "A"},
        "stay": {"role": "target", "bounds": [0, 60], "unit": "days"},
    }
})  # fmt: skip


def patients(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    age, pressure, ward = rng.integers(0, 101, n), rng.normal(130, 20, n).round(), rng.choice(list("ABC"), n)
    stay = 5 + 0.2 * age + 0.1 * (pressure - 120) + 6 * (ward == "C") + rng.normal(0, 1, n)
    pressure[rng.random(n) < 0.1] = np.nan
    return pd.DataFrame({"age": age, "pressure": pressure, "ward": ward, "stay": stay})


def regressor(**params):
    return SparseRegressor.from_schema(FACTS, **{"sparsity": 5, "epsilon": 4.0, "random_state": 3, **params})


def test_coefficients_come_back_in_original_units_with_names():
    """A seed is set: no chance is left."""
    model = regressor().fit(patients())
    assert model.feature_names_in_.tolist() == ["age", "pressure", "pressure missing", "ward=B", "ward=C"]
    assert model.units_.tolist() == ["years", "mmHg", "", "", ""]
    assert_allclose(model.coef_[[0, 1, 4]], [0.2, 0.1, 6], rtol=0.2)
    low, high = model.intervals(0.999)[0]
    assert low < 0.2 < high
    assert high - low < 0.2
    assert model.n_features_in_ == 5
    assert model.certificate_.n_features == 5


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("algorithm", ["pursuit", "dp-ight"])
def test_the_model_in_original_units_predicts_what_the_scaled_model_predicts(algorithm, intercept):
    frame = patients()
    model = regressor(algorithm=algorithm, fit_intercept=intercept).fit(frame)
    _, rows = FACTS.rows(frame, centred=intercept)
    bounds = {"feature_bound": 1.0, "row_bound": FACTS.encoding(centred=intercept).row_norm, "target_bound": (0, 60)}
    scaled = SparseRegressor(
        5, epsilon=4.0, random_state=3, algorithm=algorithm, fit_intercept=intercept, **bounds
    ).fit(rows.X, rows.y)
    assert_allclose(model.predict(frame), scaled.predict(rows.X), rtol=1e-12)
    assert (model.intercept_ == scaled.intercept_ == 0) or intercept
    spread = FACTS.encoding(centred=intercept).spread[model.support_]
    if algorithm == "pursuit":
        assert_allclose(model.intervals() * spread[:, None], scaled.intervals(), rtol=1e-9)
        assert_array_equal(model.uncertainty_.stability, scaled.uncertainty_.stability)
    assert model.certificate_.bounds["feature"] == 1.0
    assert model.certificate_.releases == scaled.certificate_.releases


def test_frames_and_files_say_the_same(tmp_path):
    frame = patients()
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    wanted = regressor().fit(frame).predict(frame)
    for data in (pl.from_pandas(frame), tmp_path / "t.csv", str(tmp_path / "t.parquet"), frame.astype(object)):
        assert_allclose(regressor().fit(data).predict(data), wanted, rtol=1e-12)


def test_saved_models_read_tables_too(tmp_path):
    frame = patients()
    model = regressor().fit(frame)
    model.save(tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    assert_array_equal(again.predict(frame), model.predict(frame))
    assert again.units_.tolist() == model.units_.tolist()
    assert_array_equal(again.intervals(), model.intervals())
    again.save(tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text()) == json.loads((tmp_path / "model.json").read_text())
    model.report(tmp_path / "report.html")
    assert "ward=C" in (tmp_path / "report.html").read_text()


def test_it_is_a_scikit_learn_estimator(tmp_path):
    frame = patients(600)
    model = regressor()
    assert clone(model).schema == FACTS
    held = cross_val_predict(model, frame, frame["stay"], cv=2)
    assert held.shape == (600,)
    assert np.corrcoef(held, frame["stay"])[0, 1] > 0.5
    assert model.fit(frame).score(frame, frame["stay"]) > 0.5
    assert "Schema(4 columns, target='stay')" in repr(model)


def test_classes_people_and_dense_models_come_from_the_schema():
    frame = patients().assign(who=np.arange(4000) // 2, long=lambda f: np.where(f["stay"] > 20, "yes", "no"))
    entries = FACTS.to_dict()
    entries["columns"]["stay"] = {"role": "ignore"}
    entries["columns"] |= {"who": {"role": "person"}, "long": {"role": "target", "categories": ["no", "yes"]}}
    model = SparseClassifier.from_schema(entries, sparsity=5, epsilon=4.0, hardened=True).fit(frame)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.certificate_.unit == "person"
    assert model.certificate_.n_samples == 2000
    assert model.certificate_.grade == "proved"
    assert model.score(frame, frame["long"]) > 0.7  # the least of 40 runs was .933
    dense = DenseClassifier.from_schema(
        {**entries, "columns": {**entries["columns"], "who": {"role": "ignore"}}}, epsilon=2.0
    )
    assert dense.fit(frame).coef_.shape == (1, 5)
    three = FACTS.to_dict()
    three["columns"]["ward"] = {"role": "target", "categories": ["A", "B", "C"]}
    three["columns"]["stay"] = {"bounds": [0, 60]}
    several = SparseClassifier.from_schema(three, sparsity=3, epsilon=8.0).fit(frame.drop(columns=["who", "long"]))
    assert several.coef_.shape == (3, 4)
    assert several.predict_proba(frame.head()).shape == (5, 3)


def test_what_was_read_from_the_data_or_spent_on_a_draft_is_in_the_certificate():
    entries = FACTS.to_dict()
    entries["columns"]["age"]["read_from_data"] = True
    entries["spent"] = {"epsilon": 0.25, "delta": 1e-9}
    certificate = SparseRegressor.from_schema(entries, epsilon=4.0, sparsity=2).fit(patients()).certificate_
    assert certificate.grade == "conditional"
    assert "bounds and categories of age are public" in certificate.assumptions[0]
    assert Schema.from_dict(entries).digest in certificate.notes[-2]
    assert "cost epsilon=0.25 at delta=1e-09" in certificate.notes[-1]
    assert certificate.verify()


def test_a_plan_needs_no_table():
    model = regressor(random_state=None)
    plan = model.plan(4000)
    assert plan.problem.d == 5
    assert model.fit(patients()).plan_.releases == plan.releases
    open_ended = Schema.from_dict({**FACTS.to_dict(), "others": {"bounds": [0, 1]}})
    with pytest.raises(ValueError, match=r"\[others\] is spelled out by a table only"):
        SparseRegressor.from_schema(open_ended).plan(100)
    with pytest.raises(ValueError, match="n_features=None"):
        SparseRegressor(feature_bound=1, target_bound=1).plan(100)
    wide = patients().assign(g1=0.5, g2=0.25)
    assert SparseRegressor.from_schema(open_ended, epsilon=4.0).fit(wide).n_features_in_ == 7


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: SparseClassifier.from_schema(FACTS), "the target 'stay' has bounds, for a regressor"),
        (lambda: regressor(feature_bound=1.0), "feature_bound=1.0: the schema declares it"),
        (lambda: regressor(target_bound=3), "target_bound=3: the schema declares it"),
        (lambda: regressor().fit(patients().drop(columns="age")), "DATA: column 'age' of the schema is missing"),
        (lambda: regressor().fit(patients().assign(more=1)), "1 column(s) that the schema does not declare"),
        (lambda: regressor().fit(patients().to_numpy()), "a schema needs the columns' names"),
        (lambda: regressor().fit("nowhere.csv"), "DATA='nowhere.csv' is not a file"),
        (lambda: regressor().fit(pd.concat([patients(), patients()[["age"]]], axis=1)), "'age' of the schema is there"),
        (lambda: PrivateSearchCV(regressor(), {"sparsity": [1, 2]}).fit(patients(), patients()["stay"]), "schema"),
    ],
)  # fmt: skip
def test_a_wrong_table_is_refused_before_anything_is_spent(make, says):
    with pytest.raises((ValueError, TypeError)) as caught:
        make()
    assert says in str(caught.value)


def test_a_tighter_row_bound_may_be_chosen():
    assert regressor(row_bound=1.0).plan(1000).problem.bounds.row == 1.0
    assert regressor(row_bound=99.0).plan(1000).problem.bounds.row == FACTS.encoding().row_norm == 3**0.5
