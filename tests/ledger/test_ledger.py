"""The account book, in a file and in a database: grants, reservations, copies of estimators, tampering."""

from __future__ import annotations

import json
import pickle
import warnings

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline

from inside import store_of
from spending import a_model, attempt, small_rows
from thresher import BudgetExceeded, Certificate, DenseRegressor, Ledger, PrivacyWarning, SparseRegressor, load_model
from thresher.ledger import LedgerError, LedgerUnreachableError
from thresher.ledger.account import Account
from thresher.models.scaler import PrivateScaler
from thresher.privacy.accounting import Cost
from thresher.privacy.certificate import combine
from thresher.privacy.conversions import zcdp_epsilon, zcdp_rho
from thresher.vaults import CentralVault

DELTA = 1e-6


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 5))
    return X, X[:, 0] + 0.1 * rng.normal(size=300)


def model_of(ledger, **other):
    facts = {"epsilon": 1.0, "delta": DELTA, "feature_bound": 1.0, "target_bound": 2.0, "dataset": "people"}
    return SparseRegressor(2, ledger=ledger, **{**facts, **other})


def fits_in(ledger, dataset="people"):
    return [entry for entry in ledger.history(dataset) if entry.kind == "fit"]


# -- grants -----------------------------------------------------------------------------------------------------


def test_an_account_starts_full_and_composes_by_the_accountant(ledger, rows):
    """Pursuit's releases are priced in zCDP, so three fits of epsilon 1 cost what three times their zCDP costs."""
    ledger.grant("people", 3.0, DELTA)
    assert (ledger.spent("people").epsilon, ledger.spent("people").delta) == (0.0, DELTA)
    assert (ledger.remaining("people").epsilon, ledger.affordable("people")) == (3.0, 3.0)
    for k in (1, 2, 3):
        model_of(ledger).fit(*rows)
        total = zcdp_epsilon(k * zcdp_rho(1.0, DELTA), DELTA)
        assert ledger.spent("people").epsilon == pytest.approx(total, rel=1e-9)
        assert ledger.remaining("people").epsilon == pytest.approx(3 - total, rel=1e-9)
    assert total < 2
    assert [entry.status for entry in fits_in(ledger)] == ["committed"] * 3
    assert [entry.epsilon for entry in fits_in(ledger)] == pytest.approx([1.0] * 3)


@pytest.mark.parametrize("algorithm", ["pursuit", "dp-ight", "peeling", "frank-wolfe"])
@pytest.mark.parametrize("before", [0.3, 1.0, 2.0])
def test_a_fit_of_the_epsilon_that_is_affordable_is_accepted_and_one_a_tenth_larger_is_not(
    tmp_path, rows, algorithm, before
):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.grant("people", 2.5, DELTA)
    model_of(ledger, epsilon=before).fit(*rows)
    left = ledger.affordable("people")
    assert left > ledger.remaining("people").epsilon
    with pytest.raises(BudgetExceeded, match="one more fit may have"):
        model_of(ledger, epsilon=1.1 * left, algorithm=algorithm).fit(*rows)
    model_of(ledger, epsilon=left, algorithm=algorithm).fit(*rows)
    assert ledger.spent("people").epsilon <= 2.5


def test_one_fit_may_take_the_whole_grant_whatever_proves_its_price(tmp_path, rows):
    for at, model in enumerate(
        [model_of(None, algorithm="dp-ight"), model_of(None),
         DenseRegressor(1.0, DELTA, algorithm="dp-sgd", feature_bound=1.0, target_bound=2.0)]
    ):  # fmt: skip
        ledger = Ledger(tmp_path / f"{at}.db")
        ledger.grant("people", 1.0, DELTA)
        model.set_params(ledger=ledger, dataset="people").fit(*rows)
        with pytest.raises(BudgetExceeded):
            clone(model).set_params(epsilon=0.05).fit(*rows)


def test_a_later_grant_takes_the_place_of_an_earlier_one(ledger, rows):
    ledger.grant("people", 1.0, DELTA)
    model_of(ledger).fit(*rows)
    with pytest.raises(BudgetExceeded):
        model_of(ledger).fit(*rows)
    ledger.grant("people", 2.0, DELTA)
    model_of(ledger).fit(*rows)
    ledger.grant("people", 0.5, DELTA)
    assert ledger.remaining("people").epsilon == ledger.affordable("people") == 0
    with pytest.raises(BudgetExceeded):
        model_of(ledger, epsilon=0.01).fit(*rows)
    assert [entry.epsilon for entry in ledger.history("people") if entry.kind == "grant"] == [1.0, 2.0, 0.5]


