"""The page of a model says what its file says, of every kind of model, and holds no row."""

import math
import re
import warnings
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from thresher import Ledger, PrivacyWarning, SparseClassifier, SparseRegressor
from thresher.federated import FederatedDenseClassifier, FederatedSparseClassifier
from thresher.local.estimators import LocalSparseClassifier, LocalSparseRegressor
from thresher.models.dense import DenseClassifier, DenseRegressor
from thresher.models.files import load_model

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (4000, 20))
y = 2 * X[:, 3] - X[:, 7] + rng.normal(0, 0.3, 4000)
two, three = (y > 0).astype(int), np.digitize(y, [-0.6, 0.6])
hospitals = [(X[:1500], two[:1500]), (X[1500:], two[1500:])]

BOUNDED = {"feature_bound": 1.0, "random_state": 0}
NUMBERS = {**BOUNDED, "target_bound": 4.0}
KINDS = {
    "numbers": lambda: SparseRegressor(3, epsilon=1.0, **NUMBERS).fit(X, y),
    "added rows": lambda: SparseRegressor(3, epsilon=1.0, adjacency="add-remove", n_public=4000, **NUMBERS).fit(X, y),
    "two classes": lambda: SparseClassifier(3, epsilon=2.0, **BOUNDED).fit(X, two),
    "three classes": lambda: SparseClassifier(3, epsilon=2.0, **BOUNDED).fit(X, three),
    "each class": lambda: SparseClassifier(3, epsilon=6.0, algorithm="pursuit", **BOUNDED).fit(X, three),
    "batches": lambda: DenseClassifier(1.0, classes=[0, 1], **BOUNDED).fit(X, two),
    "a filter": lambda: DenseRegressor(1.0, algorithm="dp-agd", **NUMBERS).fit(X, y),
    "not private": lambda: SparseRegressor(3, epsilon=math.inf, algorithm="ight", **NUMBERS).fit(X, y),
    "local": lambda: LocalSparseRegressor(2, 2.0, **NUMBERS).fit(X, y),
    "labels": lambda: LocalSparseClassifier(2, 2.0, algorithm="label-ldp-iht", random_state=0).fit(X, three),
    "parties": lambda: FederatedSparseClassifier(2, epsilon=1.0, classes=[0, 1], **BOUNDED).fit(hospitals),
    "printed": lambda: FederatedDenseClassifier(1.0, algorithm="rajkumar-agarwal", **BOUNDED).fit(hospitals),
}


