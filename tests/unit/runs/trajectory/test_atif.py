"""Runs in the Agent Trajectory Interchange Format, checked against what its version 1.7 says."""

import json
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, model_validator
from tests.samples import any_event
from tests.unit.runs.observe.records import whole
from tests.unit.runs.parts import DIFF, PATCH
from tests.unit.runs.test_summary import STARTED, call, record

from turnout.core.events import (
    ModelCallIntended,
    Notice,
    PatchMade,
    RunEnded,
    ToolCallDone,
    ToolCallIntended,
)
from turnout.core.ids import ToolCallId
from turnout.core.messages import AssistantMessage, SystemMessage, UserMessage
from turnout.core.tools import ToolCall, ToolResult
from turnout.core.usage import Usage
from turnout.runs.summary import fold
from turnout.runs.trajectory.documents import trajectory_json


class Strict(BaseModel):
    """Knows every field that there may be."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Call(Strict):
    """A tool call."""

    tool_call_id: str
    function_name: str
    arguments: dict[str, Any]
    extra: dict[str, Any] | None = None


class Observed(Strict):
    """What came of it."""

    source_call_id: str | None = None
    content: str
    extra: dict[str, Any] | None = None


class Observation(Strict):
    """What came of a step."""

    results: list[Observed]


class Metrics(Strict):
    """What a step used."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    cost_usd: float | None = None
    extra: dict[str, Any]


class Step(Strict):
    """One turn."""

    step_id: int
    timestamp: str
    source: Literal["system", "user", "agent"]
    message: str
    model_name: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[Call] | None = None
    observation: Observation | None = None
    metrics: Metrics | None = None
    llm_call_count: int | None = None
    extra: dict[str, Any]

    @model_validator(mode="after")
    def fits(self) -> "Step":
        """Fields of the agent alone, results of calls of this step alone."""
        datetime.fromisoformat(self.timestamp)
        if self.source != "agent":
            assert {self.model_name, self.reasoning_content, self.metrics} == {None}
            assert self.tool_calls is None
        if self.llm_call_count == 0:
            assert (self.metrics, self.reasoning_content) == (None, None)
        known = {call.tool_call_id for call in self.tool_calls or ()} | {None}
        results = self.observation.results if self.observation else ()
        assert {result.source_call_id for result in results} <= known
        return self


class Agent(Strict):
    """Who worked."""

    name: str
    version: str
    extra: dict[str, Any]


class Final(Strict):
    """What all of it used."""

    total_prompt_tokens: int
    total_completion_tokens: int
    total_cached_tokens: int
    total_cost_usd: float | None = None
    total_steps: int
    extra: dict[str, Any]


class Trajectory(Strict):
    """The document."""

    schema_version: Literal["ATIF-v1.7"]
    session_id: str
    trajectory_id: str
    agent: Agent
    steps: list[Step] = Field(min_length=1)
    notes: str
    final_metrics: Final
    extra: dict[str, Any]

    @model_validator(mode="after")
    def counts(self) -> "Trajectory":
        """Count the steps from 1."""
        assert [step.step_id for step in self.steps] == list(range(1, len(self.steps) + 1))
        assert self.final_metrics.total_steps == len(self.steps)
        return self


def read(entries) -> Trajectory:
    """Return the document of a record, read as its readers do."""
    return Trajectory.model_validate(json.loads(trajectory_json(entries, "atif")))


def asking(*calls: ToolCall):
    """Return an answer that asks for tool calls."""
    message = AssistantMessage("I look.", calls, reasoning="Where is it?")
    return replace(call(5), message=message, usage=Usage(10, 2, 4))


LOOK = ToolCall(ToolCallId("c1"), "run", '{"command": "ls"}')
ODD = ToolCall(ToolCallId("c2"), "run", "{ls")


