"""How sandboxes in pods begin and end, and what a cluster does to them meanwhile."""

import asyncio
import shutil
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.clusters import PODS, RUN, Clustered, clustered, eventually, said

from turnout.errors import SandboxDiedError, SandboxUnavailableError
from turnout.sandbox.base import Command, Exit, Limits
from turnout.sandbox.kubernetes.manifests.labels import LEASE
from turnout.testing.kubernetes.faults import Refusal, Start


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Clustered]:
    """Open a cluster."""
    async with clustered(tmp_path) as opened:
        yield opened


def phase(here: Clustered) -> str:
    """Return the phase of the only pod."""
    (pod,) = here.pods()
    return pod["status"]["phase"]


async def test_the_network_is_closed_before_the_first_pod(here: Clustered) -> None:
    """The policy is there first, and the pod bears what it chooses by."""
    sandbox = await here.start()
    made = [one.path.rpartition("/")[2] for one in here.cluster.asked if one.verb == "POST"]
    assert made == ["networkpolicies", "pods"]
    (asked,) = here.cluster.asked_for("POST", "/pods")
    assert asked.body["metadata"]["annotations"]["turnout/run"] == RUN
    assert asked.body["metadata"]["labels"]["app.kubernetes.io/name"] == "turnout-sandbox"
    assert "turnout/egress" not in asked.body["metadata"]["labels"]
    await sandbox.close()


async def test_a_closed_sandbox_leaves_no_pod(here: Clustered) -> None:
    """It is deleted without a grace, once, however often it is closed."""
    sandbox = await here.start()
    await asyncio.gather(sandbox.close(), sandbox.close())
    assert here.pods() == []
    (deleted,) = here.cluster.asked_for("DELETE", f"/pods/{sandbox.pod}")
    assert deleted.body["gracePeriodSeconds"] == 0


async def test_the_walls_are_those_that_were_asked_for(here: Clustered) -> None:
    """No capability, no other process, no file of the system, no network."""
    sandbox = await here.start()
    text = await said(sandbox, "id -u; grep CapBnd /proc/self/status; touch /etc/x /x; ls /proc")
    assert "1000" in text
    assert "CapBnd:\t0000000000000000" in text
    assert text.count("Read-only file system") == 2
    assert len([line for line in text.split() if line.isdigit() and line != "1000"]) <= 4
    assert await said(sandbox, "cat /proc/net/dev | grep -c :") == "1\n"
    await sandbox.close()


async def test_no_process_reaches_the_relay_or_the_agent(here: Clustered) -> None:
    """Killing everything that can be killed leaves the sandbox alive."""
    sandbox = await here.start()
    await sandbox.run(Command(shell="kill -9 -1; kill -9 1", timeout=10))
    assert await said(sandbox, "echo alive; ls /run/turnout") == "alive\nresident.py\n"
    await sandbox.close()


async def test_the_end_of_the_connection_ends_the_pod(here: Clustered) -> None:
    """As when the service is killed: nothing inside goes on, and the pod is over."""
    sandbox = await here.start()
    await said(sandbox, "sleep 300 >/dev/null 2>&1 &")
    here.cluster.tear_streams()
    assert await eventually(lambda: phase(here) in ("Succeeded", "Failed"))
    with pytest.raises(SandboxDiedError):
        await sandbox.run(Command(("true",)))
    await sandbox.close()


async def test_a_call_under_way_hears_of_the_end(here: Clustered) -> None:
    """A torn stream is no silence."""
    sandbox = await here.start()
    running = asyncio.create_task(sandbox.run(Command(("sleep", "300"), timeout=300)))
    await asyncio.sleep(0.1)
    here.cluster.tear_streams()
    with pytest.raises(SandboxDiedError):
        await asyncio.wait_for(running, 10)
    await sandbox.close()


async def test_a_stream_torn_within_a_frame_is_an_end(here: Clustered) -> None:
    """Half a frame is dropped, and the sandbox with it."""
    here.cluster.faults.cut_after_bytes = 5_000
    sandbox = await here.start()
    with pytest.raises(SandboxDiedError):
        await sandbox.run(Command(("head", "-c", "20000", "/dev/zero"), timeout=20))
    await sandbox.close()


async def test_an_eviction_is_told(here: Clustered) -> None:
    """The reason that the cluster gives is in the error."""
    sandbox = await here.start()
    message = "The node was low on resource: ephemeral-storage."
    await here.cluster.kubelet.fail(PODS, sandbox.pod, "Evicted", message)
    with pytest.raises(SandboxDiedError, match="Evicted: The node was low"):
        await sandbox.run(Command(("sleep", "30"), timeout=30))
    await sandbox.close()
    assert here.pods() == []


async def test_a_container_that_ran_out_of_memory_is_told(here: Clustered) -> None:
    """Where the kernel ends the agent too, the run hears why."""
    sandbox = await here.start()
    await here.cluster.kubelet.starve(PODS, sandbox.pod, "sandbox")
    with pytest.raises(SandboxDiedError, match="OOMKilled"):
        await sandbox.run(Command(("sleep", "30"), timeout=30))
    await sandbox.close()


