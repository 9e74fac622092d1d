"""Drafts within a budget: what they cost, what they find, and that they tell nothing that few rows hold."""

import itertools
import json
import math
import tomllib
import warnings
from datetime import date

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from thresher import Ledger, Schema, SparseClassifier, SparseRegressor
from thresher.cli.app import app
from thresher.estimates.draft import Steps, estimate
from thresher.privacy.accounting import Cost
from thresher.privacy.budget import Budget
from thresher.privacy.certificate import Certificate, combine
from thresher.privacy.warnings import WideRanges
from thresher_papers.datasets import write_table


def frame(n=20_000, seed=0):
    """Numbers, dates, codes, ids, names, gaps; one row with a number, a text and a day that nobody else has."""
    rng = np.random.default_rng(seed)
    made = pd.DataFrame({
        "patient id": np.arange(n) + 10_000_000,
        "name": [f"person {i}" for i in range(n)],
        "age": rng.integers(18, 90, n),
        "share": rng.uniform(0, 0.4, n),
        "ward": rng.choice(["A", "B, east", 'C "new"'], n, p=[0.6, 0.3, 0.1]),
        "admission_type": rng.integers(1, 4, n),
        "seen": (np.datetime64("2015-03-01") + rng.integers(0, 2000, n)).astype(str),
        "often empty": np.where(rng.random(n) < 0.5, "", "yes"),
        "empty": "",
        "stay": rng.normal(10, 2, n).round(2),
    })  # fmt: skip
    made.loc[0, ["age", "ward", "seen"]] = [7.5e8, "the only one", "1066-10-14"]
    return made


def columns_of(made):
    return {column.name: column for column in Schema.from_dict(tomllib.loads(made.text)).columns}


# -- the budget -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [1, 15, 300])
@pytest.mark.parametrize(("epsilon", "delta"), list(itertools.product([0.1, 1.0, 8.0], [1e-12, 1e-6, 1e-3])))
def test_the_fits_take_the_budget_and_not_more_however_many_columns_each_is_asked_about(columns, epsilon, delta):
    budget = Budget(epsilon, delta)
    steps = Steps.within(budget, columns, 1e9)
    n = 10_000
    for few, many in {(1, columns), (columns, 1), (columns, columns)}:
        plans = [steps.kinds.plan(n, 3 * columns), steps.bounds.plan(n, few), steps.categories.plan(n, many)]
        cost = sum((plan.cost for plan in plans), Cost())
        assert 0.95 * epsilon < cost.epsilon(delta)[0] <= epsilon
        assert math.fsum(plan.budget.delta for plan in plans) == pytest.approx(delta)
        most = steps.largest_plan(budget, n, columns).cost
        assert all(a <= b * (1 + 1e-9) for a, b in zip(cost.rdp, most.rdp, strict=True))
        assert cost.lost <= most.lost * (1 + 1e-9)
    quieter = cost + steps.kinds.plan(n, 3).cost
    assert quieter.epsilon(delta)[0] > epsilon  # one more fit would be one too many


def test_the_certificate_tells_the_whole_budget_and_holds():
    made = estimate(frame(), "stay", epsilon=1.0, delta=1e-8)
    certificate = made.certificate
    assert (certificate.epsilon, certificate.delta, certificate.grade) == (1.0, 1e-8, "proved")
    assert certificate.algorithm == "column-shares + private-scaler + categories"
    assert certificate.verify()
    assert certificate.second_opinion() < 1.1
    read = Certificate.from_json(certificate.to_json())
    assert read.to_json() == certificate.to_json()
    assert read.verify()
    numbers = estimate(frame()[["age", "stay"]], "stay", epsilon=1.0, delta=1e-8)
    assert numbers.certificate.algorithm == "column-shares + private-scaler"
    assert numbers.certificate.epsilon == 1.0  # it was fixed before it was known that there are no texts
    assert numbers.certificate.verify()


# -- what is found --------------------------------------------------------------------------------------------------


