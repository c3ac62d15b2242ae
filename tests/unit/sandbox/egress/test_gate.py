"""A gate is opened for what can be, and says what a sandbox needs to know."""

import socket
from pathlib import Path

import pytest
from tests.egress import Certifier, FixedResolver

from turnout.errors import ConfigError, MissingExtraError, SandboxError
from turnout.sandbox.base import NO_EGRESS, BoundSecret, Egress, HostRule
from turnout.sandbox.egress.authority import RunAuthority
from turnout.sandbox.egress.gate import EgressServices, Gate, open_gate

RULE = HostRule("api.test")
SECRET = BoundSecret("TOKEN", "API.test", "the-value-of-it")
SERVICES = EgressServices(FixedResolver(), RunAuthority)


def opened(egress: Egress, services: EgressServices = SERVICES) -> Gate:
    """Return the gate for an `Egress` that admits something."""
    gate = open_gate(services, egress)
    assert gate is not None
    return gate


def test_there_is_no_gate_where_nothing_is_admitted() -> None:
    """The sandbox has no network then, and no proxy either."""
    assert open_gate(SERVICES, NO_EGRESS) is None


def test_a_sandbox_is_told_of_proxy_authorities_and_placeholders() -> None:
    """What the operator sets comes last."""
    variables = (("PIP_INDEX_URL", "https://api.test/simple"), ("NO_PROXY", "*"))
    found = opened(Egress((RULE,), (SECRET,), variables)).variables()
    assert found["https_proxy"] == "http://127.0.0.1:3128"
    assert found["SSL_CERT_FILE"] == "/run/turnout/ca.pem"
    assert found["PIP_INDEX_URL"] == "https://api.test/simple"
    assert found["NO_PROXY"] == "*"
    assert found["TOKEN"].startswith("turnout-secret-")


def test_a_proxy_may_be_elsewhere() -> None:
    """Where a sandbox reaches it over a network."""
    url = "http://turnout:token@10.0.0.1:3128"
    assert opened(Egress((RULE,))).variables(url)["HTTPS_PROXY"] == url


def test_the_bundle_has_the_own_authorities_and_that_of_the_run(tmp_path: Path) -> None:
    """The latter only where a secret is bound."""
    own = tmp_path / "own.pem"
    own.write_bytes(Certifier().pem)
    plain = opened(Egress((RULE,), ca_files=(str(own),)))
    bound = opened(Egress((RULE,), (SECRET,), ca_files=(str(own),)))
    assert own.read_bytes() in plain.bundle
    assert bound.bundle.startswith(plain.bundle)
    assert bound.bundle.count(b"BEGIN CERT") == plain.bundle.count(b"BEGIN CERT") + 1


def test_nothing_is_said_of_authorities_where_there_are_none() -> None:
    """An empty file would make programs trust nobody."""
    gate = Gate(Egress((RULE,)), resolver=FixedResolver())
    assert gate.bundle == b""
    assert "SSL_CERT_FILE" not in gate.variables()


def test_a_secret_without_certificates_names_the_extra() -> None:
    """The host can be reached without; the secret cannot be put in."""
    with pytest.raises(MissingExtraError, match=r"api\.test.*pip install 'turnout\[secrets\]'"):
        open_gate(EgressServices(FixedResolver()), Egress((RULE,), (SECRET,)))


@pytest.mark.parametrize(
    ("egress", "complaint"),
    [
        (Egress((), (SECRET,)), "which no rule admits"),
        (Egress((HostRule("*.api.test"),), (SECRET,)), "which no rule admits"),
        (Egress((RULE,), (SECRET, SECRET)), "same variable"),
        (Egress((HostRule("10.0.0.1"),)), "cannot be allowed"),
        (Egress((RULE,), ca_files=("/nonexistent/ca.pem",)), "cannot be used"),
    ],
)
def test_what_cannot_be_is_said_at_once(egress: Egress, complaint: str) -> None:
    """Not when a run first needs it."""
    with pytest.raises(ConfigError, match=complaint):
        open_gate(SERVICES, egress)


@pytest.mark.parametrize(
    "url", ["https://me:pass@p:1", "socks5://me:pass@p", "p:3128", "http://", "http://p:x"]
)
def test_only_a_plain_proxy_can_be_in_between(url: str) -> None:
    """The error does not show the URL, which may hold a password."""
    with pytest.raises(ConfigError, match="http://HOST:PORT") as caught:
        open_gate(EgressServices(FixedResolver(), upstream_proxy=url), Egress((RULE,)))
    assert "pass" not in str(caught.value)


async def test_only_a_socket_of_tcp_is_served() -> None:
    """It comes from inside, where anything can be handed over."""
    gate = opened(Egress((RULE,)))
    ours, theirs = socket.socketpair()
    with theirs:
        with pytest.raises(SandboxError, match="not a socket to listen on"):
            await gate.serve(ours)
        await gate.close()
    assert ours.fileno() == -1


async def test_a_connection_that_was_just_accepted_is_closed_too() -> None:
    """Also where nobody has begun to serve it."""
    gate = opened(Egress((RULE,)))
    ours, theirs = socket.socketpair()
    with theirs:
        gate._receive(ours)
        await gate.close()
    assert ours.fileno() == -1


async def test_a_gate_may_be_closed_twice() -> None:
    """Also one that never served."""
    gate = opened(Egress((RULE,)))
    await gate.close()
    await gate.close()
