"""The whole strategy: a scripted model, a scripted sandbox, tests that look at the files."""

import asyncio
from dataclasses import replace

import pytest
from tests.unit.agent.repair.repairing import CODE, FAILING, TEST, Suite, reply, work

from turnout.agent.base import AgentConfig, Brief
from turnout.agent.repair import RepairStrategy
from turnout.core.events import (
    LoopEnded,
    ModelCallDone,
    ModelCallFailed,
    ModelCallIntended,
    Notice,
    PlanMade,
    StepStarted,
    ToolCallDone,
    ToolCallIntended,
)
from turnout.core.ids import RunId
from turnout.core.inference import ModelReply, ModelRequest
from turnout.core.money import Micros
from turnout.core.runs import TestReport
from turnout.sandbox.base import Sandbox
from turnout.testing.clock import FrozenClock
from turnout.testing.model_client import ScriptedModelClient
from turnout.testing.sandbox import ScriptedSandbox
from turnout.testing.turns import Refusal, Turn


async def test_the_first_candidate_that_passes_stays() -> None:
    """The run is answered, and nothing but the function has changed."""
    done = await work(reply("a + b"))
    assert done.end.outcome == "answered"
    assert done.code == CODE.replace("a - b", "a + b")


async def test_events_tell_every_call_before_it_is_made() -> None:
    """One step an attempt, each call with its intent and its result."""
    done = await work(reply("a * b"), reply("a + b"))
    kinds = [type(event) for event in done.events]
    attempt = [StepStarted, ModelCallIntended, ModelCallDone, *[ToolCallIntended, ToolCallDone] * 2]
    assert kinds == [PlanMade, *attempt, *attempt, LoopEnded]
    assert [event.step for event in done.of(StepStarted)] == [1, 2]
    assert [event.conversation for event in done.of(ModelCallIntended)] == ["repair-1", "repair-2"]
    assert [event.call.name for event in done.of(ToolCallIntended)] == [
        "edit_file",
        "run_tests",
    ] * 2
    assert len({event.call.id for event in done.of(ToolCallIntended)}) == 4


async def test_the_failing_tests_are_run_before_the_whole_suite() -> None:
    """The suite is run only where they pass."""
    done = await work(reply("a * b"), reply("a + b"))
    assert done.tests.selectors == ["test_calc.py::test_add"] * 2 + [""]


async def test_a_candidate_that_breaks_another_test_is_taken_back() -> None:
    """The failing test alone does not decide."""
    done = await work(reply("a + b"), samples=1, tests=Suite(suite_passes=False))
    assert done.end.outcome == "step_limit"
    assert done.code == CODE


async def test_the_bytes_from_before_are_back_after_a_failure() -> None:
    """Line endings and all."""
    code = CODE.replace("\n", "\r\n")
    done = await work(reply("a * b"), samples=1, files=[("calc.py", code), ("test_calc.py", TEST)])
    assert done.code == code
    assert done.end.outcome == "step_limit"


async def test_unchanged_and_repeated_replies_cost_no_test_run() -> None:
    """They are noted and rejected."""
    done = await work(reply("a - b"), reply("a * b"), reply("a * b"), Turn("?"), samples=4)
    assert len(done.tests.selectors) == 1
    assert [event.text for event in done.of(Notice)] == [
        "Candidate 1 is not tried: It repeats the code unchanged.",
        "Candidate 3 is not tried: It is the same as an earlier candidate.",
        "Candidate 4 is not tried: It holds no complete block of code.",
    ]


async def test_tests_that_make_a_file_unwritable_end_the_run() -> None:
    """Nothing is tried on files that are not those of the repository."""
    done = await work(reply("a * b"), reply("a + b"), tests=Vandal())
    assert done.end.outcome == "failed"
    assert "calc.py could not be put back" in done.end.reason


async def test_half_a_function_is_not_tried() -> None:
    """A reply that was cut off can end where it still parses."""
    half = replace(reply("a + b"), finish_reason="length")
    done = await work(half, samples=1)
    assert done.tests.selectors == []
    assert done.code == CODE


async def test_no_test_file_is_ever_written() -> None:
    """A reply that corrects the test instead of the code is rejected."""
    done = await work(Turn("```python\ndef test_add():\n    pass\n```"), samples=1)
    assert done.sandbox.files["test_calc.py"].data.decode() == TEST
    assert "write" not in [call.name for call in done.sandbox.calls]


async def test_the_prompt_holds_report_code_and_failure() -> None:
    """All of it in the first message, so that there is nothing to look for."""
    done = await work(reply("a + b"))
    request = done.client.requests[0]
    text = request.messages[-1].content
    assert text.startswith("Bug report: add is wrong\n\n# file: calc.py\n```python\ndef add")
    assert "E   assert -1 == 3" in text
    assert request.temperature == 0
    assert (request.routing.optimize, request.routing.task) == ("latency", "coding")
    assert request.routing.session == "run-1"


