"""What the model's commands reach, what they never learn, and what is on record of both."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.acceptance.command import TASK, Command, Done
from tests.acceptance.neighbours import named_host
from tests.acceptance.shell import everything_sent, results, shell
from tests.egress import Certifier, Site, server

from turnout.testing.model_server import ScriptedModelServer
from turnout.testing.repositories import TinyRepository

FETCH = 'python -c "import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read())" '
VALUE = "sesame-7f3a9c2e51"
ECHO = f"HTTP/1.1 200 OK\r\nContent-Length: {len(VALUE)}\r\n\r\n{VALUE}".encode()
LOOK = (
    "cat /proc/[0-9]*/environ 2>&- | grep -ac sesame-;"
    " grep -rasc sesame- /run /tmp /etc | grep -v :0;"
    ' echo "${EXAMPLE_TOKEN%-*}"'
)
"""Counts what holds the value's first half; the command itself is in no environment."""
ASK = 'curl -sS -H "Authorization: Bearer $EXAMPLE_TOKEN" https://%s:%s/'


async def work(
    command: Command, repository: TinyRepository, *commands: str
) -> tuple[Done, list[str], str]:
    """Let a model run some commands; return how that ended, their results, and all it was sent."""
    async with ScriptedModelServer(shell(*commands), models=["m"]) as model:
        run = ("run", TASK, "--repo", str(repository), "--surface", "shell")
        done = await command.using(model.base_url)(*run)
        assert (done.code, model.history_faults) == (1, []), done.err
        assert "Outcome: answered" in done.out, done.out + done.err
        return done, results(model), everything_sent(model)


async def test_a_run_reaches_what_the_policy_names_and_says_what_it_asked_for(
    turnout: Command, pages: TinyRepository
) -> None:
    """The model is told which setting a refusal comes from; both are on record everywhere."""
    host, site = named_host()[0], Site()
    async with server(site) as port:
        turnout.configured(f'[policy.egress]\nprivate = ["{host}:{port}"]\n')
        tries = (f"{FETCH} http://{host}:{port}/x", "curl -sS https://other.example")
        done, (reached, refused), sent = await work(turnout, pages, *tries)
    assert f"Commands reach these hosts, and no others:\n{host}:{port}" in sent
    assert reached == "exit 0\nb'ok'\n"
    assert "other.example is not reachable from this sandbox: add it to `[policy" in refused
    assert [request.splitlines()[0] for request in site.requests] == [b"GET /x HTTP/1.1"]
    reached_line = f"connection to {host}:{port}: "
    refused_line = "connection to other.example:443 refused: other.example is not reachable"
    full = (await turnout("runs", "show", "--full")).out
    for text in (done.err, full):
        assert reached_line in text
        assert refused_line in text
    first, second = (await turnout("runs", "show", "--json")).object["connections"]
    assert (first["host"], first["port"], first["allowed"]) == (host, port, True)
    assert (first["sent_bytes"] > 0, first["received_bytes"]) == (True, len(site.answer))
    assert (second["host"], second["port"], second["allowed"]) == ("other.example", 443, False)
    assert "`[policy.egress] allow`" in second["reason"]


async def test_without_a_policy_nothing_is_reached(turnout: Command, pages: TinyRepository) -> None:
    """No proxy either; a server on this machine's own loopback is asked for nothing."""
    host, site = named_host()[0], Site()
    async with server(site) as port:
        tries = [f"{FETCH} http://{name}:{port}" for name in (host, "127.0.0.1")]
        look = "env | grep -i proxy; tail -n +3 /proc/net/dev | cut -d: -f1"
        done, (by_name, by_address, seen), sent = await work(turnout, pages, *tries, look)
    assert site.requests == []
    assert "Commands reach" not in sent
    assert "URLError" in by_name
    assert "Connection refused" in by_address
    assert seen.split() == ["exit", "0", "lo"]
    assert "connection to" not in done.err
    assert (await turnout("runs", "show", "--json")).object["connections"] == []


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[tuple[Site, str, int, dict[str, str]]]:
    """Serve over TLS what a secret is for; also returns how the machine's user trusts it."""
    world, host, site = Certifier(), named_host()[0], Site(answer=ECHO)
    (tmp_path / "ca.pem").write_bytes(world.pem)
    async with server(site, world.server(host)) as port:
        yield site, host, port, {"SSL_CERT_FILE": str(tmp_path / "ca.pem")}


