"""Where the parties are and who: addresses, names and certificates, checked before anything is sent."""

from __future__ import annotations

import ipaddress
import re
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["TLS", "check_endpoints", "check_names", "free_ports"]

FEWEST, MOST = 3, 10  # with two, one is no minority; the keys of joint coins are as many as there are majorities
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*")


@dataclass(frozen=True)
class TLS:
    """The files with which a party shows who it is and checks who the others are: PEM, the key without passphrase."""

    certificate: Path
    key: Path
    authority: Path

    def __post_init__(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            context.load_cert_chain(self.certificate, self.key, password=lambda: "")
        except OSError as error:
            raise ValueError(
                f"certificate={str(self.certificate)!r} and key={str(self.key)!r} cannot be used ({error}): give the "
                "PEM files of a certificate and of its key, without passphrase"
            ) from None
        try:
            context.load_verify_locations(self.authority)
        except OSError as error:
            raise ValueError(
                f"authority={str(self.authority)!r} cannot be used ({error}): give the PEM file of the certificate "
                "with which all parties' certificates are signed"
            ) from None

    def files(self) -> dict[str, str]:
        return {name: str(getattr(self, name)) for name in ("certificate", "key", "authority")}


def check_endpoints(
    me: int, addresses: Sequence[tuple[str, int]], tls: TLS | None, names: Sequence[str] | None
) -> None:
    """Raises ValueError unless these parties can meet."""
    parties = len(addresses)
    if not FEWEST <= parties <= MOST:
        raise ValueError(
            f"addresses are {parties}: give {FEWEST} to {MOST}, as fewer have no honest majority and more are too slow"
        )
    if not 0 <= me < parties:
        raise ValueError(f"me={me!r} must be the number of a party, from 0 to {parties - 1}")
    for host, port in addresses:
        if not (isinstance(host, str) and host and isinstance(port, int) and 0 < port < 2**16):
            raise ValueError(f"addresses hold {(host, port)!r}: give a host and a port, as in ('127.0.0.1', 7001)")
    if len(set(addresses)) < parties:
        raise ValueError("addresses must differ: every party listens at its own")
    if tls is None:
        outside = [host for host, _ in addresses if not _is_loopback(host)]
        if outside:
            raise ValueError(
                f"addresses name {outside[0]!r}, which is not this machine: give --certificate, --key and --authority "
                "(in Python: tls=TLS(...) and names), or shares would cross the network in the open"
            )
    elif names is None or len(names) != parties:
        raise ValueError(f"names={names!r} must be the {parties} names in the parties' certificates, in their order")
    else:
        check_names(names)


def check_names(names: Sequence[str]) -> None:
    """Raises ValueError unless certificates can tell these parties apart."""
    for name in names:
        if not (isinstance(name, str) and NAME.fullmatch(name)):
            raise ValueError(f"names hold {name!r}: use lower-case letters, digits and hyphens, as in 'hospital-1'")
    if len(set(names)) < len(names):
        raise ValueError(f"names={list(names)!r} must differ")


def free_ports(count: int) -> list[int]:
    """Ports of this machine at which nobody listens now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listening.getsockname()[1] for listening in sockets]
    for listening in sockets:
        listening.close()
    return ports


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # another name; where it leads may change
