"""Which certificate authorities a sandbox trusts, and the variables that tell its programs."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from turnout.errors import ConfigError

__all__ = ["BUNDLE_INSIDE", "PROXY_INSIDE", "ca_variables", "proxy_variables", "read_trust"]

BUNDLE_INSIDE = "/run/turnout/ca.pem"
"""Where a sandbox has its gate's bundle."""

PROXY_INSIDE = "http://127.0.0.1:3128"
"""The proxy, where it listens on the sandbox's own loopback."""

_SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
_LONGEST_BUNDLE = 8 << 20
_CA_VARIABLES = (
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_FILE",
    "npm_config_cafile",
)


def read_trust(ca_files: Sequence[str]) -> bytes:
    """Return the authorities of the system, and those of some files beside them, PEM.

    `ConfigError` where a file holds none. Where the system has none, what is in the files is all.
    """
    found = next((path for path in map(Path, _SYSTEM_BUNDLES) if path.is_file()), None)
    trusted = b"" if found is None else found.read_bytes()
    for ca_file in ca_files:
        own = _read(ca_file)
        trusted = trusted if own in trusted else b"%s\n%s" % (trusted, own)
    return trusted


def _read(ca_file: str) -> bytes:
    try:
        with Path(ca_file).open("rb") as file:
            own = file.read(_LONGEST_BUNDLE)
    except OSError as error:
        raise _bad(ca_file, error.strerror or "it cannot be read") from None
    if b"-----BEGIN CERTIFICATE-----" not in own:
        raise _bad(ca_file, "it holds no certificate in PEM")
    return own


def _bad(ca_file: str, why: str) -> ConfigError:
    return ConfigError(
        f"The certificate authorities in {ca_file} cannot be used: {why}.",
        mend="Name a file with one or more certificates that begin with `-----BEGIN CERTIFICATE`.",
    )


def ca_variables() -> Mapping[str, str]:
    """Return the variables by which programs inside find the bundle."""
    return dict.fromkeys(_CA_VARIABLES, BUNDLE_INSIDE)


def proxy_variables(url: str) -> Mapping[str, str]:
    """Return the variables by which programs inside find the proxy."""
    found = {f"{scheme}_PROXY": url for scheme in ("HTTP", "HTTPS", "ALL")}
    found["NO_PROXY"] = "localhost,127.0.0.1,::1"
    found |= {name.lower(): value for name, value in found.items()}
    return found | {"NODE_USE_ENV_PROXY": "1"}