def test_a_turn_holds_what_was_said_asked_for_seen_and_used() -> None:
    """The results of its calls are with it, whichever comes first."""
    begin = (SystemMessage("You are careful."), UserMessage("Mend it."))
    entries = record(
        STARTED,
        ModelCallIntended(1, "act", "main", "k", "auto", begin),
        asking(LOOK, ODD),
        ToolCallIntended(1, LOOK),
        ToolCallDone(1, ToolResult(ODD.id, "no JSON", is_error=True), 0.0),
        ToolCallDone(1, ToolResult(LOOK.id, "a.py"), 0.25),
        PatchMade(PATCH),
        RunEnded("answered", "Done."),
    )
    told = read(entries)
    asked, rules, task, turn, end = told.steps
    assert (asked.source, asked.message) == ("user", STARTED.task.prompt)
    assert (rules.source, rules.message) == ("system", "You are careful.")
    assert (task.source, task.message) == ("user", "Mend it.")
    assert (turn.source, turn.message, turn.model_name) == ("agent", "I look.", "m")
    assert (turn.reasoning_content, turn.llm_call_count) == ("Where is it?", 1)
    look, odd = turn.tool_calls
    assert (look.function_name, look.arguments) == ("run", {"command": "ls"})
    assert (odd.arguments, odd.extra) == ({}, {"unparsed": "{ls"})
    found = [(one.source_call_id, one.content, one.extra) for one in turn.observation.results]
    assert found == [
        ("c2", "no JSON", {"is_error": True, "seconds": 0.0}),
        ("c1", "a.py", {"is_error": False, "seconds": 0.25}),
    ]
    used = turn.metrics
    assert (used.prompt_tokens, used.completion_tokens, used.cached_tokens) == (10, 2, 4)
    assert used.cost_usd == told.final_metrics.total_cost_usd == pytest.approx(5e-6)
    assert (end.source, end.message) == ("system", "answered: Done.")
    assert told.extra["diff"] == DIFF.decode()


def test_a_call_that_no_model_asked_for_is_a_turn_without_a_model() -> None:
    """As the repair strategy makes them."""
    entries = record(
        STARTED,
        ToolCallIntended(1, LOOK),
        ToolCallDone(1, ToolResult(LOOK.id, "a.py"), 0.25),
    )
    turn = read(entries).steps[1]
    assert (turn.source, turn.llm_call_count, turn.message) == ("agent", 0, "")
    assert turn.observation.results[0].content == "a.py"


def test_costs_that_are_not_known_are_left_out() -> None:
    """A sum that lacks something would be taken for the whole."""
    told = read(record(STARTED, call(5), call(None)))
    assert [step.metrics.cost_usd for step in told.steps[1:]] == [5e-6, None]
    assert told.final_metrics.total_cost_usd is None
    assert told.final_metrics.extra == {"cost_micros": 5, "priced": False}


def test_a_whole_run_is_told_in_the_format() -> None:
    """With approvals, take-overs and tests."""
    told = read(whole())
    events = {step.extra.get("event") for step in told.steps}
    assert {"approval_given", "run_resumed", "tests_ran", "verdict_given"} <= events


@settings(max_examples=30)
@given(st.lists(any_event(), max_size=12))
def test_any_record_is_told_in_the_format(events) -> None:
    """Whatever models and tools sent."""
    read(record(STARTED, *events))


def test_the_own_format_is_the_record_and_what_it_amounts_to() -> None:
    """Nothing is left out, whatever bytes it holds."""
    entries = record(STARTED, Notice("odd \udcff"), PatchMade(PATCH), RunEnded("answered", "Done."))
    told = json.loads(trajectory_json(entries, "turnout"))
    assert (told["format"], told["version"]) == ("turnout-run", 1)
    assert told["result"]["run_id"] == fold(entries).run_id
    assert [one["event"]["type"] for one in told["entries"]] == [e.event.type for e in entries]
    assert told["entries"][1]["event"]["text"] == "odd \udcff"