def test_analysts_share_a_grant_and_have_parts_of_their_own(address, key, ledger, rows):
    ledger.grant("people", 2.0, DELTA)
    ledger.grant("people", 1.0, DELTA, analyst="ann")
    ledger.grant("people", 1.9, DELTA, analyst="bob")
    ann, bob, eve = (Ledger(address, key=key, analyst=name) for name in ("ann", "bob", "eve"))
    model_of(ann).fit(*rows)
    with pytest.raises(BudgetExceeded, match="analyst 'ann'"):
        model_of(ann, epsilon=0.3).fit(*rows)
    model_of(bob).fit(*rows)
    with pytest.raises(BudgetExceeded, match="2 granted, "):  # bob's own part would do
        model_of(bob, epsilon=1.3).fit(*rows)
    with pytest.raises(LedgerError, match="no grant for analyst='eve'"):
        model_of(eve).fit(*rows)
    with pytest.raises(LedgerError, match="say who asks"):
        model_of(ledger).fit(*rows)
    assert ledger.spent("people", "ann").epsilon == pytest.approx(1.0)
    assert ledger.spent("people").epsilon == pytest.approx(zcdp_epsilon(2 * zcdp_rho(1.0, DELTA), DELTA))
    assert [entry.analyst for entry in fits_in(ledger)] == ["ann", "bob"]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"epsilon": 0.0}, "epsilon=0.0"),
        ({"epsilon": float("inf")}, "cannot be granted"),
        ({"delta": 1.0}, "delta=1.0"),
        ({"dataset": ""}, "dataset=''"),
        ({"unit": "household"}, "unit='household'"),
        ({"adjacency": "nearby"}, "adjacency='nearby' must be one of 'replace-one', 'add-remove'"),
        ({"analyst": "ann"}, "as a whole"),
    ],
)
def test_grants_that_cannot_be(tmp_path, wrong, words):
    facts = {"dataset": "people", "epsilon": 1.0, "delta": DELTA, **wrong}
    with pytest.raises(ValueError, match=words):
        Ledger(tmp_path / "budget.db").grant(**facts)


def test_adjacency_and_unit_of_an_account_stay(ledger, rows):
    ledger.grant("people", 5.0, DELTA)
    with pytest.raises(LedgerError, match="cannot change"):
        ledger.grant("people", 5.0, DELTA, adjacency="add-remove")
    with pytest.raises(LedgerError, match="cannot change"):
        ledger.grant("people", 5.0, DELTA, unit="person")
    with pytest.raises(LedgerError, match="adjacency='replace-one', and the fit is for 'add-remove'"):
        model_of(ledger, adjacency="add-remove", n_public=300).fit(*rows)
    assert ledger.spent("people").epsilon == 0


def test_fits_of_rows_and_of_people_are_paid_from_different_accounts(ledger, rows):
    X, y = rows
    people = np.arange(300) // 3
    ledger.grant("people", 5.0, DELTA, unit="person")
    ledger.grant("rows", 5.0, DELTA)
    with pytest.raises(LedgerError, match=r"granted per person.*groups="):
        model_of(ledger).fit(X, y)
    model_of(ledger).fit(X, y, groups=people)
    (entry,) = fits_in(ledger)
    assert entry.epsilon == pytest.approx(1.0)
    X = np.random.default_rng(7).uniform(-1, 1, (300, 5))
    with pytest.raises(LedgerError, match=r"granted per row.*leave out groups="):
        model_of(ledger, dataset="rows").fit(X, y, groups=people)
    model_of(ledger, dataset="rows").fit(X, y)
    assert len(fits_in(ledger, "rows")) == 1


# -- fits -------------------------------------------------------------------------------------------------------


def test_the_certificate_carries_the_entry_and_the_model_file_no_address(ledger, rows, tmp_path):
    ledger.grant("people", 3.0, DELTA)
    model = model_of(ledger).fit(*rows)
    (entry,) = fits_in(ledger)
    assert model.certificate_.ledger == {"dataset": "people", "entry": entry.id, "hash": entry.hash}
    assert Certificate.from_json(model.certificate_.to_json()).ledger == model.certificate_.ledger
    assert model.certificate_.verify()
    model.save(tmp_path / "model.json")
    saved = (tmp_path / "model.json").read_text()
    assert entry.id in saved
    assert "sqlite" not in saved
    assert "postgres" not in saved
    assert ledger.verify(certificate=load_model(tmp_path / "model.json").certificate_)


