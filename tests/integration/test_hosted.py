"""Sandboxes on rented machines, against a host whose machines are processes here."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.clusters import eventually
from tests.sandboxes import all_commands

from turnout.core.ids import RunId
from turnout.errors import SandboxDiedError, SandboxError, SandboxUnavailableError
from turnout.sandbox.base import (
    BaseSpec,
    BoundSecret,
    Command,
    Egress,
    Exit,
    HostRule,
    Limits,
    Output,
)
from turnout.sandbox.hosted.driver import HostedDriver, HostedSandbox
from turnout.sandbox.hosted.options import HostedOptions
from turnout.testing.repositories import buggy_pagination
from turnout.testing.rooms.machines import LocalMachine, LocalMachines

RUN = RunId("run-0000000000d1")


@dataclass(frozen=True)
class Rented:
    """A host and a driver that rents from it."""

    host: LocalMachines
    driver: HostedDriver

    async def start(self, limits: Limits | None = None) -> HostedSandbox:
        """Start an empty sandbox."""
        return await self.driver.start_bare(RUN, (), limits or Limits())

    @property
    def machine(self) -> LocalMachine:
        """The only machine."""
        (machine,) = self.host.machines.values()
        return machine


@pytest.fixture
async def rented(tmp_path: Path, sandbox_state: Path) -> AsyncIterator[Rented]:
    """Open a host; nothing may be rented at the end."""
    if missing := [name for name in ("bwrap", "nsenter") if shutil.which(name) is None]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    host = LocalMachines(tmp_path / "host")
    options = HostedOptions(image="python", labels=(("team", "a"),))
    yield Rented(host, HostedDriver(sandbox_state, host, options))
    assert host.machines == {}
    assert str(tmp_path) not in all_commands()


async def said(sandbox: HostedSandbox, shell: str) -> str:
    """Return what a command printed on both streams."""
    result = await sandbox.run(Command(shell=f"exec 2>&1; {shell}", timeout=20))
    return result.stdout.decode(errors="replace")


async def test_a_machine_is_rented_for_a_sandbox_and_given_back(rented: Rented) -> None:
    """What was wished for is what the options and the limits say."""
    sandbox = await rented.start(Limits(lifetime_seconds=90.5))
    (wish,) = rented.host.wishes
    assert (wish.image, wish.lifetime_seconds) == ("python", 91)
    assert wish.labels == (("turnout_run", RUN), ("team", "a"))
    assert await said(sandbox, "echo here") == "here\n"
    await asyncio.gather(sandbox.close(), sandbox.close())
    assert rented.host.machines == {}


async def test_a_workspace_is_sent_and_compared(rented: Rented, tmp_path: Path) -> None:
    """By another machine, which the run never touched; what a set-up command made is sent too."""
    repository = buggy_pagination(tmp_path / "repository")
    setup = "mkdir gen; echo 1 > gen/x; touch /venv/made"
    spec = BaseSpec(str(repository), repository.head, requirements=(), setup=setup)
    sandbox = await rented.driver.create(RUN, await rented.driver.prepare(spec), Limits())
    assert await said(sandbox, "git status --porcelain; git log --format=%s") == "first\n"
    assert "1 failed, 2 passed" in await said(sandbox, "python -m pytest -q 2>&1 | tail -1")
    assert await said(sandbox, "cat gen/x; ls /venv/made") == "1\n/venv/made\n"
    await sandbox.write("pages.py", b"changed\n")
    await sandbox.write("gen/x", b"2\n")
    patch = await sandbox.diff()
    assert [change.path for change in patch.files] == ["pages.py"]
    assert "gen/x" in patch.excluded
    with pytest.raises(SandboxError, match="keeps no snapshots"):
        await sandbox.snapshot()
    await sandbox.close()


async def test_output_comes_before_the_end(rented: Rented) -> None:
    """Though the host only runs commands to their end."""
    sandbox = await rented.start()
    items = sandbox.exec(Command(shell="echo first; sleep 60; echo second", timeout=90))
    assert await asyncio.wait_for(anext(items), 10) == Output("stdout", b"first\n")
    await sandbox.kill_all()
    ended = await asyncio.wait_for(anext(items), 10)
    assert isinstance(ended, Exit)
    assert ended.reason == "cancelled"
    await sandbox.close()


async def test_much_comes_and_goes_whole(rented: Rented) -> None:
    """More than a host keeps of an output, and more than one frame holds."""
    sandbox = await rented.start()
    data = bytes(range(256)) * 40_000
    counted = await sandbox.run(Command(("wc", "-c"), stdin=data, timeout=60))
    assert int(counted.stdout) == len(data)
    await sandbox.write("large", data)
    command = Command(("cat", "large"), raw=True, timeout=60)
    got = [item.data async for item in sandbox.exec(command) if isinstance(item, Output)]
    assert b"".join(got) == data
    left = await rented.machine.run("ls /scratch/turnout | grep -c '[.]in[.]'", timeout=10)
    assert left.stdout.strip() == "0"
    await sandbox.close()


async def test_a_command_that_nobody_awaits_ends(rented: Rented) -> None:
    """Leaving its output reaches the machine."""
    sandbox = await rented.start()
    items = sandbox.exec(Command(shell="echo up; exec sleep 4321", timeout=60))
    await anext(items)
    await items.aclose()
    assert await eventually(lambda: "sleep\x004321" not in all_commands())
    assert await said(sandbox, "echo alive") == "alive\n"
    await sandbox.close()


async def test_a_host_that_fails_ends_the_sandbox(rented: Rented) -> None:
    """Its reason is told to whoever waits, and nothing hangs."""
    sandbox = await rented.start()
    machine = rented.machine
    machine.broken = True
    with pytest.raises(SandboxDiedError, match="the host does not answer"):
        await asyncio.wait_for(sandbox.run(Command(("true",))), 10)
    machine.broken = False
    await sandbox.close()


@pytest.mark.parametrize("answer", ["echo nonsense", "echo '{\"more\": true}'; kill $$", "exit 7"])
async def test_a_courier_that_lies_ends_the_sandbox(rented: Rented, answer: str) -> None:
    """A run may replace our programs on its machine; that harms nobody but itself."""
    sandbox = await rented.start()
    program = f"import os; os.execv('/bin/sh', ['sh', '-c', {answer!r}])"
    await rented.machine.write("/scratch/turnout/courier.py", program.encode())
    with pytest.raises(SandboxDiedError):
        await asyncio.wait_for(sandbox.run(Command(("true",), timeout=5)), 20)
    await sandbox.close()


async def test_an_idle_machine_is_paused_as_a_whole(rented: Rented) -> None:
    """By its host, which may charge less then; a call wakes it."""
    sandbox = await rented.start()
    await sandbox.pause()
    assert rented.machine.pauses == 1
    assert await said(sandbox, "echo awake") == "awake\n"
    await sandbox.close()


async def test_what_cannot_be_held_there_is_refused(rented: Rented) -> None:
    """Bound secrets and hosts of one's own network need our proxy."""
    rules = (HostRule("api.example"),)
    secret = Egress(rules, secrets=(BoundSecret("TOKEN", "api.example", "value"),))
    private = Egress((HostRule("mirror.corp", private=True),))
    for egress, told in ((secret, "bound secrets"), (private, "your own network")):
        with pytest.raises(SandboxUnavailableError, match=told):
            await rented.driver.start_bare(RUN, (), Limits(), egress=egress)
    assert rented.host.wishes == []