async def test_each_candidate_is_asked_for_in_a_new_conversation() -> None:
    """A wrong answer in the context would be repeated."""
    done = await work(reply("a * b"), reply("b * a"), reply("a + b"))
    assert {len(request.messages) for request in done.client.requests} == {2}
    assert len({request.seed for request in done.client.requests}) == 3
    assert len({request.idempotency_key for request in done.client.requests}) == 3


async def test_a_prompt_that_names_a_definition_shows_it_last() -> None:
    """What stands last weighs most."""
    answers = [reply(f"a * {number}") for number in range(4)]
    done = await work(*answers, samples=4)
    text = done.client.requests[3].messages[-1].content
    assert "def test_add" in text
    code = "# file: calc.py\n```python\ndef add(a, b):\n    return a - b\n```"
    assert text.partition(code)[2].strip().startswith("The bug is most likely in `add` in calc.py:")
    assert "half" not in text


async def test_a_prompt_to_rewrite_does_not_show_the_old_body() -> None:
    """The model would repeat it."""
    answers = [reply(f"a * {number}") for number in range(8)]
    done = await work(*answers, samples=8)
    (text,) = (
        text
        for request in done.client.requests
        if "Write it anew" in (text := request.messages[-1].content)
    )
    assert "...  # to be written" in text
    assert "a - b" not in text
    assert "assert add(1, 2) == 3" in text


@pytest.mark.parametrize(
    "before",
    [
        None,
        replace(FAILING, exit_code=0, failed=()),
        replace(FAILING, exit_code=5, failed=(), found=False),
    ],
)
async def test_without_a_failing_test_the_end_names_the_mend(before: TestReport | None) -> None:
    """Nothing is asked of the model."""
    done = await work(before=before)
    assert done.end.outcome == "failed"
    assert "add a test that fails, or give a stronger model" in done.end.reason
    assert not done.client.requests


async def test_without_source_the_end_names_the_mend() -> None:
    """The failing tests lead nowhere."""
    done = await work(files=[("test_calc.py", TEST)])
    assert done.end.outcome == "failed"
    assert "give a stronger model" in done.end.reason


@pytest.mark.parametrize(
    ("status", "code", "outcome"),
    [
        (402, "session_spend_cap", "capped"),
        (429, "session_request_cap", "capped"),
        (403, "tool_not_allowed", "refused"),
        (403, "price_unknown", "refused"),
        (429, "rate_limited", "capped"),
        (502, "upstream_error", "failed"),
    ],
)
async def test_a_refused_call_ends_the_run(status: int, code: str, outcome: str) -> None:
    """The outcome says why; the files are as before."""
    done = await work(reply("a * b"), Refusal(status, "no", code))
    assert done.end.outcome == outcome
    assert done.of(ModelCallFailed)[0].status == status
    assert done.code == CODE


async def test_a_file_that_is_no_python_is_edited_by_search_and_replace() -> None:
    """Its failing test names it."""
    edit = Turn("<<<<<<< SEARCH\nconst x = 1\n=======\nconst x = 2\n>>>>>>> REPLACE")
    files = [("calc.js", "const x = 1\n"), ("calc.py", "# a + b"), ("calc.test.js", "calc.js")]
    report = replace(FAILING, failed=(), output="calc.js is wrong")
    done = await work(edit, before=report, files=files[:1] + files[2:], tests=NoFile())
    assert done.sandbox.files["calc.js"].data == b"const x = 2\n"
    assert "<<<<<<< SEARCH" in done.client.requests[0].messages[-1].content


class NoFile(Suite):
    """Tests that always pass."""

    async def __call__(
        self, sandbox: Sandbox, command: str, *, selector: str = "", timeout: float
    ) -> TestReport:
        """Report success without ids."""
        return TestReport(command, 0, (), (), 0.1, "")


class Vandal(Suite):
    """Tests that put a folder in the place of the code."""

    async def __call__(
        self, sandbox: Sandbox, command: str, *, selector: str = "", timeout: float
    ) -> TestReport:
        """Fail, and leave the folder behind."""
        assert isinstance(sandbox, ScriptedSandbox)
        sandbox.files["calc.py/x"] = sandbox.files.pop("calc.py")
        return FAILING


async def test_a_prompt_that_is_too_long_costs_one_candidate_and_not_the_run() -> None:
    """The next candidate, whose prompt is another, is asked for."""
    done = await work(Refusal(400, "exceeds the context size", "invalid_request"), reply("a + b"))
    assert done.end.outcome == "answered"
    assert done.code == CODE.replace("a - b", "a + b")


async def test_a_run_whose_every_prompt_is_refused_ends_as_failed() -> None:
    """What the model server said is the reason."""
    refusal = Refusal(400, "exceeds the context size", "invalid_request")
    done = await work(refusal, refusal, samples=2)
    assert done.end.outcome == "failed"
    assert "exceeds the context size" in done.end.reason