def test_steps_of_a_pipeline_pay_one_after_the_other(ledger, rows):
    ledger.grant("people", 3.0, DELTA)
    X, y = rows
    scaler = PrivateScaler(0.5, DELTA, feature_bound=5.0, quantiles=(0.25, 0.75), ledger=ledger, dataset="people")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline = Pipeline([("scale", scaler), ("model", model_of(ledger, epsilon=0.5))]).fit(X, y)
    total = combine(pipeline)
    assert [entry.algorithm for entry in fits_in(ledger)] == ["private-scaler", "newton"]
    assert ledger.spent("people").epsilon == pytest.approx(Cost.zcdp(2 * zcdp_rho(0.5, DELTA)).epsilon(DELTA)[0])
    assert [part["ledger"]["entry"] for part in total.settings["parts"]] == [entry.id for entry in fits_in(ledger)]


class NeverOpened(CentralVault):
    def __init__(self, *_):
        raise AssertionError("a vault was opened")


def test_a_fit_that_cannot_be_paid_opens_no_vault_and_keeps_the_old_model(ledger, rows, monkeypatch):
    ledger.grant("people", 1.0, DELTA)
    model = model_of(ledger).fit(*rows)
    before = model.coef_
    monkeypatch.setattr("thresher.models.estimator.CentralVault", NeverOpened)
    with pytest.raises(BudgetExceeded, match="Nothing was read or spent"):
        model.fit(*rows)
    assert model.coef_ is before
    assert len(fits_in(ledger)) == 1


class CrashError(Exception):
    pass


def test_a_fit_that_breaks_off_stays_counted(ledger, rows, monkeypatch):
    ledger.grant("people", 3.0, DELTA)

    def crash(*_):
        raise CrashError

    monkeypatch.setattr(CentralVault, "gradient", crash)
    with pytest.raises(CrashError):
        model_of(ledger, algorithm="dp-ight").fit(*rows)
    assert [entry.status for entry in fits_in(ledger)] == ["reserved"]
    assert ledger.spent("people").epsilon == pytest.approx(1.0)


def test_a_ledger_that_is_gone_at_the_end_loses_neither_the_model_nor_the_reservation(tmp_path, rows, monkeypatch):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.grant("people", 3.0, DELTA)

    def gone(*_):
        raise LedgerUnreachableError("the disk is full")

    monkeypatch.setattr(Ledger, "commit", gone)
    with pytest.warns(PrivacyWarning, match="the disk is full"):
        model = model_of(ledger).fit(*rows)
    assert model.certificate_.ledger["entry"] == fits_in(ledger)[0].id
    assert fits_in(ledger)[0].status == "reserved"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"feature_bound": None}, "feature_bound=None"),
        ({"epsilon": -1.0}, "epsilon=-1.0"),
        ({"sparsity": 99}, "sparsity=99"),
        ({"dataset": None}, "dataset=None"),
        ({"dataset": "others"}, "dataset='others' has no grant.*'people'"),
        ({"ledger": None}, "give ledger= as well"),
        ({"ledger": "mysql://x"}, "ledger='mysql://x' must be"),
        ({"ledger": "sqlite:///:memory:"}, "forgotten"),
        ({"ledger": "sqlite:////nowhere/budget.db"}, "does not exist; make it with: thresher ledger create"),
    ],
)
def test_bad_input_spends_nothing(tmp_path, rows, wrong, words):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.grant("people", 3.0, DELTA)
    with pytest.raises(ValueError, match=words):
        model_of(ledger).set_params(**wrong).fit(*rows)
    assert ledger.spent("people").epsilon == 0
    X, y = rows
    with pytest.raises(ValueError, match="NaN"):
        model_of(ledger).fit(np.where(X[3, 3] == X, np.nan, X), y)
    assert ledger.verify().entries == 2


@pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")
def test_what_has_no_finite_price_is_refused(tmp_path, rows):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.grant("people", 1e6, DELTA)
    with pytest.raises(BudgetExceeded, match="epsilon=inf"):
        model_of(ledger, epsilon=float("inf"), algorithm="ight").fit(*rows)