def test_every_kind_of_column_is_recognised():
    """Counts, ranks and shares are many standard errors away from where a draft would say something else."""
    made = estimate(frame(), "stay", epsilon=2.0)
    columns = columns_of(made)
    assert {name for name, column in columns.items() if column.role == "ignore"} == {"patient id", "name", "empty"}
    assert columns["age"].bounds == (10, 100)
    assert columns["share"].bounds == (0, 1)  # the finest step is 1, a billionth of --largest
    assert columns["ward"].categories == ("A", "B, east", 'C "new"')
    assert columns["ward"].base == "A"
    assert columns["admission_type"].categories == (1, 2, 3)
    first, last = columns["seen"].bounds
    assert date(2010, 1, 1) <= first <= date(2015, 1, 1)
    assert date(2020, 12, 31) <= last <= date(2025, 12, 31)
    assert columns["often empty"].has_indicator
    assert columns["stay"].role == "target"
    low, high = columns["stay"].bounds
    assert 0 <= low <= 5
    assert 10 < high <= 50
    assert "read_from_data" not in made.text
    assert "20000" in made.text
    assert Schema.from_dict(tomllib.loads(made.text)).spent.epsilon == 2.0


def test_a_smaller_largest_sees_finer():
    columns = columns_of(estimate(frame(), "stay", epsilon=2.0, largest=100.0))
    low, high = columns["share"].bounds
    assert abs(low) <= 0.1
    assert high == 0.5


def test_many_columns_that_are_alike_are_declared_together():
    rng = np.random.default_rng(0)
    genes = pd.DataFrame(rng.uniform(0, 15, (5000, 60)), columns=[f"gene {at}" for at in range(60)])
    made = estimate(genes.assign(stay=genes["gene 3"] + 1), "stay", epsilon=50.0)
    schema = Schema.from_dict(tomllib.loads(made.text))
    assert [column.name for column in schema.columns] == ["stay"]
    low, high = schema.others.bounds
    assert -2 <= low <= 0
    assert high == 20
    assert 5 <= schema.others.typical <= 10
    assert not schema.others.read_from_data


def test_a_target_without_classes_enough_is_left_to_the_reader():
    data = frame()
    data["stay"] = [f"text {i}" for i in range(len(data))]
    text = estimate(data, "stay", epsilon=1.0).text
    assert "write the public ones here" in text
    with pytest.raises(ValueError, match="'stay': categories = \\[\\] must be"):
        Schema.from_dict(tomllib.loads(text))


RARE = ["7.5", "750000000", "8e", "1000000000", "the only one", "1066", "10000000", "person 0", "person 1"]


def test_nothing_that_one_row_holds_is_ever_in_a_draft():
    """200 drafts at epsilon 1 of 2000 rows. A text of one row is published with a chance of delta/4 = 6e-8, and an end
    of a range is off by two rank errors with one of 226/(20 * 226)^2 = 1.1e-5. There are one column of texts and six
    ends in each draft, so the false alarm rate of all of them together is below .014."""
    data = frame(2000)[["age", "ward", "seen", "stay"]]
    for _ in range(200):
        made = estimate(data, "stay", epsilon=1.0)
        body = made.text.split("[columns", 1)[1]
        assert not [rare for rare in RARE if rare in body]
        assert not [rare for rare in ("the only one", "750000000", "1066") if rare in made.certificate.to_json()]


def test_adult_at_epsilon_one(data_dir, tmp_path):
    """These ends are others only if they are off by two rank errors, a chance of 1.1e-5 each; counts are five standard
    errors and more away from the threshold. False alarm rate below 1e-4; in 300 drafts there was none."""
    write_table("adult", tmp_path / "adult.csv", folder=data_dir)
    made = estimate(tmp_path / "adult.csv", "income", epsilon=1.0)
    columns = columns_of(made)
    assert columns["age"].bounds == (10, 100)
    assert columns["hours-per-week"].bounds[1] == 100
    assert set(columns["education"].categories) >= {"HS-grad", "Some-college", "Bachelors", "Masters", "11th"}
    assert "Preschool" not in columns["education"].categories  # 51 rows, and the threshold is above 200
    assert columns["sex"].categories == ("Female", "Male")
    assert columns["income"].categories == ("<=50K", ">50K")
    schema = Schema.from_dict(tomllib.loads(made.text))
    model = SparseClassifier.from_schema(schema, sparsity=10, epsilon=1.0, hardened=True).fit(tmp_path / "adult.csv")
    assert model.certificate_.grade == "proved"
    assert any("the schema's own estimates cost epsilon=1 at" in note for note in model.certificate_.notes)
    together = combine(made.certificate, model)
    assert together.verify()
    assert 1.2 < together.epsilon < 2.0


# -- refusals -------------------------------------------------------------------------------------------------------


def test_too_few_rows_are_refused_before_anything_is_spent(tmp_path):
    Ledger(tmp_path / "b.db").grant("t", 1.0, 1e-3)
    with pytest.raises(ValueError, match="DATA has 200 rows, too few to draft 10 columns with this budget"):
        estimate(frame(200), "stay", epsilon=1.0, ledger=str(tmp_path / "b.db"), dataset="t")
    assert Ledger(tmp_path / "b.db").spent("t").epsilon == 0


