"""Certificates by which parties know each other: one authority for one set of parties, made by whoever convenes them.

The authority's key is used here and then forgotten, so nobody can add a party or sign a second certificate for one
later; to change the set, make all certificates anew. Hand each party its own key over a channel that is private.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
from collections.abc import Sequence
from pathlib import Path

from thresher.federated.endpoints import TLS, check_names

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError as error:
    raise ImportError(
        f"making certificates needs one more package ({error.name}); run: pip install 'thresher[mpc]'"
    ) from None

__all__ = ["write_certificates"]

YEAR = datetime.timedelta(days=365)
SKEW = datetime.timedelta(hours=1)  # by which a party's clock may be late
AUTHORITY = "authority.pem"


def write_certificates(folder: Path, names: Sequence[str], hosts: Sequence[str]) -> list[TLS]:
    """Writes NAME.pem and NAME.key for each party, and authority.pem for all; they are valid for a year.

    A certificate carries the name of its party, by which the others know it, and its host, a DNS name or an IP address.
    """
    check_names(names)
    if len(hosts) != len(names):
        raise ValueError(f"hosts are {len(hosts)}, but names are {len(names)}: give the host of each party")
    for name, host in zip(names, hosts, strict=True):
        if host in names and host != name:
            raise ValueError(f"hosts hold {host!r}, the name of another party: the certificate would fit both")
    folder.mkdir(parents=True, exist_ok=True)
    key = ec.generate_private_key(ec.SECP256R1())
    authority = _authority(key)
    (folder / AUTHORITY).write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    return [_write_party(folder, name, host, authority, key) for name, host in zip(names, hosts, strict=True)]


def _write_party(
    folder: Path, name: str, host: str, authority: x509.Certificate, authority_key: ec.EllipticCurvePrivateKey
) -> TLS:
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _party(name, host, key.public_key(), authority, authority_key)
    pem, key_file = folder / f"{name}.pem", folder / f"{name}.key"
    pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    key_file.unlink(missing_ok=True)  # an older file may be readable to others
    with open(os.open(key_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(secret)
    return TLS(pem, key_file, folder / AUTHORITY)


def _authority(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    public, name = key.public_key(), _subject("thresher parties")
    usage = _usage(signs_certificates=True)
    return (
        _builder(name, name, public)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .sign(key, hashes.SHA256())
    )


def _party(
    name: str,
    host: str,
    public: ec.EllipticCurvePublicKey,
    authority: x509.Certificate,
    authority_key: ec.EllipticCurvePrivateKey,
) -> x509.Certificate:
    both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    return (
        _builder(_subject(name), authority.subject, public)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(both), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name), *_host(name, host)]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(issuer_key, critical=False)
        .sign(authority_key, hashes.SHA256())
    )


def _builder(subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=subject,
        public_key=public,
        serial_number=x509.random_serial_number(),
        not_valid_before=now - SKEW,
        not_valid_after=now + YEAR,
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(name: str, host: str) -> list[x509.GeneralName]:
    """The host as a certificate writes it, unless it is the name, which is there already."""
    if host == name:
        return []
    try:
        return [x509.IPAddress(ipaddress.ip_address(host))]
    except ValueError:
        return [x509.DNSName(host)]