def fitted(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return KINDS[kind]()


def page_of(model):
    with TemporaryDirectory() as folder:
        model.report(f"{folder}/page.html")
        return Path(folder, "page.html").read_text()


def text_of(html):
    """What is to be read, without tags."""
    return " ".join(unescape(re.sub("<style.*?</style>|<[^>]+>", " ", html, flags=re.DOTALL)).split())


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_has_a_page_and_its_file_gives_the_same(kind, tmp_path):
    model = fitted(kind)
    page = page_of(model)
    assert not re.search(r'(src|href)="(?!#)', page)
    assert "<script" not in page
    words = text_of(page)
    assert f"fitted by {model.algorithm_} to a table of 4,000 rows and 20 columns" in words
    assert f"It uses {len(model.support_)} of the columns" in words
    for title in ("Coefficients", "What was released", "What it cost", "With another epsilon", "What it rests on"):
        assert f">{title}</h2>" in page
    for at in model.support_:
        assert f"column {at}" in words
    assert model.certificate_.trust["must be trusted"] in words
    assert model.certificate_.to_json().split() == unescape(re.search("<pre>(.*)</pre>", page, re.DOTALL)[1]).split()
    model.save(tmp_path / "model.json")
    load_model(tmp_path / "model.json").report(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page


def test_what_may_be_published_is_said():
    for kind, model in {kind: fitted(kind) for kind in ("numbers", "not private", "printed")}.items():
        words = text_of(page_of(model))
        assert ("May be published:" in words) == (kind == "numbers")
        assert ("Do not publish." in words) == (kind != "numbers")
    assert "random_state was set" in text_of(page_of(fitted("numbers")))


@pytest.mark.parametrize(("epsilon", "right"), [(math.log(3), "75 %"), (math.log(9), "90 %")])
def test_epsilon_is_explained_by_what_an_attacker_can_guess(epsilon, right):
    """e^epsilon to one are the odds of a guess at best, beside a delta of 6e-8."""
    model = SparseRegressor(3, epsilon=epsilon, **NUMBERS).fit(X, y)
    assert f"guesses right at most {right} of the time" in text_of(page_of(model)).replace("\xa0", " ")


def cells(page, columns):
    """The rows of the table with these column names, as text."""
    for head, body in re.findall("<thead>(.*?)</thead><tbody>(.*?)</tbody>", page, flags=re.DOTALL):
        if re.findall("<th[^>]*>(.*?)</th>", head)[: len(columns)] == columns:
            return [re.findall("<td[^>]*>(.*?)</td>", row) for row in body.split("</tr>") if row]
    raise AssertionError(f"no table with {columns}")


def test_coefficients_come_with_their_intervals_and_both_parts_of_their_errors():
    model = fitted("numbers")
    rows = cells(page_of(model), ["feature", "coefficient", "90 % interval"])
    order = np.argsort(-np.abs(model.coef_[model.support_]))
    for row, at in zip(rows, order, strict=False):
        sure, (low, high) = model.uncertainty_, model.intervals(0.9)[at]
        column = model.support_[at]
        errors = [f"{part[at]:.3g}" for part in (sure.standard_errors, sure.noise, sure.sampling)]
        assert row[:2] == [f"column {column}", f"{model.coef_[column]:.3g}"]
        assert row[2:6] == [f"{low:.4g} to {high:.4g}", *errors]
        assert row[6] == f"{100 * sure.stability[at]:.0f} %"
    assert rows[-1][:2] == ["(intercept)", f"{model.intercept_:.3g}"]


def test_a_model_without_intervals_says_why():
    words = text_of(page_of(fitted("batches")))
    assert "There are no intervals: rows and epsilon are too few" in words
    assert "90 % interval" not in words


@pytest.mark.parametrize("kind", ["three classes", "each class"])
def test_each_class_has_its_coefficients(kind):
    model = fitted(kind)
    page = page_of(model)
    assert ("90 % interval" in page) == (kind == "each class")
    assert "nan" not in text_of(page)
    for k in range(3):
        section = page[page.index(f"<h3>Class {k}</h3>") :]
        named = re.findall("<td[^>]*>column (.*?)</td>", section[: section.index("</table>")])
        assert sorted(map(int, named)) == np.flatnonzero(model.coef_[k]).tolist()


@pytest.mark.parametrize("kind", ["numbers", "a filter"])
def test_shares_of_the_budget_add_up(kind):
    page = page_of(fitted(kind))
    chart = next(svg for svg in re.findall("<svg.*?</svg>", page, flags=re.DOTALL) if "% of the budget" in svg)
    shares = [float(share) for share in re.findall(r">([0-9.e-]+) %</text>", chart)]
    assert len(shares) > 2
    assert sum(shares) == pytest.approx(100, abs=0.3)  # of numbers with three digits


def test_more_budget_is_predicted_to_give_less_noise():
    rows = cells(page_of(fitted("numbers")), ["epsilon"])
    assert [row[-1] for row in rows] == ["", "", "this model", "", ""]
    for column in range(1, 5):
        values = [float(row[column]) for row in rows]
        assert values == sorted(values, reverse=True)
    assert float(rows[2][1]) == 1


def test_the_zero_model_has_a_page():
    model = SparseRegressor(3, epsilon=0.01, **NUMBERS).fit(X[:200], np.zeros(200))
    assert not len(model.support_)
    words = text_of(page_of(model))
    assert "It uses none of the columns" in words
    assert "No feature stood out of the noise" in words


def test_no_value_of_a_row_is_on_the_page():
    planted = X.copy()
    planted[17, 3], target = 0.7364519, y.copy()
    target[17] = 3.2718281
    page = page_of(SparseRegressor(3, epsilon=8.0, **NUMBERS).fit(planted, target))
    assert "column 3" in page
    for value in ("0.73645", "3.27182"):
        assert value not in page


def test_names_of_columns_are_shown_as_they_are():
    model = fitted("numbers")
    model.feature_names_in_ = np.array([f"$x_{j}$ <script>{'é' * 40}</script> 血圧" for j in range(20)], dtype=object)
    page = page_of(model)
    assert "<script" not in page
    assert f"$x_3$ <script>{'é' * 40}</script> 血圧" in unescape(page)


def test_the_page_names_the_entry_that_paid(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.grant("patients <b>", 9.0, 1e-9)
    page = page_of(SparseRegressor(3, epsilon=8.0, ledger=ledger, dataset="patients <b>", **NUMBERS).fit(X, y))
    assert f"data set patients <b> of a ledger, entry {ledger.history('patients <b>')[1].id}" in unescape(page)
    assert "patients <b>" not in page
    assert "paid by" not in page_of(fitted("numbers"))


def test_a_page_that_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"path=.*cannot be written"):
        fitted("numbers").report(tmp_path / "nowhere" / "report.html")
