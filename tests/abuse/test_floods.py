"""Much of what is harmless by itself: commands by the thousand, and writing while others look."""

import asyncio
import re

import pytest
from tests.integration.workspaces import shell

from turnout.core.ids import new_run_id
from turnout.sandbox.base import Command, Sandbox

pytestmark = pytest.mark.abuse

WRITERS = """
import os
def put(name, data):
    with open(name + ".new", "wb") as file:
        file.write(data)
    os.rename(name + ".new", name)
os.makedirs("pairs", exist_ok=True)
for n in range(1, 10_000_000):
    for side in "ab":
        put("pairs/" + side, b"%d" % n)
    os.makedirs(f"pairs/d{n % 7}", exist_ok=True)
    put(f"pairs/d{n % 7}/f", b"x" * (n % 5000))
    if n % 7 == 6:
        os.remove("pairs/d6/f")
        os.rmdir("pairs/d6")
"""


async def resident_kilobytes(sandbox: Sandbox) -> int:
    """Return the memory of the agent, as everybody inside may see it."""
    found = re.search(r"VmRSS:\s+(\d+) kB", await shell(sandbox, "cat /proc/1/status"))
    assert found is not None
    return int(found.group(1))


async def test_commands_by_the_thousand_leave_the_agent_as_it_was(
    workspace: Sandbox, full: bool
) -> None:
    """One after another in eight lines at once: each has its own answer, memory stays."""

    async def line(number: int, count: int) -> None:
        for turn in range(count):
            word = f"{number}-{turn}"
            result = await workspace.run(Command(("echo", word)))
            assert result.stdout == f"{word}\n".encode()

    await asyncio.gather(*(line(n, 10) for n in range(8)))
    before = await resident_kilobytes(workspace)
    processes = await shell(workspace, "set -- /proc/[0-9]*; echo $#")
    await asyncio.gather(*(line(n, 1250 if full else 250) for n in range(8)))
    assert await resident_kilobytes(workspace) - before < (2048 if full else 512)
    assert await shell(workspace, "set -- /proc/[0-9]*; echo $#") == processes


async def test_a_layer_is_one_moment_of_a_tree_that_is_written(workspace: Sandbox) -> None:
    """Two files that are always written one after the other never differ by more than one turn."""
    writing = Command(("python3", "-IS", "-c", WRITERS), background=True, timeout=60)
    task = asyncio.create_task(workspace.run(writing))
    await shell(workspace, "until [ -e pairs/b ]; do :; done")
    for _ in range(4):
        fork = await workspace.fork(new_run_id())
        try:
            a, b = [int((await fork.read(f"pairs/{side}")).data) for side in "ab"]
        finally:
            await fork.close()
        assert 0 <= a - b <= 1
    last = int((await workspace.read("pairs/a")).data)
    assert last > a
    await workspace.kill_all()
    await task