def bound(host: str, port: int) -> str:
    """Return the settings under which a secret is for one host."""
    rules = f'[policy.egress]\nprivate = ["{host}:{port}"]\n'
    return f'{rules}[policy.egress.secrets.EXAMPLE_TOKEN]\nhost = "{host}"\nenv = "MY_TOKEN"\n'


def holding(value: str, state: Path, out: Path) -> list[str]:
    """Return the names of files kept of runs that hold a value."""
    kept = [*state.glob("turnout.db*"), *state.glob("crashes/*"), *out.iterdir()]
    return [path.name for path in kept if value.encode() in path.read_bytes()]


async def test_a_bound_secret_reaches_its_host_and_nothing_else(
    turnout: Command,
    pages: TinyRepository,
    state: Path,
    guarded: tuple[Site, str, int, dict[str, str]],
) -> None:
    """Not the sandbox, the model, the screen or anything that is kept; not even an echo does."""
    site, host, port, trust = guarded
    turnout = turnout.configured(bound(host, port)).where(MY_TOKEN=VALUE, **trust)
    out = str(turnout.folder / "out")
    done, (seen, answered), sent = await work(turnout, pages, LOOK, ASK % (host, port))
    told = [(await turnout("runs", "show", *how)).out for how in (("--full",), ("--json",))]
    assert (await turnout("runs", "show", "--output", out)).code == 0
    (request,) = site.requests
    assert f"Authorization: Bearer {VALUE}\r\n".encode() in request
    assert f"{host}, where over TLS $EXAMPLE_TOKEN in a header becomes a secret" in sent
    assert seen == "exit 0\n0\nturnout-secret\n"
    assert answered.startswith("exit 0\nturnout-secret-")
    assert f"connection to {host}:{port}, with EXAMPLE_TOKEN: " in done.err
    for text in (sent, done.out, done.err, *told):
        assert VALUE not in text
    assert holding(VALUE, state, Path(out)) == []
    assert {"turnout.db", "record.jsonl", "summary.json"} <= {*holding(TASK, state, Path(out))}


@pytest.mark.parametrize(
    ("value", "host", "said"),
    [
        (None, "vault.example", "is the value of MY_TOKEN, which is not set. Export MY_TOKEN"),
        ("short", "vault.example", "It needs 8 to 4096 bytes on one line"),
        (VALUE, "elsewhere.example", "bound to elsewhere.example, which no rule admits. Add the"),
        (
            VALUE,
            "10.0.0.1",
            "use the name of the host. Bind it to the exact name of one host",
        ),
    ],
)
async def test_a_secret_that_cannot_be_bound_is_said_before_a_run_begins(
    turnout: Command, pages: TinyRepository, value: str | None, host: str, said: str
) -> None:
    """Past runs are read without it; a check of the machine names it, too."""
    turnout.configured(bound(host, 443).replace(f"{host}:443", "vault.example"))
    command = turnout if value is None else turnout.where(MY_TOKEN=value)
    before = (await command("runs", "list", "--json")).object
    async with ScriptedModelServer(models=["m"]) as model:
        done = await command.using(model.base_url)("run", TASK, "--repo", str(pages))
        seen = await command.using(model.base_url)("doctor")
        assert model.requests == model.probes == []
    assert (done.code, done.out) == (2, "")
    assert said in " ".join(done.err.split())
    assert value is None or value not in done.err
    assert (await command("runs", "list", "--json")).object == before
    assert (seen.code, said in " ".join(seen.out.split())) == (4, True), seen.out
