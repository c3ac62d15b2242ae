"""A finish reason agrees with the answer, in the words of the shape."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.gateway.repair.finish import agreed, broke


@pytest.mark.parametrize(
    ("said", "called", "reason"),
    [
        ("stop", False, "stop"),
        ("stop", True, "tool_calls"),
        ("tool_calls", True, "tool_calls"),
        ("tool_calls", False, "stop"),
        ("function_call", False, "stop"),
        ("length", True, "length"),
        ("content_filter", True, "content_filter"),
        (None, False, "stop"),
        (None, True, "tool_calls"),
        ("eos", False, "stop"),
        ("MAX_TOKENS", False, "length"),
        ("tool_use", True, "tool_calls"),
        ("vendor_word", False, "vendor_word"),
    ],
)
def test_the_reason_agrees_with_the_calls(said: str | None, called: bool, reason: str) -> None:
    """What was mended is named."""
    ended = agreed(said, called=called)
    assert ended.reason == reason
    assert bool(ended.mend) == (said != reason)


def test_calls_of_the_old_form_end_in_the_old_word() -> None:
    """Its clients wait for it."""
    assert agreed("stop", called=True, legacy=True).reason == "function_call"


@given(st.none() | st.text() | st.integers() | st.booleans(), st.booleans(), st.booleans())
def test_agreeing_twice_changes_nothing(said: Any, called: bool, legacy: bool) -> None:
    """Whatever a server says."""
    once = agreed(said, called=called, legacy=legacy)
    assert agreed(once.reason, called=called, legacy=legacy) == (once.reason, "")


@pytest.mark.parametrize("said", ["error", "abort", "insufficient_system_resource"])
def test_an_answer_that_was_given_up_is_none(said: str) -> None:
    """Half an answer never passes for a whole one."""
    assert broke(said)
    assert not broke("stop")
    assert not broke(None)