# -- copies -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["ledger", "address"])
def test_clones_pickles_and_copies_spend_from_the_same_account(address, key, ledger, rows, form, monkeypatch):
    monkeypatch.setenv("THRESHER_LEDGER_KEY", str(key))
    ledger.grant("people", 2.2, DELTA)
    model = model_of(ledger if form == "ledger" else address)
    for copied in (clone(model), pickle.loads(pickle.dumps(model)), clone(clone(model))):
        copied.fit(*rows)
    again = pickle.loads(pickle.dumps(model.set_params(epsilon=1.3)))
    with pytest.raises(BudgetExceeded):
        again.fit(*rows)
    assert len(fits_in(ledger)) == 3


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_workers_of_joblib_cannot_overspend_together(ledger, rows, backend):
    """Two fits of epsilon 1 cost 1.45, three 1.81: of six, two are made."""
    ledger.grant("people", 1.6, DELTA)
    with joblib.parallel_config(backend=backend):
        outcomes = joblib.Parallel(n_jobs=2)(joblib.delayed(attempt)(model_of(ledger), *rows) for _ in range(6))
    assert sorted(outcomes) == ["made"] * 2 + ["refused"] * 4
    assert len(fits_in(ledger)) == 2


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_grid_search_of_ten_fits_at_epsilon_1_under_a_grant_of_one_and_a_half_stops_at_the_second(
    ledger, rows, n_jobs
):
    """The grant is at delta 1/n^2. A fit on half of the rows is (1, 4/n^2)-DP: 1.09 at 1/n^2, and two are 1.60."""
    ledger.grant("people", 1.5, 1 / 300**2)
    model = model_of(ledger, delta=None)
    grid = {"sparsity": [1, 2, 3, 4, 5]}
    with pytest.warns(FitFailedWarning, match="9 fits failed out of a total of 10"), pytest.raises(BudgetExceeded):
        GridSearchCV(model, grid, cv=2, n_jobs=n_jobs).fit(*rows)  # the refit is refused as well
    assert len(fits_in(ledger)) == 1
    with pytest.raises(BudgetExceeded, match="Nothing was read or spent"):
        GridSearchCV(model, grid, cv=2, n_jobs=n_jobs, error_score="raise").fit(*rows)
    assert ledger.spent("people").epsilon < 1.5


def test_cross_validation_pays_for_every_fold(ledger, rows):
    ledger.grant("people", 10.0, DELTA)
    cross_val_score(model_of(ledger), *rows, cv=5)
    assert len(fits_in(ledger)) == 5


# -- the same rows ----------------------------------------------------------------------------------------------


def test_the_same_rows_under_another_name_are_refused_before_anything_is_spent(ledger, rows):
    X, y = rows
    ledger.grant("people", 3.0, DELTA)
    ledger.grant("others", 3.0, DELTA)
    model_of(ledger).fit(X, y)
    shuffled = np.random.default_rng(1).permutation(300)
    for copy in (X, X[shuffled], X[shuffled][:220], np.asfortranarray(X)):
        with pytest.raises(LedgerError, match=r"spent on as 'people'.*use dataset='people'"):
            model_of(ledger, dataset="others").fit(copy, y[: len(copy)])
    assert ledger.spent("others").epsilon == 0
    model_of(ledger, dataset="others").fit(np.random.default_rng(2).uniform(-1, 1, (300, 5)), y)


# -- tampering --------------------------------------------------------------------------------------------------


def sql(ledger, statement, **values):
    with store_of(ledger).transaction() as run:
        return run(statement, **values)


TAMPERING = {
    "a changed cost": "UPDATE thresher_ledger SET body = REPLACE(body, 'times', 'tlmes') WHERE sequence = 4",
    "a changed grant": "UPDATE thresher_ledger SET body = REPLACE(body, '3.0', '9.0') WHERE sequence = 2",
    "a fit left out": "DELETE FROM thresher_ledger WHERE sequence = 4",
    "a fit left out, numbers closed": (
        "DELETE FROM thresher_ledger WHERE sequence = 4; "
        "UPDATE thresher_ledger SET sequence = sequence - 1 WHERE sequence > 4"
    ),
    "two entries swapped": (
        "UPDATE thresher_ledger SET sequence = 99 WHERE sequence = 4; UPDATE thresher_ledger SET sequence = 4 WHERE "
        "sequence = 6; UPDATE thresher_ledger SET sequence = 6 WHERE sequence = 99"
    ),
    "an entry put in": "INSERT INTO thresher_ledger SELECT 8, body, hash FROM thresher_ledger WHERE sequence = 2",
    "a changed hash": (
        "UPDATE thresher_ledger SET hash = (SELECT hash FROM thresher_ledger WHERE sequence = 4) WHERE sequence = 5"
    ),
}


@pytest.mark.parametrize("kind", TAMPERING)
def test_a_changed_row_is_detected_and_nothing_more_is_spent(address, key, ledger, rows, kind):
    ledger.grant("people", 3.0, DELTA)
    for _ in range(2):
        model_of(ledger).fit(*rows)
    assert ledger.verify().entries == 7  # opened, granted, rows, and two fits reserved and committed
    everything = "SELECT * FROM thresher_ledger ORDER BY sequence"
    before = sql(ledger, everything)
    for statement in TAMPERING[kind].split("; "):
        sql(ledger, statement)
    assert sql(ledger, everything) != before
    check = Ledger(address, key=key).verify()
    assert not check
    assert any("entry" in problem for problem in check.problems)
    with pytest.raises(LedgerError, match="entry"):
        model_of(Ledger(address, key=key)).fit(*rows)


