"""What happens in the runs of these tests."""

from turnout.core.events import (
    Event,
    Explained,
    LoopEnded,
    ModelCallDone,
    ModelCallIntended,
    PatchMade,
    RunEnded,
    StepStarted,
    TestsRan,
    ToolCallDone,
    ToolCallIntended,
    VerdictGiven,
)
from turnout.core.ids import DeploymentId, ModelId, ProviderName, RequestId, ToolCallId
from turnout.core.inference import RoutingReport
from turnout.core.messages import AssistantMessage, SystemMessage, UserMessage
from turnout.core.money import Micros
from turnout.core.runs import FileChange, Patch, TestReport, Verdict
from turnout.core.tools import ToolCall, ToolResult
from turnout.core.usage import Usage

HOSTILE = "<script>alert(1)</script> \u202e\x1b[2J \u200b"
"""Text as a model, a repository or a test run may write it."""
SEEN = "<script>alert(1)</script> \\u202e\\x1b[2J \\u200b"
"""How it is to be read."""
DIFF = (
    "diff --git a/src/a.py b/src/a.py\n--- a/src/a.py\n+++ b/src/a.py\n"
    "@@ -1,3 +1,4 @@ class A:\n def f(x):\n-    return 1\n+    # why\n"
    f"+    return 2  {HOSTILE}\n \n"
    "diff --git a/b.txt b/b.txt\nnew file mode 100644\nindex 000..111\n--- /dev/null\n+++ b/b.txt\n"
    "@@ -0,0 +1 @@\n+b\n\\ No newline at end of file\n"
).encode()
PATCH = Patch(DIFF, (FileChange("src/a.py", "modified", 2, 1), FileChange("b.txt", "added", 1, 0)))


def routed(**more: object) -> RoutingReport:
    """Return how a call was routed."""
    given = {
        "model": ModelId("qwen"),
        "provider": ProviderName("near"),
        "deployment": DeploymentId("near/qwen"),
        "objective": "latency",
        "task": "coding",
        "task_source": "request",
        "session": None,
        "sticky": False,
        "fallback": False,
        "policy_revision": 3,
        "reason": "The quickest above the floor of quality.",
        "cost_micros": Micros(1_200),
        **more,
    }
    return RoutingReport(**given)


def step(number: int, output: str = "ok", **result: object) -> tuple[Event, ...]:
    """Return a step: a model call, and the tool call that it asks for."""
    call = ToolCall(ToolCallId(f"c{number}"), "run_command", '{"command": "ls"}')
    opening = (SystemMessage("You are."), UserMessage("Fix it."))
    said = opening if number == 1 else ()
    key, request = f"k{number}", RequestId(f"req-{number}")
    answer = AssistantMessage(HOSTILE, (call,), reasoning="Hm.")
    used = Usage(1_000, 50, cache_read_input_tokens=300)
    told = ToolResult(call.id, output, **result)
    return (
        StepStarted(number, "act", "latency"),
        ModelCallIntended(number, "act", "main", key, "auto", said),
        ModelCallDone(
            number, "act", "main", key, request, answer, "tool_calls", used, routed(), 900
        ),
        ToolCallIntended(number, call),
        ToolCallDone(number, told, 0.3),
    )


END: tuple[Event, ...] = (
    LoopEnded("answered", "The model is done.", "It is fixed."),
    PatchMade(PATCH),
    TestsRan("after", TestReport("pytest -q", 0, ("t::a", "t::b"), (), 2.0, HOSTILE)),
    VerdictGiven(Verdict("resolved", True, True, True, (), f"It passes now. {HOSTILE}")),
    Explained(f"The reason was this. {HOSTILE}"),
    RunEnded("answered", "The model is done."),
)
