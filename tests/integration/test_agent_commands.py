"""The tool that runs commands, in a real sandbox: what hangs, floods or poisons a conversation."""

import json
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from tests.sandboxes import started

from turnout.agent.base import AgentConfig, Brief
from turnout.agent.loop import LoopStrategy
from turnout.agent.tools.arguments import read_arguments
from turnout.agent.tools.base import ToolContext
from turnout.agent.tools.run import Run
from turnout.agent.tools.run_tests import RunTests
from turnout.agent.wire import encode_request
from turnout.core.clock import SystemClock
from turnout.core.events import LoopEnded, ToolCallDone, decode_event, encode_event
from turnout.core.ids import RunId
from turnout.sandbox.base import Sandbox
from turnout.sandbox.bubblewrap import BubblewrapDriver
from turnout.testing.model_client import ScriptedModelClient
from turnout.testing.recorded import history_faults
from turnout.testing.turns import Call, Turn

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


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python3 -c 'input()'", "EOFError"),
        (
            "git init -q r; cd r; git -c user.name=a -c user.email=b commit --allow-empty",
            "Aborting",
        ),
        ("seq 3 >f; less f", "exit 0\n1\n2\n3\n"),
        ("cat </dev/tty", "No such device"),
        ("sudo -k ls", "exit 1"),
        ("ssh example.org", "exit "),
    ],
)
async def test_nobody_is_asked_and_nothing_waits_for_an_answer(
    sandbox: Sandbox, command: str, expected: str
) -> None:
    """Editors, pagers, prompts and passwords have no terminal and no input, and say so."""
    assert expected in await said(sandbox, command)


async def test_a_flood_without_line_ends_is_bounded(sandbox: Sandbox) -> None:
    """However much is printed, head and tail are kept."""
    text = await said(sandbox, "yes | tr -d '\\n' | head -c 300000000; echo; echo end")
    assert len(text) < 500_000
    assert "from the middle of the output were not kept" in text or "printed too much" in text


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("while True: pass", "The tests timed out after 1 s."),
        ("import os\nwhile True:\n try: os.fork()\n except OSError: pass", "timed out after 1 s."),
        ("input()", "EOFError"),
        ("f = open('big', 'wb')\nwhile True: f.write(bytes(1 << 20))", "File too large"),
        ("bytes(20 << 30)", "MemoryError"),
    ],
)
async def test_tests_that_would_take_everything_end(
    sandbox: Sandbox, code: str, expected: str
) -> None:
    """The limit that they met is named, nothing of them is left, and commands go on."""
    await sandbox.write("t.py", code.encode())
    brief = replace(BRIEF, test_command="python3 t.py")
    context = ToolContext(sandbox, brief, AgentConfig(test_timeout=1.0))
    report = await RunTests().call(read_arguments(RunTests.spec, "{}"), context)
    assert expected in report.text
    assert not report.is_error
    assert (
        await said(sandbox, "rm -f big; pgrep -f '[p]ython3 t.py$' || echo none")
        == "exit 0\nnone\n"
    )


ODD_NAME = "open(b'odd-\\xff', 'w'); open('x.png', 'wb').write(bytes(range(256)) * 9)"


async def test_what_is_no_text_poisons_no_conversation(sandbox: Sandbox) -> None:
    """Bytes, NUL and names that no text can hold: requests and record stay as JSON wants them."""
    commands = (
        r"printf '\xff\xfe\x00\x1b[31mred'",
        "head -c 1000 /dev/urandom",
        f'python3 -c "{ODD_NAME}"; ls',
        "cat x.png",
    )
    calls = [Call("run_command", {"command": command}) for command in commands]
    calls += [Call("list_directory"), Call("read_file", {"path": "x.png"})]
    client = ScriptedModelClient(*(Turn(calls=(call,)) for call in calls), Turn("Seen."))
    strategy = LoopStrategy(client, sandbox, AgentConfig(), SystemClock())
    brief = replace(BRIEF, surface="files")
    events = [event async for event in strategy.run(brief)]
    assert isinstance(events[-1], LoopEnded)
    assert (events[-1].outcome, events[-1].answer) == ("answered", "Seen.")
    results = [event.result.content for event in events if isinstance(event, ToolCallDone)]
    assert results[0] == "exit 0\n\ufffd\ufffd\0red"
    assert "odd-\udcff" in results[4]
    assert "no text file" in results[5]
    for request in client.requests:
        sent = encode_request(request).decode("utf-8")
        assert not history_faults(json.loads(sent)["messages"])
        assert not any(bad in sent for bad in ("\\u0000", "\\ud", "\x1b[31m"))
    for event in events:
        kept = encode_event(event)
        assert kept.isascii()
        assert decode_event(kept) == event


async def test_files_stay_and_variables_do_not(sandbox: Sandbox) -> None:
    """As the tool's description says."""
    await said(sandbox, "mkdir -p sub; cd sub; export A=1; echo x >/tmp/t")
    text = await said(sandbox, "basename $PWD; echo [$A]; cat /tmp/t")
    assert "[]\nx\n" in text
    assert not text.startswith("exit 0\nsub\n")


async def test_a_call_that_fails_leaves_the_next_its_turn(sandbox: Sandbox) -> None:
    """A folder, a file that may not be read, an edit of nothing, a time that is over."""
    await said(sandbox, "mkdir folder; echo x >locked; chmod 000 locked")
    failing = (
        Call("read_file", {"path": "folder"}),
        Call("edit_file", {"path": "folder", "old": "x", "new": "y"}),
        Call("edit_file", {"path": "locked", "old": "no such", "new": "y"}),
        Call("run", {"command": "echo first; sleep 60"}),
    )
    after = Call("run", {"command": "echo still here"})
    turns = [Turn(calls=(call, after)) for call in failing]
    client = ScriptedModelClient(*turns, Turn(calls=(Call("finish", {"summary": "Done."}),)))
    config = AgentConfig(command_timeout=1.0)
    strategy = LoopStrategy(client, sandbox, config, SystemClock())
    events = [event async for event in strategy.run(BRIEF)]
    results = [event.result for event in events if isinstance(event, ToolCallDone)]
    assert [result.is_error for result in results[:6:2]] == [True] * 3
    assert results[6].content.startswith("timed out after 1 s")
    assert [result.content for result in results[1:8:2]] == ["exit 0\nstill here\n"] * 4
    assert all(
        history_faults(json.loads(encode_request(r))["messages"]) == () for r in client.requests
    )
