"""The description of a change."""

from turnout.agent.base import AgentConfig
from turnout.agent.explain import explain, plain_explanation
from turnout.core.events import Event, Explained, ModelCallFailed, Notice
from turnout.core.ids import RunId
from turnout.core.runs import FileChange, Patch, TestReport
from turnout.testing.model_client import ScriptedModelClient
from turnout.testing.turns import Refusal, Turn

PATCH = Patch(b"diff --git a/a.py b/a.py\n-x\n+\xe9\n", (FileChange("a.py", "modified", 1, 1),))
TESTS = TestReport("pytest", 0, ("t::a", "t::b"), (), 0.2, "2 passed")


async def explained(
    client: ScriptedModelClient, patch: Patch = PATCH, tests: TestReport | None = TESTS
) -> list[Event]:
    """Return the events of the answer step."""
    return [
        event
        async for event in explain(
            client,
            AgentConfig(),
            run_id=RunId("run-1"),
            step=7,
            prompt="Fix a.py.",
            patch=patch,
            tests_after=tests,
        )
    ]


async def test_the_model_describes_the_change() -> None:
    """It reads the task, the diff and our test run, and is asked for quality."""
    client = ScriptedModelClient(others={"answer": Turn("It was x.")})
    events = await explained(client)
    assert events[-1] == Explained("It was x.")
    (request,) = client.asked("answer")
    assert request.routing.optimize == "quality"
    assert all(part in request.messages[1].content for part in ["Fix a.py.", "+\\xe9", "2 passed"])
    assert request.idempotency_key == "run-1-step-7"


async def test_facts_take_the_place_of_a_model_that_fails() -> None:
    """The run still ends with a description: files and tests."""
    for answer in (Refusal(402, "Capped.", "session_spend_cap"), Turn("")):
        events = await explained(ScriptedModelClient(others={"answer": answer}))
        assert events[-1] == Explained(
            "- Changed: `a.py` (modified).\n- Tests: 2 passed, 0 failed (exit 0)"
        )
        assert any(isinstance(event, Notice | ModelCallFailed) for event in events)


async def test_a_cut_description_is_kept_and_noted() -> None:
    """Half a description is better than none, and the reader is told."""
    answer = Turn("It was", finish_reason="length")
    events = await explained(ScriptedModelClient(others={"answer": answer}))
    assert isinstance(events[-2], Notice)
    assert events[-1] == Explained("It was")


async def test_no_model_is_asked_about_nothing() -> None:
    """An empty patch needs no call."""
    client = ScriptedModelClient()
    events = await explained(client, Patch(b"", ()), None)
    assert events == [Explained("- Nothing was changed.\n- Tests: The tests were not run.")]
    assert not client.requests


def test_the_facts_name_what_was_replaced_and_what_passes_now() -> None:
    """Names that Markdown would take for emphasis are marked as code."""
    before = TestReport("pytest", 1, ("t::a",), ("t::b", "t::gone"), 0.2, "")
    reason = "All tests pass with candidate 1: Box.__init__ in a_b.py replaced."
    text = plain_explanation(PATCH, TESTS, tests_before=before, reason=reason)
    assert text.split("\n") == [
        "All tests pass with candidate 1: `Box.__init__` in `a_b.py` replaced.",
        "",
        "- Changed: `a.py` (modified).",
        "- Failed before, passes now: `t::b`.",
        "- Tests: 2 passed, 0 failed (exit 0)",
    ]