def test_what_will_be_little_worth_is_said():
    with pytest.warns(WideRanges, match="may be off by .* of 500 rows"):
        estimate(frame(500)[["age", "share", "stay"]], "stay", epsilon=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate(frame(), "stay", epsilon=1.0)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"target": "hay"}, "'hay' is not a column"),
        ({"epsilon": math.inf}, "reads its values from the data"),
        ({"epsilon": -1.0}, "epsilon=-1.0 must be"),
        ({"delta": 0.0}, "delta"),
        ({"largest": 0.0}, "--largest=0.0 must be"),
        ({"data": pd.DataFrame({"stay": [1.0]})}, "DATA has 1 row"),
        ({"data": pd.DataFrame(np.ones((5, 2)), columns=["stay", "stay"])}, "two columns of one name"),
    ],
)
def test_what_cannot_be_done_is_said(change, says):
    with pytest.raises(ValueError, match=says):
        estimate(**{"data": frame(50), "target": "stay", "epsilon": 1.0, **change})


# -- the command ----------------------------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame(5000).to_csv("t.csv", index=False)
    return tmp_path


def run(*arguments, status=0):
    ended = CliRunner().invoke(app, list(arguments))
    assert ended.exit_code == status, ended.output
    return ended


DRAFT = ("schema", "draft", "t.csv", "--target", "stay", "--epsilon", "2")


def test_from_a_draft_to_a_model(here):
    said = run(*DRAFT).stdout
    assert "It cost epsilon 2 at delta 4e-08 of the rows' budget: thresher verify t.certificate.json" in said
    assert "The certificate holds." in run("verify", "t.certificate.json").stdout
    assert "Read from the data" not in run("schema", "check", "t.csv", "--schema", "t.toml").stdout
    fitted = run(
        "fit", "t.csv", "--schema", "t.toml", "--sparsity", "2", "--epsilon", "4", "--hardened", "--json"
    ).stdout
    certificate = json.loads(fitted)["certificate"]
    assert certificate["grade"] == "proved"
    assert any("schema's own estimates cost epsilon=2" in note for note in certificate["notes"])
    again = run(*DRAFT, status=2)
    assert "--out='t.toml' exists" in again.stderr


def test_the_ledger_pays_once_for_the_whole_draft_or_nothing_is_written(here):
    """A grant of exactly what is asked for is enough."""
    Ledger("b.db").grant("t", 2.0, 4e-8)
    run(*DRAFT, "--ledger", "b.db", "--dataset", "t")
    ledger = Ledger("b.db")
    assert ledger.spent("t").epsilon == pytest.approx(2.0, rel=1e-3)
    _, entry = ledger.history("t")
    assert (entry.algorithm, entry.status) == ("schema draft", "committed")
    assert ledger.verify(certificate=Certificate.read("t.certificate.json"))
    refused = run(*DRAFT, "--ledger", "b.db", "--dataset", "t", "--out", "u.toml", status=2)
    assert "costs epsilon" in refused.stderr
    assert not list(here.glob("u.*"))


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--person", "patient id"], "estimates with --epsilon protect rows, not people"),
        (["--dataset", "t"], "give ledger= as well"),
        (["--analyst", "eve"], "has a meaning only with --ledger"),
        (["--out", "no/t.toml"], "cannot be written"),
    ],
)
def test_the_command_refuses_in_one_line_and_writes_nothing(here, more, says):
    ended = run(*DRAFT, *more, status=2)
    assert says in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1
    assert not list(here.glob("t.*ml")) + list(here.glob("*.json"))


def test_a_budget_without_epsilon_is_refused(here):
    ended = run("schema", "draft", "t.csv", "--target", "stay", "--delta", "1e-6", status=2)
    assert "nothing is spent without --epsilon" in ended.stderr


def test_json_of_an_estimated_draft(here):
    record = json.loads(run(*DRAFT, "--json").stdout)
    assert record["spent"] == {"epsilon": 2.0, "delta": 4e-8}
    assert record["columns"]["stay"]["role"] == "target"


def test_a_regressor_takes_an_estimated_schema():
    data = frame(5000)
    facts = tomllib.loads(estimate(data, "stay", epsilon=2.0).text)
    model = SparseRegressor.from_schema(facts, sparsity=2, epsilon=4.0, hardened=True)
    assert model.fit(data).certificate_.grade == "proved"