async def test_what_a_dead_service_rented_is_given_back(rented: Rented) -> None:
    """Its note is found without its lock; living sandboxes are left alone."""
    living = await rented.start()
    lost = await rented.start()
    machines = list(rented.host.machines)
    lost_machine = machines[1]
    folder = rented.driver.state_dir / "machines"
    text = next(text for text in noted(folder) if lost_machine in text)
    (folder / f"{lost_machine}-again.json").write_text(text)
    assert await rented.driver.reap(frozenset({RUN})) == ()
    assert await rented.driver.reap(frozenset()) == (RUN,)
    assert lost_machine not in rented.host.machines
    assert await said(living, "echo alive") == "alive\n"
    await lost.close()
    await living.close()
    assert not [text for text in noted(folder) for machine in machines if machine in text]


def noted(folder: Path) -> list[str]:
    """Return what is noted of machines; those of other tests come and go."""
    texts = []
    for note in folder.glob("*.json"):
        with contextlib.suppress(FileNotFoundError):
            texts.append(note.read_text())
    return texts


async def test_a_probe_rents_nothing(rented: Rented) -> None:
    """It asks whether the account is admitted."""
    found = await rented.driver.probe()
    assert found.usable
    rented.host.admits = False
    found = await rented.driver.probe()
    assert not found.usable
    assert "Set another one" in found.facts[0][2]
    assert rented.host.wishes == []


async def test_a_start_that_fails_leaves_no_machine(rented: Rented) -> None:
    """An image without our interpreter is told, and its machine given back."""
    options = HostedOptions(python="/usr/bin/missing")
    driver = HostedDriver(rented.driver.state_dir, rented.host, options)
    with pytest.raises(SandboxUnavailableError, match="did not start"):
        await driver.start_bare(RUN, (), Limits())
    assert rented.host.machines == {}