async def test_a_later_attempt_asks_anew_and_for_its_own_objective() -> None:
    """Keys of an earlier attempt would have the gateway repeat what it said then."""
    done = await work(reply("a + b"), first_step=7)
    (asked,) = done.client.requests
    assert asked.idempotency_key.endswith("-step-7")
    assert asked.routing.optimize == "quality"
    assert asked.seed is not None
    assert asked.seed > 1_000
    assert "candidate 1:" in done.end.reason


TWO = [
    ("calc.py", "def add(a, b):\n    return a - b\n\n\ndef half(a):\n    return a * 2\n"),
    (
        "test_calc.py",
        "from calc import add, half\n\n\ndef test_add(): ...\n\n\ndef test_half(): ...\n",
    ),
]
BOTH = replace(FAILING, failed=("test_calc.py::test_add", "test_calc.py::test_half"))
HALF = Turn("```python\ndef half(a):\n    return a / 2\n```")


class Two(Suite):
    """Two tests, each of one function."""

    async def __call__(
        self, sandbox: Sandbox, command: str, *, selector: str = "", timeout: float
    ) -> TestReport:
        """Look for both right bodies."""
        code = (await sandbox.read("calc.py")).data.decode()
        right = {"test_calc.py::test_add": "a + b", "test_calc.py::test_half": "a / 2"}
        passed = tuple(name for name, body in right.items() if body in code)
        failed = tuple(name for name in right if name not in passed)
        return TestReport(command, 1 if failed else 0, passed, failed, 0.1, f"left {failed}")


async def test_two_faults_are_mended_one_after_the_other() -> None:
    """A candidate with which fewer tests fail stays, and the next is asked about the rest."""
    done = await work(HALF, reply("a + b"), files=TWO, before=BOTH, tests=Two())
    assert done.end.outcome == "answered"
    assert done.code == TWO[0][1].replace("a - b", "a + b").replace("a * 2", "a / 2")
    second = done.client.requests[1].messages[-1].content
    assert "a / 2" in second
    assert "left ('test_calc.py::test_add',)" in second


async def test_progress_is_kept_where_the_rest_is_not_found() -> None:
    """The end says how far it came."""
    done = await work(HALF, reply("a * b"), samples=2, files=TWO, before=BOTH, tests=Two())
    assert done.end.outcome == "step_limit"
    assert "what stays makes 1 of 2 failing tests pass" in done.end.reason
    assert "a / 2" in done.code
    assert "a - b" in done.code


async def test_a_run_that_has_spent_what_it_may_draws_no_more() -> None:
    """Each call of the scripted model costs 100 micro-dollars."""
    done = await work(*[reply(f"a * {n}") for n in range(3)], max_spend=Micros(150))
    assert done.end.outcome == "capped"
    assert len(done.client.requests) == 2


@pytest.mark.parametrize(
    "edit",
    [
        "<<<<<<< SEARCH\n    total = a - b\n=======\n    total = a + b\n>>>>>>> REPLACE",
        "```python\ntotal = a + b\nreturn total\n```",
    ],
)
async def test_a_function_too_long_to_be_written_anew_is_mended_in_place(edit: str) -> None:
    """The prompt shows the lines around the traceback, and the reply takes their place."""
    filler = "".join(f"    x{n} = {n}\n" for n in range(500))
    code = f"def add(a, b):\n{filler}    total = a - b\n    return total\n"
    output = "=== FAILURES ===\ncalc.py:502: in add\nE   assert -1 == 3\n"
    files = [("calc.py", code), ("test_calc.py", TEST)]
    done = await work(Turn(edit), files=files, before=replace(FAILING, output=output))
    assert done.end.outcome == "answered"
    assert done.code == code.replace("a - b", "a + b")
    text = done.client.requests[0].messages[-1].content
    assert "\ntotal = a - b\nreturn total\n```" in text
    assert "x250 = 250" not in text
    assert "in this statement:\n\n```python\ntotal = a - b\n```" in text


async def test_a_model_that_never_answers_does_not_outlast_the_run() -> None:
    """The call under way is given up when the run's time is over."""

    class Silent(ScriptedModelClient):
        async def call(self, request: ModelRequest) -> ModelReply:
            await asyncio.Event().wait()
            raise AssertionError("nobody sets it")

    strategy = RepairStrategy(
        Silent(),
        ScriptedSandbox({"calc.py": CODE, "test_calc.py": TEST}),
        AgentConfig(max_seconds=0.02),
        FrozenClock(),
        run_tests=Suite(),
    )
    brief = Brief(RunId("run-1"), "add is wrong", "guide", "pytest", FAILING, ("test_calc.py",))
    async with asyncio.timeout(5):
        events = [event async for event in strategy.run(brief)]
    end = events[-1]
    assert isinstance(end, LoopEnded)
    assert end.outcome == "capped"
    assert isinstance(events[-2], ModelCallFailed)


async def test_tests_get_no_more_than_what_the_run_has_left() -> None:
    """A candidate that hangs them is taken back when the run's time is over."""
    tests = Suite()
    done = await work(reply("a * b"), samples=1, tests=tests, max_seconds=7.5)
    assert done.code == CODE
    assert tests.timeouts == [7.5]
