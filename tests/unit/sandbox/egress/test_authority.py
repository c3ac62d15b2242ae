"""An authority that a sandbox trusts, for a few hosts and a short time."""

import ssl

import pytest
from cryptography import x509

from turnout.sandbox.egress.authority import RunAuthority


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> ssl.SSLObject:
    """Let the two agree; return the client's side."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = client.wrap_bio(down, up, server_hostname=host)
    two = server.wrap_bio(up, down, server_side=True)
    waiting = [one, two, one, two]
    for side in waiting:
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    return one


def strict(authority: RunAuthority) -> ssl.SSLContext:
    """Return a client's context that takes the standard at its word."""
    context = ssl.create_default_context(cadata=authority.certificate.decode())
    context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context


def test_a_strict_client_trusts_it_for_its_hosts() -> None:
    """And is told that HTTP/1.1 is all there is."""
    authority = RunAuthority(["api.test", "b.test"])
    client = handshake(authority.context("api.test"), strict(authority), "api.test")
    assert client.selected_alpn_protocol() == "http/1.1"
    assert client.version() == "TLSv1.3"


def test_a_certificate_is_for_one_host() -> None:
    """Not for the others of the same sandbox."""
    authority = RunAuthority(["api.test", "b.test"])
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        handshake(authority.context("api.test"), strict(authority), "b.test")


def test_it_cannot_vouch_for_another_host() -> None:
    """Its own certificate says so, whoever gets hold of its key."""
    authority = RunAuthority(["api.test"])
    with pytest.raises(KeyError):
        authority.context("evil.test")
    certificate = x509.load_pem_x509_certificate(authority.certificate)
    constraints = certificate.extensions.get_extension_for_class(x509.NameConstraints)
    assert constraints.critical
    assert constraints.value.permitted_subtrees == [x509.DNSName("api.test")]


def test_another_sandbox_does_not_trust_it() -> None:
    """Each has its own key, under the same name."""
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(
            RunAuthority(["api.test"]).context("api.test"),
            strict(RunAuthority(["api.test"])),
            "api.test",
        )


def test_it_is_valid_for_days() -> None:
    """Longer than a sandbox lives, and no longer than that takes."""
    certificate = x509.load_pem_x509_certificate(RunAuthority(["api.test"]).certificate)
    valid = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    assert 1 < valid.total_seconds() / 86_400 < 3


def test_a_certificate_is_made_once() -> None:
    """Each connection to a host has the same."""
    authority = RunAuthority(["api.test"])
    assert authority.context("api.test") is authority.context("api.test")


def test_a_host_may_have_a_long_name() -> None:
    """Longer than the name of a certificate's subject can be."""
    host = ".".join(["a" * 60] * 4)
    authority = RunAuthority([host])
    assert handshake(authority.context(host), strict(authority), host).version()
