"""The two places a ledger may be kept in; every test that asks for one runs on both."""

from __future__ import annotations

import pytest

import postgres
from thresher import Ledger


@pytest.fixture(scope="session")
def postgres_server():
    reason = postgres.missing()
    if reason is not None:
        pytest.skip(reason)
    with postgres.server() as address:
        yield address


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request, tmp_path):
    """Of a ledger that does not exist yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/budget.db"
    url = request.getfixturevalue("postgres_server")
    import sqlalchemy

    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("DROP SCHEMA public CASCADE; CREATE SCHEMA public"))
    engine.dispose()
    return url


@pytest.fixture
def key(tmp_path):
    return tmp_path / "ledger.key"


@pytest.fixture
def ledger(address, key):
    return Ledger(address, key=key)
