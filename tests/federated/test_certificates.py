"""Certificates of parties, and the checks on who sits at the table."""

from __future__ import annotations

import stat

import pytest

from thresher.federated.endpoints import TLS, check_endpoints

x509 = pytest.importorskip("cryptography.x509")

from thresher.federated.certificates import write_certificates  # noqa: E402  (needs cryptography)

NAMES, HOSTS = ["north", "south", "west"], ["127.0.0.1", "south.example", "west"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_certificates(tmp_path_factory.mktemp("certificates"), NAMES, HOSTS)


def test_a_certificate_carries_the_name_and_the_host(files):
    certificates = [x509.load_pem_x509_certificate(tls.certificate.read_bytes()) for tls in files]
    authority = x509.load_pem_x509_certificate(files[0].authority.read_bytes())
    carried = []
    for name, certificate in zip(NAMES, certificates, strict=True):
        certificate.verify_directly_issued_by(authority)
        (subject,) = certificate.subject.get_attributes_for_oid(x509.oid.NameOID.COMMON_NAME)
        assert subject.value == name
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        carried.append([str(general.value) for general in names])
    assert carried == [["north", "127.0.0.1"], ["south", "south.example"], ["west"]]


def test_keys_are_for_their_owner_only(files):
    assert {stat.S_IMODE(tls.key.stat().st_mode) for tls in files} == {0o600}


def test_the_key_of_the_authority_is_nowhere(files):
    assert {path.name for path in files[0].key.parent.iterdir()} == {
        "authority.pem",
        *(f"{name}.{kind}" for name in NAMES for kind in ("pem", "key")),
    }


@pytest.mark.parametrize(
    ("names", "hosts", "message"),
    [
        (["a", "a"], ["h", "h"], "must differ"),
        (["a", "B"], ["h", "h"], "'B'"),
        (["a", "*.b"], ["h", "h"], "lower-case"),
        (["a", "../b"], ["h", "h"], "lower-case"),
        (["a", "b"], ["h"], "hosts are 1, but names are 2"),
        (["a", "b"], ["b", "h"], "the name of another party"),
    ],
)
def test_names_that_could_be_mixed_up_are_refused(tmp_path, names, hosts, message):
    with pytest.raises(ValueError, match=message):
        write_certificates(tmp_path, names, hosts)
    assert not list(tmp_path.iterdir())


def test_files_of_tls_are_tried_at_once(files, tmp_path):
    with pytest.raises(ValueError, match="certificate="):
        TLS(files[0].certificate, files[1].key, files[0].authority)
    with pytest.raises(ValueError, match=r"authority=.*nowhere"):
        TLS(files[0].certificate, files[0].key, tmp_path / "nowhere")


HERE = [("127.0.0.1", 7000), ("localhost", 7001), ("::1", 7002)]
AWAY = [("127.0.0.1", 7000), ("127.0.0.1", 7001), ("192.0.2.1", 7002)]


def test_parties_on_this_machine_need_no_tls():
    check_endpoints(2, HERE, None, None)


@pytest.mark.parametrize(
    ("me", "addresses", "message"),
    [
        (0, HERE[:2], "addresses are 2"),
        (0, [("127.0.0.1", port) for port in range(1, 12)], "addresses are 11"),
        (3, HERE, "me=3"),
        (0, [*HERE[:2], HERE[0]], "must differ"),
        (0, [*HERE[:2], ("127.0.0.1", 0)], "a host and a port"),
        (0, AWAY, r"'192.0.2.1', which is not this machine: give --certificate"),
        (0, [*HERE[:2], ("hospital.example", 7002)], "give --certificate"),
        (0, [*HERE[:2], ("0.0.0.0", 7002)], "give --certificate"),  # noqa: S104
    ],
)
def test_seats_that_cannot_be(me, addresses, message):
    with pytest.raises(ValueError, match=message):
        check_endpoints(me, addresses, None, None)


@pytest.mark.parametrize("names", [None, NAMES[:2], ["north", "north", "west"]])
def test_tls_needs_a_name_for_each(files, names):
    check_endpoints(0, AWAY, files[0], NAMES)
    with pytest.raises(ValueError, match="names"):
        check_endpoints(0, AWAY, files[0], names)
