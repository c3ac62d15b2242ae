"""The adapters of hosts of machines, over fakes of their packages."""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from turnout.errors import SandboxDiedError, SandboxUnavailableError
from turnout.sandbox.base import NO_EGRESS, Egress, HostRule
from turnout.sandbox.hosted.hosts.e2b import E2bProvider
from turnout.sandbox.hosted.hosts.novita import NovitaProvider
from turnout.sandbox.hosted.hosts.withruntime import RuntimeProvider
from turnout.sandbox.hosted.machine import HostedProvider, MachineWish, Ran

WISH = MachineWish("python", 600, (("turnout_run", "run-1"),), NO_EGRESS)
TO_API = MachineWish(None, 600, (), Egress(rules=(HostRule("api.example.org"),)))


class RefusedError(Exception):
    """What a package raises for every fault of its host."""


class MissingError(RefusedError):
    """What it raises for a machine that is not there."""


class ExitedError(RefusedError):
    """What `e2b` raises for an exit status."""

    exit_code, stdout, stderr = 3, "out", "err"


class FakeHost:
    """Records what is asked; raises `failure` where one is set."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.failure: Exception | None = None

    def note(self, name: str, *args: Any, **options: Any) -> None:
        """Record a request."""
        self.asked.append((name, args, options))
        if self.failure is not None:
            raise self.failure

    def method(self, name: str, answer: Any = None) -> Any:
        """Return an asynchronous method that records and answers."""

        async def call(*args: Any, **options: Any) -> Any:
            self.note(name, *args, **options)
            return answer

        return call

    def stream(self, *args: Any, **options: Any) -> AsyncIterator[bytes]:
        """Return pieces without end."""
        self.note("read", *args, **options)

        async def pieces() -> AsyncIterator[bytes]:
            while True:
                yield b"x" * 10

        return pieces()

    def names(self) -> list[str]:
        """Return what was asked, in order."""
        return [name for name, _, _ in self.asked]


def e2b(host: FakeHost, provider: type[E2bProvider] = E2bProvider) -> HostedProvider:
    """Return an adapter over a fake of `e2b`."""

    async def read(*args: Any, **options: Any) -> AsyncIterator[bytes]:
        return host.stream(*args, **options)

    done = SimpleNamespace(exit_code=0, stdout="out", stderr="err")
    sandbox = SimpleNamespace(
        sandbox_id="m-1",
        commands=SimpleNamespace(run=host.method("run", done)),
        files=SimpleNamespace(read=read, write=host.method("write")),
        pause=host.method("pause"),
        connect=host.method("wake"),
        kill=host.method("end"),
    )

    def pages(**options: Any) -> Any:
        host.note("list", **options)
        return SimpleNamespace(next_items=host.method("next", []))

    package: Any = SimpleNamespace(
        AsyncSandbox=SimpleNamespace(
            create=host.method("create", sandbox), list=pages, kill=host.method("end by name")
        ),
        CommandExitException=ExitedError,
        SandboxException=RefusedError,
        AuthenticationException=RefusedError,
    )
    return provider(package, "key")


def novita(host: FakeHost) -> HostedProvider:
    """Return an adapter over a fake of `novita_sandbox.core`."""
    return e2b(host, NovitaProvider)


def withruntime(host: FakeHost) -> HostedProvider:
    """Return an adapter over a fake of `withruntime`."""
    done = SimpleNamespace(exit_code=0, stdout="out", stderr="err", timed_out=False)
    sandbox = SimpleNamespace(
        id="m-1",
        exec=host.method("run", done),
        files=SimpleNamespace(read_stream=host.stream, write=host.method("write")),
        pause=host.method("pause"),
        wake=host.method("wake"),
        delete=host.method("end"),
    )
    client = SimpleNamespace(
        sandboxes=SimpleNamespace(
            create=host.method("create", sandbox), delete=host.method("end by name")
        ),
        me=host.method("me"),
        close=host.method("close"),
    )
    package: Any = SimpleNamespace(
        AsyncRuntime=lambda **_: client,
        RuntimeAPIError=RefusedError,
        NotFoundError=MissingError,
    )
    return RuntimeProvider(package, "key")


HOSTS = [e2b, novita, withruntime]


@pytest.mark.parametrize("make", HOSTS)
async def test_a_machine_is_used_through_its_package(make: Any) -> None:
    """Each call is one of the package's; a file is not fetched beyond the limit."""
    host = FakeHost()
    machine = await make(host).start(WISH)
    assert machine.id == "m-1"
    assert await machine.run("true", timeout=5) == Ran(0, "out", "err")
    assert await machine.read("/f", limit=25) == b"x" * 25
    await machine.write("/f", b"data")
    assert await machine.pause()
    await machine.resume()
    await machine.end()
    assert host.names() == ["create", "run", "read", "write", "pause", "wake", "end"]


