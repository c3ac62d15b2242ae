"""The tool that runs commands, in a real sandbox: what hangs, floods or poisons a conversation."""

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.sandboxes import started

from turnout.agent.base import AgentConfig, Brief
from turnout.agent.tools.arguments import read_arguments
from turnout.agent.tools.base import ToolContext
from turnout.agent.tools.run import Run
from turnout.core.ids import RunId
from turnout.sandbox.base import Sandbox
from turnout.sandbox.bubblewrap import BubblewrapDriver

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.cases]

BRIEF = Brief(RunId("run-000000000001"), "Fix it.", "shell", None, None, ())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox(sandbox_state: Path) -> AsyncIterator[Sandbox]:
    """Start the sandbox of all cases."""
    async with started(BubblewrapDriver(sandbox_state)) as one:
        yield one


async def said(sandbox: Sandbox, command: str, timeout: float = 20.0) -> str:
    """Return what the model reads, before it is cut."""
    context = ToolContext(sandbox, BRIEF, AgentConfig(command_timeout=timeout))
    arguments = read_arguments(Run.spec, json.dumps({"command": command}))
    return (await Run().call(arguments, context)).text


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("sleep 300 & echo started", "exit 0\nstarted\n"),
        ("setsid sleep 25 & echo started", "exit 0\nstarted\n"),
        ("read x; echo got:$x", "exit 0\ngot:\n"),
        ("echo $GIT_EDITOR $PAGER", "exit 0\ntrue cat\n"),
        (r"printf '\xff\xfe\x1b[31mred'", "exit 0\n\ufffd\ufffdred"),
    ],
)
async def test_a_command_ends_and_reads_as_text(
    sandbox: Sandbox, command: str, expected: str
) -> None:
    """Nothing waits for a pipe, a person or an editor."""
    begun = time.monotonic()
    assert await said(sandbox, command) == expected
    assert time.monotonic() - begun < 10


async def test_what_came_before_the_time_was_over_is_kept(sandbox: Sandbox) -> None:
    """The model reads both: what was printed, and that it did not end."""
    text = await said(sandbox, "echo first; sleep 60", timeout=1.0)
    assert text.startswith("timed out after 1 s")
    assert "first\n" in text


async def test_a_flood_without_line_ends_is_bounded(sandbox: Sandbox) -> None:
    """However much is printed, head and tail are kept."""
    text = await said(sandbox, "yes | tr -d '\\n' | head -c 30000000; echo; echo end")
    assert len(text) < 500_000
    assert "from the middle of the output were not kept" in text or "printed too much" in text


async def test_files_stay_and_variables_do_not(sandbox: Sandbox) -> None:
    """As the tool's description says."""
    await said(sandbox, "mkdir -p sub; cd sub; export A=1; echo x >/tmp/t")
    text = await said(sandbox, "basename $PWD; echo [$A]; cat /tmp/t")
    assert "[]\nx\n" in text
    assert not text.startswith("exit 0\nsub\n")
