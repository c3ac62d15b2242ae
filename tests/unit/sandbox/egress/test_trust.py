"""What a sandbox trusts, and how its programs learn of it."""

from pathlib import Path

import pytest

from turnout.errors import ConfigError
from turnout.sandbox.egress.trust import ca_variables, proxy_variables, read_trust

PEM = b"-----BEGIN CERTIFICATE-----\nown\n-----END CERTIFICATE-----\n"


def test_own_authorities_are_added_to_those_of_the_system(tmp_path: Path) -> None:
    """Nothing that the system trusts is lost, and nothing that another file adds."""
    own, other = tmp_path / "own.pem", tmp_path / "other.pem"
    own.write_bytes(PEM)
    other.write_bytes(PEM.replace(b"own", b"other"))
    trusted = read_trust([]) + b"\n" + PEM + b"\n" + PEM.replace(b"own", b"other")
    assert read_trust([str(own), str(other), str(own)]) == trusted


def test_the_same_authorities_are_not_handed_in_twice(tmp_path: Path) -> None:
    """Where the own file is the system's."""
    system = read_trust([])
    if not system:
        pytest.skip("this system has no certificate authorities")
    own = tmp_path / "own.pem"
    own.write_bytes(system)
    assert read_trust([str(own)]) == system


@pytest.mark.parametrize("content", [None, b"", b"no certificate"])
def test_a_file_without_authorities_is_refused(tmp_path: Path, content: bytes | None) -> None:
    """Rather than that every connection fails later."""
    own = tmp_path / "own.pem"
    if content is not None:
        own.write_bytes(content)
    with pytest.raises(ConfigError, match=r"own\.pem cannot be used: .* Name a file"):
        read_trust([str(own)])


def test_programs_are_told_where_the_proxy_is() -> None:
    """In both cases: some read the one, some the other."""
    found = proxy_variables("http://127.0.0.1:3128")
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        assert found[name] == found[name.lower()] == "http://127.0.0.1:3128"
    assert found["NO_PROXY"] == found["no_proxy"] == "localhost,127.0.0.1,::1"


def test_programs_are_told_whom_to_trust() -> None:
    """Each has a variable of its own for that."""
    assert set(ca_variables().values()) == {"/run/turnout/ca.pem"}
    assert {"SSL_CERT_FILE", "PIP_CERT", "NODE_EXTRA_CA_CERTS"} <= set(ca_variables())