@pytest.mark.parametrize("make", HOSTS)
async def test_a_fault_while_it_is_used_ends_the_sandbox(make: Any) -> None:
    """Whatever the package raises, the text of it is told."""
    host = FakeHost()
    machine = await make(host).start(WISH)
    for failure in (RefusedError("no route"), ConnectionResetError("no route")):
        host.failure = failure
        with pytest.raises(SandboxDiedError, match="no route"):
            await machine.run("true", timeout=5)
        with pytest.raises(SandboxDiedError, match="no route"):
            await machine.read("/f", limit=9)


@pytest.mark.parametrize("make", HOSTS)
async def test_a_host_that_refuses_is_told(make: Any) -> None:
    """Neither the probe nor the start ends in an error of the package."""
    host = FakeHost()
    provider = make(host)
    assert await provider.check()
    host.failure = RefusedError("quota exceeded")
    with pytest.raises(SandboxUnavailableError, match="quota exceeded"):
        await provider.check()
    with pytest.raises(SandboxUnavailableError, match="quota exceeded"):
        await provider.start(WISH)


@pytest.mark.parametrize("make", HOSTS)
async def test_a_machine_is_given_back_by_its_name(make: Any) -> None:
    """After a crash nothing else of it is known."""
    host = FakeHost()
    await make(host).end("m-2")
    ((name, args, _),) = host.asked
    assert (name, args) == ("end by name", ("m-2",))


@pytest.mark.parametrize("make", [e2b, novita])
async def test_the_network_is_shut(make: Any) -> None:
    """Without rules a machine reaches nothing; its image, life and labels are those wanted."""
    host = FakeHost()
    await make(host).start(WISH)
    ((_, _, options),) = host.asked
    assert options["allow_internet_access"] is False
    assert options["template"] == "python"
    assert options["timeout"] == 600
    assert options["metadata"] == {"turnout_run": "run-1"}


async def test_runtime_is_asked_for_a_shut_network() -> None:
    """With no secret of the account's, and an end that deletes."""
    host = FakeHost()
    await withruntime(host).start(WISH)
    ((_, _, options),) = host.asked
    assert options["network"] == {"internet": False}
    assert options["secrets"] == []
    assert options["on_lease_end"] == "delete"
    assert options["timeout_seconds"] == 600


async def test_e2b_is_held_to_the_hosts_of_the_rules() -> None:
    """Everything else is denied."""
    host = FakeHost()
    await e2b(host).start(TO_API)
    ((_, _, options),) = host.asked
    assert options["network"] == {"allow_out": ["api.example.org"], "deny_out": ["0.0.0.0/0"]}
    assert "allow_internet_access" not in options


@pytest.mark.parametrize("make", [novita, withruntime])
async def test_rules_that_a_host_cannot_hold_are_refused(make: Any) -> None:
    """Rather that than an open network."""
    host = FakeHost()
    with pytest.raises(SandboxUnavailableError, match="by their names"):
        await make(host).start(TO_API)
    assert host.asked == []


async def test_an_exit_status_is_no_fault() -> None:
    """`e2b` raises for it; to us it is a result."""
    host = FakeHost()
    machine = await e2b(host).start(WISH)
    host.failure = ExitedError()
    assert await machine.run("false", timeout=5) == Ran(3, "out", "err")


async def test_a_machine_that_is_gone_is_ended() -> None:
    """Runtime says that there is none; that is what was wanted."""
    host = FakeHost()
    provider = withruntime(host)
    machine = await provider.start(WISH)
    host.failure = MissingError("not found")
    await machine.end()
    await provider.end("m-1")
