"""Ctrl-C ends a run in order and keeps its diff; pressed twice, it does not wait."""

import asyncio
import os
import signal
from contextlib import suppress

from tests.acceptance.command import FIX, PATCH, PLAN, READ, TASK, Command, ended
from tests.acceptance.forks import Forked

from turnout.testing.model_server import RecordedRequest, ScriptedModelServer, Turn
from turnout.testing.repositories import TinyRepository


class Script:
    """Turns in order, and the moment at which the last of them is asked for."""

    def __init__(self, *turns: Turn) -> None:
        self._turns = list(turns)
        self.last_asked = asyncio.Event()

    def __call__(self, request: RecordedRequest) -> Turn:
        """Return the next turn."""
        turn = self._turns.pop(0)
        if not self._turns:
            self.last_asked.set()
        return turn


def press_ctrl_c(process: Forked) -> None:
    """Send what a terminal sends: the signal reaches the command and all that it started."""
    os.killpg(process.pid, signal.SIGINT)


async def heard(process: Forked, words: str) -> None:
    """Wait until a command says these words on standard error."""
    assert process.stderr is not None
    async with asyncio.timeout(60):
        async for line in process.stderr:
            if words in line.decode():
                return
    raise AssertionError(f"never said: {words}")


async def test_once_stops_after_the_step_and_keeps_the_diff(
    turnout: Command, pages: TinyRepository
) -> None:
    """The answer that is under way still arrives, no further call is made, our tests judge."""
    late = Turn(calls=READ.calls, delay=1.5)
    script = Script(PLAN, PATCH, late)
    async with ScriptedModelServer(script, models=["m"]) as server:
        command = turnout.using(server.base_url)
        process = await command.start("run", TASK, "--repo", str(pages), "--json")
        await asyncio.wait_for(script.last_asked.wait(), 120)
        press_ctrl_c(process)
        done = await ended(process)
        assert len(server.requests) == 3
    result = done.object
    assert (done.code, result["exit_code"], result["outcome"]) == (130, 130, "cancelled")
    assert result["verdict"]["name"] == "resolved"
    assert "(number - 1)" in result["diff"]
    assert len(result["model_calls"]) == 3
    assert (await turnout("runs", "diff", result["run_id"])).out == result["diff"]


async def test_twice_does_not_wait_for_the_model_and_keeps_the_diff(
    turnout: Command, pages: TinyRepository
) -> None:
    """A model that never answers is left at once."""
    script = Script(PLAN, PATCH, Turn(fault="stall"))
    async with ScriptedModelServer(script, models=["m"]) as server:
        command = turnout.using(server.base_url)
        process = await command.start("run", TASK, "--repo", str(pages))
        await asyncio.wait_for(script.last_asked.wait(), 120)
        press_ctrl_c(process)
        await heard(process, "press Ctrl-C again")
        press_ctrl_c(process)
        done = await ended(process, timeout=60)
    assert done.code == 130
    assert "(number - 1)" in done.out
    assert "Outcome: cancelled" in done.out


async def test_diff_and_verdict_do_not_wait_for_the_explanation(
    turnout: Command, pages: TinyRepository
) -> None:
    """They are there, once, while the model still writes; a stop then changes nothing of them."""
    script = Script(*FIX[:-1], Turn(fault="stall"))
    async with ScriptedModelServer(script, models=["m"]) as server:
        command = turnout.using(server.base_url)
        process = await command.start("run", TASK, "--repo", str(pages))
        assert process.stdout is not None
        seen = await asyncio.wait_for(process.stdout.readuntil(b"Verdict: resolved"), 120)
        await asyncio.wait_for(script.last_asked.wait(), 60)
        press_ctrl_c(process)
        done = await ended(process, timeout=60)
    assert b"(number - 1)" in seen
    assert done.code == 0
    assert "Outcome: answered. The model said that it was done." in done.out
    assert "Verdict" not in done.out


async def test_before_there_is_a_run_it_just_leaves(
    turnout: Command, pages: TinyRepository
) -> None:
    """Exit code 130, and no record of a run that never was."""
    script = Script(Turn(fault="stall"))
    async with ScriptedModelServer(script, models=["m"], answers_probes=False) as server:
        command = turnout.using(server.base_url)
        process = await command.start("run", TASK, "--repo", str(pages), "--json")
        await asyncio.wait_for(script.last_asked.wait(), 120)
        press_ctrl_c(process)
        done = await ended(process, timeout=60)
    assert (done.code, done.out) == (130, "")
    assert "Interrupted" in done.err


async def test_a_terminal_that_is_closed_stops_the_run_in_order(
    turnout: Command, pages: TinyRepository
) -> None:
    """As Ctrl-C does; a run that was started to outlive its terminal goes on."""
    for ignored, outcome in ((False, "cancelled"), (True, "answered")):
        script = Script(PLAN, Turn("It is done.", delay=1.5))
        async with ScriptedModelServer(script, models=["m"]) as server:
            command = turnout.using(server.base_url)
            kept = signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)
            try:
                process = await command.start("run", TASK, "--repo", str(pages), "--json")
            finally:
                signal.signal(signal.SIGHUP, kept)
            await asyncio.wait_for(script.last_asked.wait(), 120)
            process.send_signal(signal.SIGHUP)
            done = await ended(process, timeout=60)
        assert done.object["outcome"] == outcome, done.err


async def test_pressed_over_and_over_it_leaves_in_order(
    turnout: Command, pages: TinyRepository
) -> None:
    """The third press leaves, the others change nothing: no traceback, and an end on record."""
    script = Script(PLAN, Turn(fault="stall"))
    async with ScriptedModelServer(script, models=["m"]) as server:
        command = turnout.using(server.base_url)
        process = await command.start("run", TASK, "--repo", str(pages))
        await asyncio.wait_for(script.last_asked.wait(), 120)
        for _ in range(10):
            # It may be gone before the last press.
            with suppress(ProcessLookupError):
                press_ctrl_c(process)
            await asyncio.sleep(0.01)
        done = await ended(process, timeout=60)
    assert "Traceback" not in done.err
    assert done.code == 130
    assert "cancelled" in (await turnout("runs", "list")).out.splitlines()[0]


async def test_the_gateway_need_not_be_waited_for(turnout: Command) -> None:
    """Also while it finds out what its models can do."""
    script = Script(Turn(fault="stall"))
    async with ScriptedModelServer(script, models=["m"], answers_probes=False) as server:
        command = turnout.using(server.base_url)
        process = await command.start("gateway", "--port", "0")
        await asyncio.wait_for(script.last_asked.wait(), 120)
        press_ctrl_c(process)
        done = await ended(process, timeout=30)
    assert (done.code, done.out) == (130, "")