def test_entries_cut_off_at_the_end_are_missed_by_whoever_kept_a_head_or_a_certificate(address, key, ledger, rows):
    ledger.grant("people", 3.0, DELTA)
    model = model_of(ledger).fit(*rows)
    head = ledger.verify().head
    ledger.grant("more", 1.0, DELTA)
    assert ledger.verify(head)  # still there
    sql(ledger, "DELETE FROM thresher_ledger WHERE sequence > 2")
    fresh = Ledger(address, key=key)
    assert fresh.verify()  # a chain that was cut off is a chain
    assert not fresh.verify(head)
    assert not fresh.verify(certificate=model.certificate_)
    with pytest.raises(LedgerError, match="gone"):
        ledger.spent("people")  # whoever has read it notices


def test_a_certificate_that_was_changed_is_not_the_one_that_was_committed(ledger, rows):
    ledger.grant("people", 3.0, DELTA)
    certificate = model_of(ledger).fit(*rows).certificate_
    record = {**json.loads(certificate.to_json()), "notes": ["all is well"]}
    assert ledger.verify(certificate=certificate)
    assert "committed with" in ledger.verify(certificate=Certificate.from_dict(record)).problems[0]
    plain = SparseRegressor(2, feature_bound=1.0, target_bound=2.0).fit(*rows).certificate_
    assert "names no entry" in ledger.verify(certificate=plain).problems[0]


def test_a_second_custodian_needs_the_first_ones_key(address, ledger, tmp_path):
    ledger.grant("people", 3.0, DELTA)
    with pytest.raises(LedgerError, match="cannot be read"):
        Ledger(address, key=tmp_path / "mine.key").grant("people", 9.0, DELTA)
    assert not (tmp_path / "mine.key").exists()


def test_a_ledger_that_was_not_made_says_how(address, key):
    Ledger(address.replace("budget.db", "other.db"), key=key).create()
    fresh = Ledger(address, key=key)
    if "sqlite" in address:
        with pytest.raises(LedgerError, match="does not exist; make it with: thresher ledger create"):
            fresh.spent("people")
        import sqlite3

        sqlite3.connect(address.removeprefix("sqlite:///")).execute("CREATE TABLE other (x)")
    else:
        sql(fresh, "DROP TABLE thresher_ledger")
    with pytest.raises(LedgerError, match="no ledger there yet; make it with: thresher ledger create"):
        fresh.spent("people")


def test_another_key_is_refused(address, key, ledger, tmp_path):
    ledger.grant("people", 3.0, DELTA)
    other = tmp_path / "other.key"
    other.write_bytes(bytes(32))
    with pytest.raises(LedgerError, match="not this ledger's"):
        Ledger(address, key=other).spent("people")
    key.unlink()
    with pytest.raises(LedgerError, match="cannot be read; put it back"):
        Ledger(address, key=key).spent("people")


def test_what_is_printed_of_a_ledger_has_no_password():
    pytest.importorskip("sqlalchemy")
    ledger = Ledger("postgresql://ann:geheim@db.example/base")
    assert "geheim" not in repr(ledger) + repr(model_of(ledger))
    assert "ann:***@db.example" in repr(ledger)


def test_an_address_is_a_file_whatever_the_working_directory(tmp_path, monkeypatch, rows):
    monkeypatch.chdir(tmp_path)
    ledger = Ledger("budget.db")
    ledger.grant("people", 3.0, DELTA)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    model_of(pickle.loads(pickle.dumps(ledger))).fit(*rows)
    assert len(fits_in(Ledger("../budget.db"))) == len(fits_in(Ledger(f"sqlite:///{tmp_path}/budget.db"))) == 1


def test_an_interruption_while_entries_are_read_counts_none_twice(address, key, ledger, monkeypatch):
    ledger.grant("people", 3.0, 1e-6)
    a_model(ledger).fit(*small_rows())
    once, spend = ledger.spent("people"), Account.spend

    def interrupted(*each):
        spend(*each)
        monkeypatch.setattr(Account, "spend", spend)
        raise KeyboardInterrupt

    other = Ledger(address, key=key)
    monkeypatch.setattr(Account, "spend", interrupted)
    with pytest.raises(KeyboardInterrupt):
        other.spent("people")
    assert other.spent("people") == once
