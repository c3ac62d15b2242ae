"""The adapters call what the packages have; skipped where a package is not installed."""

import importlib
import inspect
from types import SimpleNamespace
from typing import Any

import pytest

from turnout.errors import SandboxUnavailableError
from turnout.sandbox.base import NO_EGRESS
from turnout.sandbox.hosted.hosts.e2b import E2bProvider
from turnout.sandbox.hosted.hosts.novita import NovitaProvider
from turnout.sandbox.hosted.hosts.withruntime import RuntimeProvider
from turnout.sandbox.hosted.machine import MachineWish

WISH = MachineWish(None, 60, (("turnout_run", "run-1"),), NO_EGRESS)


def package(name: str) -> Any:
    """Return a package, or skip aloud."""
    return pytest.importorskip(name, reason=f"the package {name} is not installed")


def takes(function: Any, *names: str) -> bool:
    """Whether a function takes parameters by name."""
    return set(names) <= inspect.signature(function).parameters.keys()


@pytest.mark.parametrize("name", ["e2b", "novita_sandbox.core"])
def test_what_is_called_of_e2b_is_there(name: str) -> None:
    """Names of methods, of parameters and of errors."""
    core = package(name)
    machine = core.AsyncSandbox
    network = ("allow_internet_access", "network")
    assert takes(machine.create, "template", "timeout", "metadata", *network)
    assert takes(machine.list, "limit")
    assert hasattr(machine, "kill")
    assert hasattr(machine, "pause")
    assert takes(machine.connect, "timeout")
    errors = (core.SandboxException, core.CommandExitException, core.AuthenticationException)
    assert all(issubclass(error, Exception) for error in errors)
    assert issubclass(core.CommandExitException, core.SandboxException)
    async_room = f"{name}.sandbox_async"
    commands = importlib.import_module(f"{async_room}.commands.command").Commands
    files = importlib.import_module(f"{async_room}.filesystem.filesystem").Filesystem
    assert takes(commands.run, "cmd", "timeout")
    assert takes(files.read, "path", "format")
    assert takes(files.write, "path", "data")


@pytest.mark.parametrize(
    ("name", "kind"), [("e2b", E2bProvider), ("novita_sandbox.core", NovitaProvider)]
)
async def test_a_host_of_e2b_out_of_reach_is_told(name: str, kind: type[E2bProvider]) -> None:
    """What the package raises where nobody listens is an error of ours."""
    core = package(name)
    faults = (package("httpx").HTTPError,)
    options = {"api_url": "http://127.0.0.1:9", "request_timeout": 5}
    provider = kind(core, "e2b_" + "0" * 40, faults=faults, options=options)
    for call in (provider.check(), provider.start(WISH), provider.end("m-1")):
        with pytest.raises(SandboxUnavailableError, match="rents no machine"):
            await call


async def test_runtime_out_of_reach_is_told() -> None:
    """What the package raises where nobody listens is an error of ours."""
    runtime = package("withruntime")

    def client(**options: Any) -> Any:
        return runtime.AsyncRuntime(**options, base_url="http://127.0.0.1:9", max_retries=0)

    reached = SimpleNamespace(
        AsyncRuntime=client,
        RuntimeAPIError=runtime.RuntimeAPIError,
        NotFoundError=runtime.NotFoundError,
    )
    provider = RuntimeProvider(reached, "key")
    for call in (provider.check(), provider.start(WISH), provider.end("m-1")):
        with pytest.raises(SandboxUnavailableError, match="rents no machine"):
            await call
    await provider.close()


def test_what_is_called_of_withruntime_is_there() -> None:
    """Names of methods and of parameters, and every field of a machine that we ask for."""
    runtime = package("withruntime")
    assert issubclass(runtime.NotFoundError, runtime.RuntimeAPIError)
    assert takes(runtime.AsyncRuntime, "api_key")
    assert takes(runtime.AsyncSandbox.exec, "command", "timeout_ms")
    for name in ("pause", "wake", "delete"):
        assert inspect.iscoroutinefunction(getattr(runtime.AsyncSandbox, name))
    assert takes(runtime.AsyncFiles.read_stream, "path")
    assert takes(runtime.AsyncFiles.write, "path", "data")
    fields = ("image", "timeout_seconds", "on_lease_end", "labels", "network", "secrets")
    runtime.AsyncSandboxes._check_create(None, dict.fromkeys(fields))