async def test_the_restart_of_the_server_ends_what_it_carried(here: Clustered) -> None:
    """Streams do not outlive it; what is started afterwards works."""
    sandbox = await here.start()
    await here.cluster.stop()
    await here.cluster.serve()
    with pytest.raises(SandboxDiedError):
        await sandbox.run(Command(("true",)))
    await sandbox.close()
    again = await here.start()
    assert await said(again, "echo again") == "again\n"
    await again.close()
    assert here.pods() == []


@pytest.mark.parametrize(
    ("start", "told"),
    [
        ("no_image", "ErrImagePull: failed to resolve"),
        ("no_profile", "CreateContainerError: cannot load seccomp"),
        ("ends", "ended before it began"),
        ("unschedulable", "within 1 s: Unschedulable: 0/1 nodes"),
    ],
)
async def test_a_pod_that_does_not_start_is_told_and_removed(
    tmp_path: Path, start: Start, told: str
) -> None:
    """With the cluster's reason and what helps; nothing is waited for that cannot come."""
    async with clustered(tmp_path, start_seconds=1) as here:
        here.cluster.faults.start = start
        with pytest.raises(SandboxUnavailableError, match=told) as raised:
            await here.start()
        assert raised.value.mend
        assert here.pods() == []


async def test_a_start_that_is_given_up_leaves_no_pod(here: Clustered) -> None:
    """Cancelled half-way, it ends what it began."""
    here.cluster.faults.start = "unschedulable"
    starting = asyncio.create_task(here.start())
    assert await eventually(lambda: bool(here.pods()))
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert here.pods() == []


async def test_what_may_not_be_made_is_told(here: Clustered) -> None:
    """The mend names the file that holds the rights."""
    here.cluster.faults.forbidden.add(("create", "pods"))
    with pytest.raises(SandboxUnavailableError, match="cannot create") as raised:
        await here.start()
    assert "rbac.yaml" in raised.value.mend


async def test_a_pod_that_cannot_be_entered_is_removed(here: Clustered) -> None:
    """Without the right to execute in it, it is of no use."""
    here.cluster.faults.forbidden.add(("get", "pods/exec"))
    with pytest.raises(SandboxUnavailableError, match="does not connect"):
        await here.start()
    assert here.pods() == []


async def test_an_open_network_is_refused(here: Clustered) -> None:
    """Where the policy is missing and cannot be made, nothing is started."""
    here.cluster.faults.forbidden.add(("create", "networkpolicies"))
    with pytest.raises(SandboxUnavailableError, match="turnout-deny-all is not there"):
        await here.start()
    assert here.cluster.asked_for("POST", "/pods") == []


async def test_a_pod_whose_making_was_not_answered_is_one_pod(here: Clustered) -> None:
    """The lost answer is found out about by the name."""
    here.cluster.faults.refusals.append(Refusal(504, "POST", "/pods$", done=True))
    sandbox = await here.start()
    assert len(here.pods()) == 1
    assert await said(sandbox, "echo one") == "one\n"
    await sandbox.close()


async def test_output_that_nobody_reads_waits(here: Clustered) -> None:
    """A raw stream is held back from the websocket to the command, and comes whole."""
    sandbox = await here.start()
    command = Command(("head", "-c", str(24 << 20), "/dev/zero"), raw=True, timeout=60)
    total = 0
    async for item in sandbox.exec(command):
        if isinstance(item, Exit):
            assert item.reason == "exited"
        else:
            total += len(item.data)
    assert total == 24 << 20
    await sandbox.close()


async def test_a_pod_bears_a_lease(here: Clustered) -> None:
    """Other services see until when it is to be left alone."""
    sandbox = await here.start()
    (pod,) = here.pods()
    assert int(pod["metadata"]["annotations"][LEASE]) > 0
    await sandbox.close()


async def test_many_at_once(here: Clustered) -> None:
    """Each has its own pod; all are gone at the end."""
    started = await asyncio.gather(
        *(here.driver.start_bare(RUN, (), Limits(disk_bytes=64 << 20)) for _ in range(6))
    )
    assert len({sandbox.pod for sandbox in started}) == 6
    assert await asyncio.gather(*(said(s, "echo here") for s in started)) == ["here\n"] * 6
    await asyncio.gather(*(sandbox.close() for sandbox in started))
    assert here.pods() == []


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
async def test_kubectl_takes_the_server_for_one(here: Clustered) -> None:
    """A client that is not ours reads pods and executes in them, with input, status and all."""
    sandbox = await here.start()
    server = ("kubectl", "--server", here.cluster.url, "--namespace", "turnout-sandboxes")
    program = ("--", "/bin/sh", "-c", "cat; echo complaint >&2; exit 3")
    process = await asyncio.create_subprocess_exec(
        *server,
        "exec",
        "-i",
        sandbox.pod,
        "-c",
        "relay",
        *program,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(b"input"), 30)
    assert (process.returncode, out) == (3, b"input")
    assert b"complaint" in err
    await sandbox.close()
