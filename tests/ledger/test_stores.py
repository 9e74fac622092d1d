"""Where entries are kept: addresses, transactions, errors."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from spending import spend
from thresher import Ledger
from thresher.ledger import LedgerError
from thresher.ledger.stores import store_of


class Break(BaseException):
    pass


@pytest.fixture
def store(address):
    made = store_of(address)
    with made.transaction(create=True):
        pass
    return made


def insert(run, sequence):
    run("INSERT INTO thresher_ledger VALUES (:s, :b, :h)", s=sequence, b="body", h="hash")


def insert_and_break(store):
    with store.transaction() as run:
        insert(run, 2)
        raise Break


def all_of(store, reading=False):
    with store.transaction(reading=reading) as run:
        return [row[0] for row in run("SELECT sequence FROM thresher_ledger ORDER BY sequence")]


def test_a_transaction_holds_whole_or_not_at_all(store):
    with store.transaction() as run:
        insert(run, 1)
    with pytest.raises(Break):
        insert_and_break(store)
    assert all_of(store) == [1]


def test_one_writer_at_a_time(store):
    """The second waits until the first is done, and sees what it wrote."""
    seen, inside = [], threading.Event()

    def second():
        inside.wait()
        seen.append(all_of(store))

    thread = threading.Thread(target=second)
    with store.transaction() as run:
        thread.start()
        inside.set()
        insert(run, 1)
        thread.join(0.3)  # enough for one that does not wait, as a rule
        assert seen == []
    thread.join(600)
    assert seen == [[1]]


def test_readers_do_not_wait_for_a_writer(store):
    """And see what was there before."""
    with store.transaction() as run:
        insert(run, 1)
    with store.transaction() as run:
        insert(run, 2)
        assert all_of(store, reading=True) == [1]
    assert all_of(store, reading=True) == [1, 2]


def test_a_number_is_used_once(store):
    with store.transaction() as run:
        insert(run, 1)
    with pytest.raises(LedgerError, match="cannot be used"), store.transaction() as run:
        insert(run, 1)


@pytest.mark.parametrize(
    "url", ["budget.db", "sqlite:///budget.db", Path("budget.db"), "./budget.db", "sqlite:///./budget.db"]
)
def test_a_file_has_many_addresses(url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = store_of(url)
    with store.transaction(create=True):
        pass
    assert (tmp_path / "budget.db").exists()
    assert store_of(store.address).address == store.address
    assert store.key_path == tmp_path / "budget.db.key"


@pytest.mark.parametrize("url", ["mysql://x/y", "sqlite://budget.db", "sqlite:///", "sqlite:///:memory:", "http://x"])
def test_other_addresses_are_refused(url):
    with pytest.raises(LedgerError, match="must be the path of a file"):
        store_of(url)


def test_a_file_that_is_no_database_is_said(tmp_path):
    (tmp_path / "budget.db").write_text("not a database, but long enough to be taken for one" * 100)
    with pytest.raises(LedgerError, match="cannot be used: file is not a database"):
        all_of(store_of(tmp_path / "budget.db"))


def test_a_server_that_is_not_there_is_said_without_its_password():
    pytest.importorskip("psycopg")
    with pytest.raises(LedgerError, match="cannot be used") as refused:
        all_of(store_of("postgresql://ann:geheim@127.0.0.1:1/base"))
    assert "geheim" not in str(refused.value)


def test_a_ledger_without_its_packages_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sqlalchemy", None)
    with pytest.raises(LedgerError, match=r"pip install 'thresher\[postgres\]'"):
        store_of("postgresql://host/base")


@pytest.mark.filterwarnings("ignore::thresher.PrivacyWarning")
def test_writers_take_turns_whatever_isolation_is_the_default(postgres_server, tmp_path):
    """A snapshot from before the wait for the lock would be refused at the end, after the fit was paid for."""
    import sqlalchemy

    engine = sqlalchemy.create_engine(postgres_server.replace("postgresql:", "postgresql+psycopg:"))
    default = "ALTER DATABASE postgres {} default_transaction_isolation"
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("DROP TABLE IF EXISTS thresher_ledger"))
        connection.execute(sqlalchemy.text(default.format("SET") + " = 'serializable'"))
    engine.dispose()
    try:
        ledger = Ledger(postgres_server, key=tmp_path / "ledger.key")
        ledger.grant("people", 9.0, 1e-6)
        with ThreadPoolExecutor(4) as pool:
            made = list(pool.map(lambda _: spend(postgres_server, str(tmp_path / "ledger.key"), 4), range(4)))
        assert made == [(4, 0)] * 4
        assert [entry.status for entry in ledger.history("people")] == ["granted"] + ["committed"] * 16
    finally:
        with engine.begin() as connection:
            connection.execute(sqlalchemy.text(default.format("RESET")))
        engine.dispose()
