"""A record told as spans."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.samples import values
from tests.unit.runs.observe.records import (
    RUN,
    SECRET,
    START,
    answered,
    asks,
    failed,
    gets,
    intended,
    timed,
    whole,
)
from tests.unit.runs.parts import COMMIT, TASK

from turnout.core.events import Event, RunEnded, RunStarted, StepStarted
from turnout.core.observe.spans import Span, run_span
from turnout.runs.observe.timeline import Timeline, spans_of


def named(spans: list[Span] | tuple[Span, ...], name: str) -> Span:
    """Return the one span of that name."""
    (found,) = (span for span in spans if span.name == name)
    return found


def test_a_run_is_a_trace_of_its_steps_and_their_calls() -> None:
    """Every span is of the run's trace, and the span above each is among them."""
    spans = list(spans_of(RUN, whole()))
    run = named(spans, "invoke_agent turnout")
    assert (run.parent_id, run.seconds, run.error) == ("", 50.0, "")
    assert {span.trace_id for span in spans} == {run.trace_id}
    ids = [span.span_id for span in spans]
    assert len(ids) == len(set(ids))
    by_id = {span.span_id: span for span in spans}
    above = {s.name: by_id[s.parent_id].name for s in spans if s.parent_id}
    assert above == {
        "workspace": "invoke_agent turnout",
        "tests before": "invoke_agent turnout",
        "step act": "invoke_agent turnout",
        "chat auto": "step act",
        "execute_tool run": "step act",
        "checkpoint": "step act",
        "approval": "step act",
    }
    children = [
        by_id[s.parent_id].attributes["turnout.step"] for s in spans if s.name[:4] == "chat"
    ]
    assert children == [1, 2]


def test_spans_say_how_long_each_thing_took() -> None:
    """A step lasts from its start to its last entry; what is written afterwards began before."""
    spans = spans_of(RUN, whole())
    took = [(span.name, span.seconds) for span in spans]
    assert took == [
        ("workspace", 3.0),
        ("tests before", 1.5),
        ("chat auto", 10.0),
        ("execute_tool run", 3.0),
        ("checkpoint", 1.0),
        ("step act", 15.0),
        ("chat auto", 2.0),
        ("approval", 7.0),
        ("execute_tool run", 0.5),
        ("step act", 11.0),
        ("invoke_agent turnout", 50.0),
    ]
    assert spans[1].start == START + timedelta(seconds=3.5)


def test_attributes_are_those_of_the_genai_conventions() -> None:
    """With ours where these have none; totals are on the run."""
    spans = list(spans_of(RUN, whole()))
    run, chat = named(spans, "invoke_agent turnout").attributes, spans[2]
    assert run["gen_ai.operation.name"] == "invoke_agent"
    assert (run["gen_ai.agent.name"], run["gen_ai.conversation.id"]) == ("turnout", RUN)
    assert (run["gen_ai.usage.input_tokens"], run["gen_ai.usage.output_tokens"]) == (20, 4)
    assert (run["turnout.outcome"], run["turnout.verdict"]) == ("answered", "resolved")
    assert (run["turnout.steps"], run["turnout.segments"], run["turnout.cost_micros"]) == (2, 2, 10)
    sandbox = (run["turnout.sandbox.cpu_seconds"], run["turnout.sandbox.cost_micros"])
    assert sandbox == (2.5, 30)
    assert (chat.kind, chat.attributes["gen_ai.operation.name"]) == ("client", "chat")
    assert chat.attributes["gen_ai.provider.name"] == "p"
    assert chat.attributes["gen_ai.request.model"] == "auto"
    assert chat.attributes["gen_ai.response.model"] == "m"
    assert chat.attributes["gen_ai.response.finish_reasons"] == ("stop",)
    assert chat.attributes["gen_ai.usage.cache_read.input_tokens"] == 0
    tool = spans[3].attributes
    assert (tool["gen_ai.operation.name"], tool["gen_ai.tool.name"]) == ("execute_tool", "run")
    assert (tool["gen_ai.tool.type"], tool["gen_ai.tool.call.id"]) == ("function", "c1")


def test_nothing_that_was_said_is_in_a_span_unless_that_was_asked_for() -> None:
    """Neither prompts nor arguments, results, answers and messages of errors."""
    record = [*whole()[:-1], *timed((46, intended(3)), (47, failed(3)))]
    assert SECRET not in str(spans_of(RUN, record))
    timeline = Timeline(RUN, content=True)
    spans = [span for entry in whole() for span in timeline.add(entry)]
    chat, tool = spans[2].attributes, spans[3].attributes
    assert SECRET in str(chat["gen_ai.input.messages"])
    assert chat["gen_ai.output.messages"] == (
        '[{"role":"assistant","parts":[{"type":"text","content":"hello"}]}]'
    )
    assert SECRET in str(tool["gen_ai.tool.call.arguments"])
    assert tool["gen_ai.tool.call.result"] == SECRET


def test_what_was_said_is_cut_where_it_is_long() -> None:
    """A tool may print millions of characters."""
    long = gets(1, 1.0)
    long = replace(long, result=replace(long.result, content="x" * 1_000_000))
    timeline = Timeline(RUN, content=True)
    record = timed((0, RunStarted(TASK, COMMIT, "loop")), (1, asks(1)), (2, long))
    (span,) = (span for entry in record for span in timeline.add(entry))
    assert len(str(span.attributes["gen_ai.tool.call.result"])) < 20_000


def test_a_call_that_failed_is_an_error_of_its_kind() -> None:
    """A model call by the code of its error, a tool call, and a run that failed."""
    record = timed(
        (0, RunStarted(TASK, COMMIT, "loop")),
        (1, StepStarted(1, "act", "latency")),
        (1, intended(1)),
        (2, failed(1)),
        (2, asks(1)),
        (3, gets(1, 1.0, error=True)),
        (4, RunEnded("failed", "no")),
    )
    errors = {span.name: span.error for span in spans_of(RUN, record)}
    assert errors == {
        "chat auto": "no_eligible_model",
        "execute_tool run": "tool_error",
        "step act": "",
        "invoke_agent turnout": "failed",
    }


def test_a_call_that_another_worker_takes_up_is_one_span() -> None:
    """It began when the first worker wrote down what it was about to do."""
    started = (0, RunStarted(TASK, COMMIT, "loop"))
    record = timed(started, (1, intended(1)), (60, answered(1)))
    (chat,) = spans_of(RUN, record)
    assert chat.seconds == 59.0
    assert chat.span_id == run_span(RUN, f"{RUN}/1").span_id


def test_names_that_a_model_made_up_are_short() -> None:
    """They are names of spans."""
    record = timed((0, RunStarted(TASK, COMMIT, "loop")), (1, asks(1, "x" * 500)), (2, gets(1, 1)))
    (span,) = spans_of(RUN, record)
    assert len(span.name) < 100


@settings(max_examples=30, deadline=None)
@given(st.lists(values(Event), max_size=12))
def test_no_record_is_too_odd_to_be_told(events: list[Event]) -> None:
    """Whatever order events come in, and whatever they hold: spans end after they began."""
    begun: list[tuple[float, Event]] = [(0, RunStarted(TASK, COMMIT, "loop"))]
    timeline = Timeline(RUN, content=True)
    entries = timed(*begun, *((float(at), event) for at, event in enumerate(events, 1)))
    spans = [span for entry in entries for span in timeline.add(entry)]
    assert all(span.start <= span.end for span in [*spans, *timeline.rest()])
