"""Where a part of a run is in its trace."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.core.ids import RunId
from turnout.core.observe.spans import TraceParent, parse_traceparent, run_span

GOOD = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_whoever_knows_the_run_knows_its_ids() -> None:
    """No id has to be handed over; no two parts, and no two runs, share one."""
    run, other = RunId("run-1"), RunId("run-2")
    assert run_span(run, "step 1") == run_span(run, "step 1")
    assert run_span(run, "step 1").trace_id == run_span(run).trace_id
    parts = {run_span(run), run_span(run, "step 1"), run_span(run, "step 2"), run_span(other)}
    assert len({part.span_id for part in parts}) == 4
    assert run_span(run).trace_id != run_span(other).trace_id


@given(st.text())
def test_a_header_that_is_written_is_read_again(name: str) -> None:
    """Whatever the run is called."""
    where = run_span(RunId(name), name)
    assert parse_traceparent(where.header()) == where


@pytest.mark.parametrize(
    "text",
    [
        "",
        GOOD.upper(),
        GOOD[:-1],
        GOOD.replace("00-", "ff-", 1),
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
        f"00-4bf92f3577b34da6a3ce929d0e0e4736-{'0' * 16}-01",
        GOOD + "x",
        f"{GOOD}-{'a' * 1_000}",
        "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01",
    ],
)
def test_a_header_that_says_nothing_is_passed_over(text: str) -> None:
    """It comes from outside, and is no reason to refuse a request."""
    assert parse_traceparent(text) is None


def test_a_header_of_a_later_version_is_read_as_far_as_it_is_known() -> None:
    """As the specification has it."""
    read = parse_traceparent(f"01{GOOD[2:]}-more")
    assert read == TraceParent("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")
