"""A store that does not keep what it is given: nothing is answered, or delivered, that nothing counts."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from inside import store_of
from spending import a_model, small_rows
from thresher import Ledger, Unsettled
from thresher.ledger import LedgerError, LedgerUnreachableError
from thresher.ledger.stores import TABLE, SQLiteStore
from thresher.vaults import CentralVault

pytestmark = pytest.mark.filterwarnings("ignore::thresher.NoiseDrowns")


class Opened(BaseException):
    pass


@pytest.fixture
def closed(monkeypatch):
    """Whoever opens a vault fails the test."""

    def opens(*_):
        raise Opened

    monkeypatch.setattr(CentralVault, "__init__", opens)


def interfere(address, *statements):
    """As somebody would who has the database, beside the library."""
    if address.startswith("sqlite"):
        connection = sqlite3.connect(address.removeprefix("sqlite:///"), isolation_level=None)
        for statement in statements:
            connection.execute(statement)
        connection.close()
        return
    import sqlalchemy

    engine = sqlalchemy.create_engine(address.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(sqlalchemy.text(statement))
    engine.dispose()


@pytest.fixture
def granted(ledger):
    ledger.grant("people", 3.0, 1e-6)
    return ledger


IN_SQLITE = {
    "a trigger that ignores": ["CREATE TRIGGER t BEFORE INSERT ON thresher_ledger BEGIN SELECT raise(ignore); END"],
    "a trigger that deletes": [
        "CREATE TRIGGER t AFTER INSERT ON thresher_ledger WHEN new.body LIKE '%reserve%' BEGIN "
        "DELETE FROM thresher_ledger WHERE sequence = new.sequence; END"
    ],
    "a view": [
        "ALTER TABLE thresher_ledger RENAME TO kept",
        "CREATE VIEW thresher_ledger AS SELECT * FROM kept",
        "CREATE TRIGGER t INSTEAD OF INSERT ON thresher_ledger BEGIN SELECT 1; END",
    ],
    "a clause": [
        "ALTER TABLE thresher_ledger RENAME TO kept",
        f"CREATE TABLE {TABLE.replace('hash TEXT', 'hash TEXT UNIQUE ON CONFLICT IGNORE')}",
        "INSERT INTO thresher_ledger SELECT * FROM kept",
    ],
    "a generated column": ["ALTER TABLE thresher_ledger ADD COLUMN twice AS (hash || hash)"],
}
FUNCTION = "CREATE OR REPLACE FUNCTION thresher_test() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {} END $$"
IN_POSTGRESQL = {
    "a trigger that ignores": [
        FUNCTION.format("RETURN NULL;"),
        "CREATE TRIGGER t BEFORE INSERT ON thresher_ledger FOR EACH ROW EXECUTE FUNCTION thresher_test()",
    ],
    "a trigger that deletes at the end": [
        FUNCTION.format("DELETE FROM thresher_ledger WHERE sequence = new.sequence; RETURN NULL;"),
        "CREATE CONSTRAINT TRIGGER t AFTER INSERT ON thresher_ledger DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION thresher_test()",
    ],
    "a rule": ["CREATE RULE r AS ON INSERT TO thresher_ledger DO INSTEAD NOTHING"],
    "a view": [
        "ALTER TABLE thresher_ledger RENAME TO thresher_ledger_kept",
        "CREATE VIEW thresher_ledger AS SELECT * FROM thresher_ledger_kept",
    ],
    "row security": ["ALTER TABLE thresher_ledger ENABLE ROW LEVEL SECURITY"],
    "a table that a crash empties": ["ALTER TABLE thresher_ledger SET UNLOGGED"],
    "a child": ["CREATE TABLE thresher_ledger_kept () INHERITS (thresher_ledger)"],
    "a generated column": ["ALTER TABLE thresher_ledger ADD COLUMN t text GENERATED ALWAYS AS (hash) STORED"],
    "a foreign key": [
        "CREATE TABLE thresher_ledger_kept AS SELECT * FROM thresher_ledger",
        "ALTER TABLE thresher_ledger_kept ADD PRIMARY KEY (sequence)",
        "ALTER TABLE thresher_ledger ADD FOREIGN KEY (sequence) REFERENCES thresher_ledger_kept ON DELETE CASCADE "
        "DEFERRABLE INITIALLY DEFERRED",
    ],
}


EACH = [("sqlite", kind) for kind in IN_SQLITE] + [("postgresql", kind) for kind in IN_POSTGRESQL]
VANISHING = [(store, kind) for store, kind in EACH if "trigger" in kind or kind == "a rule"]
on_each = pytest.mark.parametrize(("address", "kind"), EACH, indirect=["address"])
where_entries_vanish = pytest.mark.parametrize(("address", "kind"), VANISHING, indirect=["address"])


def interfere_by(address, kind):
    interfere(address, *(IN_SQLITE if address.startswith("sqlite") else IN_POSTGRESQL)[kind])


@pytest.mark.usefixtures("closed")
@on_each
def test_a_store_that_may_not_keep_entries_is_refused_before_a_row_is_read(address, key, granted, kind):
    interfere_by(address, kind)
    for ledger in (granted, Ledger(address, key=key)):
        with pytest.raises(LedgerError, match="entries may not be kept"):
            a_model(ledger).fit(*small_rows())
        with pytest.raises(LedgerError, match="entries may not be kept"):
            ledger.grant("people", 0.5, 1e-6)
        check = ledger.verify()
        assert not check
        assert "entries may not be kept" in check.problems[0]


@pytest.mark.usefixtures("closed")
@where_entries_vanish
def test_a_reservation_is_read_back_before_the_vault_opens(address, granted, monkeypatch, kind):
    """Even where nobody sees why it vanishes."""
    interfere_by(address, kind)
    monkeypatch.setattr(type(store_of(granted)), "_check_table", lambda *_: None)
    with pytest.raises(LedgerError, match="is gone"):
        a_model(granted).fit(*small_rows())


def during_the_fit(monkeypatch, happens):
    """Something that somebody does after the reservation, before the fit is done."""
    gradient = CentralVault.gradient

    def asked(self, *question):
        happens()
        return gradient(self, *question)

    monkeypatch.setattr(CentralVault, "gradient", asked)


GONE = {
    "it": "DELETE FROM thresher_ledger WHERE body LIKE '%reserve%'",
    "it and what followed": (
        "DELETE FROM thresher_ledger WHERE sequence >= "
        "(SELECT max(sequence) FROM thresher_ledger WHERE body LIKE '%reserve%')"
    ),
    "all but the first": "DELETE FROM thresher_ledger WHERE sequence > 1",
    "the table": "DROP TABLE thresher_ledger",
}


@pytest.mark.parametrize("gone", GONE)
@pytest.mark.parametrize("others", [None, "another process", "this process"])
def test_an_entry_that_is_gone_at_the_end_is_an_error_and_there_is_no_model(
    address, key, granted, monkeypatch, gone, others
):
    """Whether or not somebody else has written since, and whatever this process remembers."""
    rows, other = small_rows(), Ledger(address, key=key)
    happened = []

    def happens():
        if happened:
            return
        happened.append(True)
        if others:  # what this process writes itself it has read: the entry before is looked at no more
            (other if others == "another process" else granted).grant("others", 1.0, 1e-6)
        interfere(address, GONE[gone])

    during_the_fit(monkeypatch, happens)
    model = a_model(granted)
    with pytest.raises(LedgerError):
        model.fit(*rows)
    assert happened
    assert not {"certificate_", "coef_", "plan_"} & set(vars(model))


def test_a_file_that_is_gone_at_the_end_is_an_error(tmp_path, monkeypatch):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.grant("people", 3.0, 1e-6)
    during_the_fit(monkeypatch, lambda: (tmp_path / "budget.db").unlink(missing_ok=True))
    model = a_model(ledger)
    with pytest.raises(LedgerError, match="does not exist"):
        model.fit(*small_rows())
    assert not hasattr(model, "coef_")


def test_a_store_that_is_locked_at_the_end_loses_neither_model_nor_reservation(tmp_path, monkeypatch):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.grant("people", 3.0, 1e-6)
    monkeypatch.setattr("thresher.ledger.stores.PATIENCE", 0.01)
    locks = sqlite3.connect(tmp_path / "budget.db", isolation_level=None)
    during_the_fit(monkeypatch, lambda: None if locks.in_transaction else locks.execute("BEGIN IMMEDIATE"))
    with pytest.warns(Unsettled, match="locked"):
        model = a_model(ledger).fit(*small_rows())
    locks.execute("ROLLBACK")
    assert np.all(np.isfinite(model.coef_))
    assert [entry.status for entry in ledger.history("people")] == ["granted", "reserved"]


def test_what_cannot_be_reached_is_told_from_what_is_wrong(tmp_path):
    store = SQLiteStore(tmp_path / "budget.db")
    with store.transaction(create=True) as run:
        run("INSERT INTO thresher_ledger VALUES (1, 'body', 'hash')")
    with pytest.raises(LedgerError) as wrong, store.transaction() as run:
        run("INSERT INTO thresher_ledger VALUES (1, 'body', 'hash')")
    (tmp_path / "folder").mkdir()
    with pytest.raises(LedgerUnreachableError), SQLiteStore(tmp_path / "folder").transaction():
        pass
    assert not isinstance(wrong.value, LedgerUnreachableError)


def test_a_file_with_two_names_is_refused_since_each_has_a_journal_of_its_own(tmp_path):
    """Entries that are in the write-ahead log of one name are not seen, and not counted, under the other."""
    one, other = tmp_path / "budget.db", tmp_path / "same.db"
    ledger = Ledger(one)
    ledger.grant("people", 3.0, 1e-6)
    os.link(one, other)
    for twice in (ledger, Ledger(other, key=ledger.key_path)):
        with pytest.raises(LedgerError, match="hard link"):
            a_model(twice).fit(*small_rows())
    other.unlink()
    assert a_model(ledger).fit(*small_rows()).certificate_.ledger is not None


def test_a_file_whose_latest_entries_lie_in_another_is_refused(tmp_path):
    """A copy of the file alone was a whole chain, of a ledger that nothing had been spent from."""
    ledger = Ledger(tmp_path / "budget.db")
    ledger.grant("people", 3.0, 1e-6)
    with closing(sqlite3.connect(tmp_path / "budget.db")) as connection:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("SELECT * FROM thresher_ledger").fetchall()  # who reads keeps the log from being put away
        with pytest.raises(LedgerError, match="write-ahead log"):
            a_model(ledger).fit(*small_rows())
        connection.execute("PRAGMA journal_mode = delete")
    a_model(ledger).fit(*small_rows())
    copy = shutil.copy(tmp_path / "budget.db", tmp_path / "copy.db")
    assert len(Ledger(copy, key=ledger.key_path).history("people")) == 2


def test_a_symbolic_link_is_the_same_ledger(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.grant("people", 3.0, 1e-6)
    (tmp_path / "link.db").symlink_to("budget.db")
    a_model(Ledger(tmp_path / "link.db", key=ledger.key_path)).fit(*small_rows())
    assert [entry.status for entry in ledger.history("people")] == ["granted", "committed"]
