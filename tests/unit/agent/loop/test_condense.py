"""Going on from a summary, and where that is not possible."""

from dataclasses import replace
from itertools import pairwise

import pytest
from tests.unit.agent.workshop import Workshop

from turnout.agent.base import AgentConfig
from turnout.core.events import HistoryCondensed, ToolCallDone
from turnout.core.inference import ModelRequest
from turnout.core.messages import AssistantMessage, ToolMessage
from turnout.testing.model_client import Answer, ScriptedModelClient
from turnout.testing.sandbox import result as result_of
from turnout.testing.turns import Call, Refusal, Turn

FINISH = Turn(calls=(Call("finish", {"summary": "Fixed."}),))
SHELL = Workshop(surface="shell")
TOO_LONG = Refusal(400, "This model's maximum context length is 4096 tokens.", "bad_request")


def reads(path: str) -> Turn:
    """Return a turn that reads a file."""
    return Turn(calls=(Call("read_file", {"path": path}),))


def runs(command: str) -> Turn:
    """Return a turn that runs a command."""
    return Turn(calls=(Call("run", {"command": command}),))


@pytest.mark.cases
async def test_what_was_changed_outlives_the_summary() -> None:
    """A command of the first turn is known after twenty long reads, though the summary lacks it."""
    files = {f"{n}.py": f"{n}" * 1_500 for n in range(20)}
    turns = [runs("echo x >> log"), *(reads(f"{n}.py") for n in range(20)), FINISH]
    workshop = replace(SHELL, files=files, config=AgentConfig(window=4_000))
    client = ScriptedModelClient(*turns, others={"summary": Turn("Files were read.")})
    run = await workshop.work(client)
    assert run.end.outcome == "answered"
    assert len(run.sandbox.commands) == 1
    condensed = [event for event in run.events if isinstance(event, HistoryCondensed)]
    assert len(condensed) > 1
    assert all("echo x >> log" in event.text for event in condensed)
    last = client.asked("act")[-1].messages
    assert "Files were read." in last[2].content
    assert "echo x >> log" in last[2].content
    assert len(last) < 20


async def test_a_request_goes_on_from_the_one_before() -> None:
    """Prompt caches live on that; only a summary begins anew."""
    files = {f"{n}.py": f"{n}" * 1_500 for n in range(12)}
    workshop = replace(SHELL, files=files, config=AgentConfig(window=5_000))
    client = ScriptedModelClient(*(reads(f"{n}.py") for n in range(12)), FINISH)
    run = await workshop.work(client)
    asked = client.asked("act")
    anew = [
        at
        for at, (before, after) in enumerate(pairwise(asked))
        if after.messages[: len(before.messages)] != before.messages
    ]
    assert len(anew) == sum(isinstance(event, HistoryCondensed) for event in run.events) > 0
    assert len({request.messages[:2] for request in asked}) == 1
    assert all(request.tools == asked[0].tools for request in asked)


async def test_a_refusal_for_length_is_answered_by_a_summary() -> None:
    """The step is made again; where that fits the run goes on."""

    def short_enough(request: ModelRequest) -> Turn | Refusal:
        said = sum(len(message.content) for message in request.messages)
        return FINISH if said < 9_000 else TOO_LONG

    files = {f"{n}.py": f"{n}" * 4_000 for n in range(3)}
    turns: list[Answer] = [*(reads(f"{n}.py") for n in range(3)), short_enough, short_enough]
    run = await replace(SHELL, files=files).work(ScriptedModelClient(*turns, short_enough))
    assert run.end.outcome == "answered"
    assert any(isinstance(event, HistoryCondensed) for event in run.events)


@pytest.mark.cases
@pytest.mark.parametrize("summary", [Turn("s" * 90_000), Turn(""), Refusal(500)])
async def test_what_never_fits_fails_after_few_tries(summary: Answer) -> None:
    """A summary that is as long as what it stands for brings no endless loop."""
    turns: list[Answer] = [reads("a.py"), *[TOO_LONG] * 6]
    client = ScriptedModelClient(*turns, others={"summary": summary})
    run = await SHELL.work(client)
    assert (run.end.outcome, "window" in run.end.reason) == ("failed", True)
    assert len(client.asked("summary")) <= 2


@pytest.mark.cases
async def test_a_first_call_that_does_not_fit_fails_at_once() -> None:
    """There is nothing to summarise."""
    client = ScriptedModelClient(TOO_LONG)
    assert (await SHELL.work(client)).end.outcome == "failed"
    assert not client.asked("summary")


async def test_no_result_is_left_without_its_call() -> None:
    """Every request's tool results belong to calls of the same request."""
    files = {f"{n}.py": f"{n}" * 3_000 for n in range(15)}
    workshop = replace(SHELL, files=files, config=AgentConfig(window=4_000))
    client = ScriptedModelClient(*(reads(f"{n}.py") for n in range(15)), FINISH)
    await workshop.work(client)
    for request in client.asked("act"):
        made = [
            call.id
            for message in request.messages
            if isinstance(message, AssistantMessage)
            for call in message.tool_calls
        ]
        told = [m.tool_call_id for m in request.messages if isinstance(m, ToolMessage)]
        assert made == told


async def test_a_long_output_can_be_read_on() -> None:
    """What was cut from a result is a file that only the model's own tool sees."""
    output = "".join(f"line {n}\n" for n in range(5_000)).encode()
    workshop = replace(
        SHELL, script=lambda sandbox: sandbox.answer("", result_of(output)), files={}
    )
    more = Turn(calls=(Call("read_file", {"path": "output:1", "offset": 3_000}),))
    run = await workshop.work(ScriptedModelClient(runs("pytest"), more, FINISH))
    assert "output:1" in run.results[0]
    assert run.results[1].startswith("line 2998\n")
    done = next(event for event in run.events if isinstance(event, ToolCallDone))
    assert done.result.full.count("\n") == 5_001
