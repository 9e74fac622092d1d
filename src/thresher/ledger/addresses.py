"""Addresses of PostgreSQL databases: with their secrets for the driver, and without for everybody else."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import unquote, unquote_plus

from thresher.ledger.errors import LedgerError

__all__ = ["SCHEMES", "Address", "holds_secret", "is_misspelt", "masked_address"]

SCHEMES = ("postgresql", "postgres", "postgresql+psycopg")
PARTS = re.compile(
    r"(?:(?P<user>[^:/]*)(?::(?P<password>[^@]*))?@)?"
    r"(?P<place>(?:\[[0-9A-Fa-f:.]*\]|[\w.%-]*)(?::\d*)?(?:/[\w.%+-]*)?)"
    r"(?:\?(?P<query>.*))?"
)  # as SQLAlchemy reads them, so that nothing is shown as a host that was meant as a password
SHOWN = ("host", "hostaddr", "port", "dbname", "user", "sslmode")  # of the query; other values are masked
SECRET = re.compile("pass(?!file)|secret|token", re.IGNORECASE)


@dataclass(frozen=True)
class Address:
    """What a URL says."""

    url: str = field(repr=False)
    """For the driver."""
    name: str
    """For people: every value that may be a secret is masked."""
    bare: str
    """For pickles: the same database, without the secrets."""
    secrets: tuple[str, ...] = field(repr=False)

    @classmethod
    def of(cls, rest: str) -> Address:
        """Of what follows the scheme; what cannot be told apart for sure is refused, and not shown."""
        found = PARTS.fullmatch(rest)
        parts = found.groupdict() if found else {}
        user, password, query = parts.get("user"), parts.get("password"), parts.get("query")
        if not found or re.search("[@?#=]", user or "") or re.search("[?].*=", password or ""):
            raise LedgerError(
                "ledger='postgresql://***' cannot be read; it must be postgresql://user@host:port/database. Write @ / "
                "? # in names as %40 %2F %3F %23, and keep the password in ~/.pgpass or PGPASSWORD"
            )
        pairs = [pair.partition("=")[::2] for pair in (query or "").split("&") if pair]
        told = [(key, value) for key, value in pairs if not SECRET.search(unquote_plus(key))]
        hidden = [value for key, value in pairs if (key, value) not in told] + [password or ""]
        masked = [f"{key}={value if _harmless(key, value) else '***'}" for key, value in pairs]
        place, who = parts["place"], "" if user is None else f"{user}@"
        return cls(
            f"postgresql+psycopg://{rest}",
            _join_url((f"{user}:***@" if password is not None else who) + place, masked),
            _join_url(who + place, [f"{key}={value}" for key, value in told]),
            tuple({text for secret in hidden if secret for text in (secret, unquote(secret), unquote_plus(secret))}),
        )

    def without_secrets(self, text: str) -> str:
        """What a driver says, should it quote a secret."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


def masked_address(text: str) -> str:
    """An address that is none, for a message about it."""
    return text if re.fullmatch(r"[\w+.-]*://[\w./:-]*", text) else f"{text.partition(':')[0][:20]}:***"


def holds_secret(text: str) -> bool:
    """Whether this is an address that may have a password in it."""
    scheme, found, rest = text.partition("://")
    if not found:
        return is_misspelt(text)
    if scheme in SCHEMES:
        return bool(Address.of(rest).secrets)
    return scheme != "sqlite" and "@" in rest


def is_misspelt(text: str) -> bool:
    """Whether this is no path of a file, but was meant as an address: '//' left out, or keywords of libpq."""
    return bool(re.match(r"\s*postgres[\w+]*:|.*\bpassword\s*=", text, re.IGNORECASE))


def _harmless(key: str, value: str) -> bool:
    return unquote_plus(key) in SHOWN and bool(re.fullmatch(r"[\w./%:,-]*", value))


def _join_url(place: str, pairs: list[str]) -> str:
    return f"postgresql://{place}" + (f"?{'&'.join(pairs)}" if pairs else "")
