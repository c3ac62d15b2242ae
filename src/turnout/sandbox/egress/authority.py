"""The certificate authority of one sandbox; the only module that needs the extra `secrets`."""

import datetime as dt
import os
import ssl
from collections.abc import Sequence

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

__all__ = ["RunAuthority"]

_SKEW = dt.timedelta(hours=1)
_VALID = dt.timedelta(days=2)
"""Longer than a sandbox lives."""


class RunAuthority:
    """Signs for the hosts it was made for and no others, with keys that are in memory alone."""

    def __init__(self, hosts: Sequence[str]) -> None:
        self._hosts = frozenset(hosts)
        self._key = ec.generate_private_key(ec.SECP256R1())
        now = dt.datetime.now(dt.UTC)
        self._begin, self._end = now - _SKEW, now + _VALID
        self._name = _common_name("Turnout sandbox authority")
        self._certificate = self._sign_itself(sorted(self._hosts))
        self._contexts: dict[str, ssl.SSLContext] = {}

    @property
    def certificate(self) -> bytes:
        """Its certificate, PEM."""
        return self._certificate.public_bytes(Encoding.PEM)

    def context(self, host: str) -> ssl.SSLContext:
        """Return what a TLS server that answers for a host needs; HTTP/1.1 is all that it offers.

        `KeyError` where the authority was not made for the host.
        """
        if host not in self._hosts:
            raise KeyError(host)
        if host not in self._contexts:
            self._contexts[host] = self._make_context(host)
        return self._contexts[host]

    def _make_context(self, host: str) -> ssl.SSLContext:
        key = ec.generate_private_key(ec.SECP256R1())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION
        context.set_alpn_protocols(["http/1.1"])
        _load(
            context,
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            + self._sign(host, key.public_key()).public_bytes(Encoding.PEM),
        )
        return context

    def _sign_itself(self, hosts: Sequence[str]) -> x509.Certificate:
        public = self._key.public_key()
        permitted = x509.NameConstraints([x509.DNSName(host) for host in hosts], None)
        return (
            self._builder(self._name, public)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(certificates=True), critical=True)
            .add_extension(permitted, critical=True)
            .sign(self._key, hashes.SHA256())
        )

    def _sign(self, host: str, public: ec.EllipticCurvePublicKey) -> x509.Certificate:
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        server = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
        return (
            self._builder(_common_name("Turnout sandbox"), public)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(certificates=False), critical=True)
            .add_extension(server, critical=False)
            .add_extension(issuer, critical=False)
            .sign(self._key, hashes.SHA256())
        )

    def _builder(
        self, subject: x509.Name, public: ec.EllipticCurvePublicKey
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._begin)
            .not_valid_after(self._end)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        )


def _common_name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _usage(*, certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not certificates,
        key_cert_sign=certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _load(context: ssl.SSLContext, pem: bytes) -> None:
    """Load key and certificate; the ssl module takes them from files alone, here one in memory."""
    with os.fdopen(os.memfd_create("turnout-leaf"), "wb") as file:
        file.write(pem)
        file.flush()
        context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
