"""What of a container's walls the table of attempts does not try."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from secrets import token_hex

import pytest
import pytest_asyncio
from tests.containers import MIB, RUN, SMALL, opened, said
from tests.egress import Certifier, FixedResolver, Site, local, server

from turnout.sandbox.base import BoundSecret, Command, Egress, Mount, Sandbox
from turnout.sandbox.container.driver import ContainerDriver
from turnout.sandbox.egress.authority import RunAuthority
from turnout.sandbox.egress.gate import EgressServices

pytestmark = [
    pytest.mark.abuse,
    pytest.mark.asyncio(loop_scope="module"),
]

WORLD = Certifier()
FETCH = """
import base64, os, sys, urllib.request
password = base64.b64encode(b"me:" + os.environ["TOKEN"].encode()).decode()
headers = {"Authorization": f"Basic {password}"}
print(urllib.request.urlopen(urllib.request.Request(sys.argv[1], headers=headers)).read())
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["direct", "piped"])
async def driver(
    request: pytest.FixtureRequest, sandbox_state: Path
) -> AsyncIterator[ContainerDriver]:
    """Open a driver for each way to talk to a container."""
    services = EgressServices(FixedResolver(), RunAuthority)
    async with opened(sandbox_state, piped=request.param == "piped", egress=services) as each:
        yield each


@pytest_asyncio.fixture(loop_scope="module")
async def sandbox(driver: ContainerDriver) -> AsyncIterator[Sandbox]:
    """Start a small one."""
    started = await driver.start_bare(RUN, (), SMALL)
    yield started
    await started.close()


async def test_the_driver_says_what_holds(driver: ContainerDriver, sandbox: Sandbox) -> None:
    """The name of the walls is on the record of each run."""
    found = await driver.probe()
    assert found.usable
    assert sandbox.isolation == found.isolation
    assert found.isolation.startswith("podman+")
    assert "seccomp" in found.isolation
    facts = {name: holds for name, holds, _ in found.facts}
    assert facts["system call filter"]
    assert facts["overlay workspace"]


async def test_nothing_of_the_hosts_names_shows(sandbox: Sandbox) -> None:
    """Neither its name, its name servers nor its users."""
    assert await said(sandbox, "cat /etc/resolv.conf") == ""
    assert await said(sandbox, "hostname; cat /etc/hostname") == "sandbox\nsandbox"
    assert await said(sandbox, "cut -d: -f1 /etc/passwd /etc/group") == "root\nagent\nroot\nagent"
    assert await said(sandbox, "id -un; echo ~; ls -A ~") == "agent\n/tmp/home"


async def test_memory_that_runs_out_is_told(sandbox: Sandbox) -> None:
    """Processes and files together; the sandbox goes on."""
    fill = "head -c 40M /dev/zero >a; " + " & ".join(
        ["python3 -c 'x = b\"x\" * (120 << 20); import time; time.sleep(5)'"] * 2
    )
    result = await sandbox.run(Command(shell=f"{fill}; wait -n; exit 1", timeout=30))
    assert result.exit.reason == "oom"
    assert await said(sandbox, "echo alive") == "alive"


async def test_one_disk_for_all_that_is_written(sandbox: Sandbox) -> None:
    """The workspace, temporary files and shared memory are one tmpfs."""
    for folder in ("/repo", "/tmp", "/dev/shm"):
        assert await said(sandbox, f"head -c 14M /dev/zero >{folder}/a && echo fits") == "fits"
    assert "No space left" in await said(sandbox, "head -c 14M /dev/zero >/tmp/b")
    usage = await sandbox.usage()
    assert usage.disk_bytes is not None
    assert 42 * MIB <= usage.disk_bytes <= SMALL.disk_bytes


async def test_what_a_container_uses_is_counted(sandbox: Sandbox) -> None:
    """By its control group, not that of the service."""
    await said(sandbox, "python3 -c 'sum(range(10**7)); x = b\"x\" * (50 << 20)'")
    usage = await sandbox.usage()
    assert usage.cpu_seconds is not None
    assert 0.1 < usage.cpu_seconds < 60
    assert usage.peak_memory_bytes is not None
    assert 50 * MIB < usage.peak_memory_bytes < 300 * MIB


async def test_folders_are_shown_as_they_were_asked_for(
    driver: ContainerDriver, sandbox_state: Path
) -> None:
    """Read-only ones cannot be written, writable ones belong to the container's user."""
    own = sandbox_state / f"shown-{token_hex(4)}"
    given, made = own / "given", own / "made"
    for path in (given, made):
        path.mkdir(parents=True)
    (given / "a").write_text("one")
    mounts = (Mount(str(given), "/given"), Mount(str(made), "/made", writable=True))
    started = await driver.start_bare(RUN, mounts, SMALL)
    found = await said(started, "cat /given/a; touch /given/b; echo two >/made/b; stat -c %U /made")
    await started.close()
    assert found.startswith("one")
    assert "Read-only file system" in found
    assert found.endswith("agent")
    assert (made / "b").read_text() == "two\n"
    assert (made / "b").stat().st_uid == made.stat().st_uid


async def test_programs_inside_reach_what_is_admitted(
    driver: ContainerDriver, sandbox_state: Path
) -> None:
    """Through a socket of their own loopback; a secret is put in on the way."""
    authorities = sandbox_state / "ca.pem"
    authorities.write_bytes(WORLD.pem)
    site = Site(credentials=b"me:the-value")
    secret = BoundSecret("TOKEN", "api.test", "the-value")
    async with server(site, WORLD.server("api.test")) as port:
        rules = (local(port, host="api.test"),)
        egress = Egress(rules, (secret,), ca_files=(str(authorities),))
        started = await driver.start_bare(RUN, (), SMALL, egress=egress)
        found = await said(started, f"python3 -c '{FETCH}' https://api.test:{port}/; env")
        assert "b'ok'" in found
        assert "the-value" not in found
        assert started.connections()[0].secrets == ("TOKEN",)
        await started.close()


async def test_a_workspace_of_many_files_is_counted(driver: ContainerDriver) -> None:
    """Their number is limited as their size is."""
    few = replace(SMALL, inodes=300)
    started = await driver.start_bare(RUN, (), few)
    found = await said(started, "for n in $(seq 400); do : >$n || break; done; ls | wc -l")
    await started.close()
    assert "No space left" in found
    assert int(found.split()[-1]) < 300
