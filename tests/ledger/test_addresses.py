"""Passwords in addresses: for the driver only, whatever prints, raises or pickles."""

from __future__ import annotations

import copy
import pickle
from urllib.parse import quote

import pytest
from sklearn.base import clone

from inside import address_of
from thresher import Ledger, SparseRegressor
from thresher.ledger import LedgerError
from thresher.ledger.addresses import Address
from thresher.ledger.stores import PostgresStore

pytest.importorskip("psycopg")
sqlalchemy = pytest.importorskip("sqlalchemy")

WORDS = ("geheim", "ge/h#e?i@m", quote("ge/h#e?i@m", safe=""))
READ = [
    "postgresql://ann:geheim@127.0.0.1:1/base",
    "postgres://ann:geheim@[::1]:1/base?sslmode=disable",
    "postgresql+psycopg://:geheim@127.0.0.1:1/base",
    "postgresql://ann@127.0.0.1:1/base?password=geheim",
    "postgresql://127.0.0.1:1/base?user=ann&pass%77ord=geheim",
    "postgresql://ann@127.0.0.1:1/base?password=x%40geheim",
    "postgresql://127.0.0.1:1/base?sslpassword=geheim&sslmode=disable",
    "postgresql://127.0.0.1:1/base?passwort=geheim",
    "postgresql://ann:x/geheim@127.0.0.1:1/base",
    "postgresql://ann:geheim/x@127.0.0.1:1/base",
    "postgresql://ann:x#geheim#y@127.0.0.1:1/base",
    "postgresql://ann:geheim?x@127.0.0.1:1/base",
    f"postgresql://ann:{quote('ge/h#e?i@m', safe='')}@127.0.0.1:1/base",
]
REFUSED = [
    "postgresql://ann:x?password=geheim@127.0.0.1:1/base",
    "postgresql://127.0.0.1:1/base?password=x@geheim",
    "postgresql://ann:x@geheim@127.0.0.1:1/base",
    "postgresql://ann:geheim@x@127.0.0.1:1/base",
    "postgresql://ann:geheim/base",
    "postgresql://127.0.0.1?password=geheim@x",
    "postgresql://ann:x:y@z/geheim@127.0.0.1/base",
    "postgresql:ann:geheim@127.0.0.1:1/base",
    "postgresql:/ann:geheim@127.0.0.1:1/base",
    "POSTGRESQL://ann:geheim@127.0.0.1:1/base",
    "postgresql+asyncpg://ann:geheim@127.0.0.1:1/base",
    "mysql://ann:geheim@127.0.0.1:1/base",
    "host=127.0.0.1 user=ann password=geheim",
    "host=127.0.0.1 user=ann password = 'geheim'",
]


def is_told(text):
    return any(word in text for word in WORDS)


def model_of(ledger):
    return SparseRegressor(2, feature_bound=1.0, target_bound=1.0, ledger=ledger, dataset="people")


@pytest.mark.parametrize("url", READ)
@pytest.mark.parametrize("form", ["ledger", "address"])
def test_nothing_that_is_shown_raised_or_pickled_has_the_password(url, form, tmp_path):
    (tmp_path / "key").write_bytes(bytes(32))
    ledger = Ledger(url, key=tmp_path / "key")
    model = model_of(ledger if form == "ledger" else url)
    copies = [model, clone(model), clone(model).set_params(ledger=url), copy.deepcopy(model)]
    told = [repr(ledger), ledger.name, ledger.url, str(vars(ledger))]
    for each in copies:
        told += [repr(each), each._repr_html_(), str(each.get_params()), str(vars(each))]
        told += [pickle.dumps(each).decode("latin1")]
    with pytest.raises(LedgerError, match="cannot be used") as refused:
        ledger.spent("people")
    assert not any(map(is_told, [*told, str(refused.value)]))


@pytest.mark.parametrize("url", REFUSED)
def test_an_address_that_can_be_misread_is_refused_and_not_shown(url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for use in (Ledger, lambda given: repr(model_of(given).fit([[0.0], [1.0]], [0.0, 1.0]))):
        with pytest.raises(LedgerError) as refused:
            use(url)
        assert not is_told(str(refused.value))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("url", READ)
def test_the_driver_gets_all_of_it_and_a_pickle_all_but_the_password(url):
    """SQLAlchemy's reading of an address is the one that counts."""
    address = Address.of(url.partition("://")[2])
    whole, bare = sqlalchemy.make_url(address.url), sqlalchemy.make_url(address.bare)
    secrets = {whole.password, *(whole.query.get(key) for key in ("password", "sslpassword", "passwort"))} - {None}
    assert secrets
    assert secrets <= {*address.secrets}
    assert bare.password is None
    assert (bare.host, bare.port, bare.database) == (whole.host, whole.port, whole.database) == (whole.host, 1, "base")
    assert bare.username == whole.username
    assert {*whole.query} - {*bare.query} <= {"password", "sslpassword", "passwort"}


def test_a_copy_in_this_process_keeps_the_password_and_a_pickle_does_not():
    ledger = Ledger(READ[0])
    assert address_of(copy.deepcopy(ledger)).url == address_of(ledger).url
    assert "geheim" in address_of(ledger).url
    assert address_of(pickle.loads(pickle.dumps(ledger))).url == "postgresql+psycopg://ann@127.0.0.1:1/base"


def test_who_misses_a_password_is_told_where_to_put_it(monkeypatch):
    def refuse(*_, **__):
        raise sqlalchemy.exc.OperationalError("", {}, Exception("fe_sendauth: no password supplied"))

    monkeypatch.setattr(sqlalchemy, "create_engine", refuse)
    store = PostgresStore(Address.of("ann@host/base"))
    with pytest.raises(LedgerError, match=r"set PGPASSWORD or ~/\.pgpass"), store.transaction():
        pass


def test_what_a_driver_quotes_is_masked(monkeypatch):
    def refuse(*_, **__):
        raise sqlalchemy.exc.OperationalError("", {}, Exception("cannot read ge/heim, ge%2Fheim"))

    monkeypatch.setattr(sqlalchemy, "create_engine", refuse)
    store = PostgresStore(Address.of("ann:ge%2Fheim@host/base"))
    with pytest.raises(LedgerError, match=r"cannot read \*\*\*, \*\*\*"), store.transaction():
        pass
