"""Candidates beside whole replies: second thoughts, and less of what does too much."""

from dataclasses import dataclass, replace

from tests.unit.agent.repair.repairing import CODE, FAILING, TEST, Suite, work

from turnout.agent.base import AgentConfig, Brief
from turnout.agent.repair import RepairStrategy
from turnout.core.events import (
    ModelCallDone,
    ToolCallDone,
    ToolCallIntended,
)
from turnout.core.ids import RunId
from turnout.core.runs import TestReport
from turnout.sandbox.base import Sandbox
from turnout.testing.clock import FrozenClock
from turnout.testing.model_client import ScriptedModelClient
from turnout.testing.sandbox import ScriptedSandbox
from turnout.testing.turns import Turn

UNSURE = Turn(
    "```python\ndef add(a, b):\n    return a - b\n```",
    doubts=(("- b", "*", -1.5), ("a - b", "sum", -3.0), ("- b\n", "+", -2.0)),
)
"""The code as it is, with second thoughts; of two at one place the last counts."""


async def test_a_model_that_repeats_wrong_code_goes_on_with_its_second_thought() -> None:
    """It is given what it said until then, and is back at the end of the code by itself."""
    done = await work(UNSURE, Turn(" b\n```"), branches=True)
    assert done.end.outcome == "answered"
    assert "candidate 2" in done.end.reason
    assert done.code == CODE.replace("a - b", "a + b")
    first, second = done.client.requests
    assert (first.alternatives > 1, second.alternatives) == (True, 0)
    assert second.messages[:-1] == first.messages
    assert second.messages[-1].content == "```python\ndef add(a, b):\n    return a +"
    assert second.temperature == 0.0


async def test_second_thoughts_are_on_record_and_found_again() -> None:
    """A run that goes on from its record tries the same ones, without another call."""
    done = await work(UNSURE, Turn(" b\n```"), branches=True)
    assert [len(event.alternatives) for event in done.of(ModelCallDone)] == [2, 0]
    client, sandbox = (
        ScriptedModelClient(),
        ScriptedSandbox({"calc.py": CODE, "test_calc.py": TEST}),
    )
    clock, tests = FrozenClock(), Suite()
    config = AgentConfig(repair_samples=6)
    again = RepairStrategy(client, sandbox, config, clock, branches=True, run_tests=tests)
    brief = Brief(RunId("run-1"), "add is wrong", "guide", "pytest", FAILING, ("test_calc.py",))
    events = [event async for event in again.run(brief, done.events)]
    assert client.requests == []
    assert events == done.events


async def test_only_whole_replies_count_as_samples() -> None:
    """Once these are drawn, second thoughts that were put off come; steps bound all of them."""
    replies = (UNSURE, Turn(" b\n```"), Turn("(a)\n```"))
    wrong = Suite(right="never")
    done = await work(*replies, samples=1, branches=True, tests=wrong)
    assert done.end.outcome == "step_limit"
    assert "None of 3 candidates" in done.end.reason
    done = await work(*replies, samples=1, branches=True, tests=Suite(right="never"), max_steps=2)
    assert len(done.client.requests) == 2


GREEDY = Turn("""\
```python
def add(a, b):
    if a < b:
        raise ValueError("too small")
    if a < 0:
        return -1
    return a + b
```""")


@dataclass
class Careful(Suite):
    """Tests of which one that passed is lost where the code refuses."""

    async def __call__(
        self, sandbox: Sandbox, command: str, *, selector: str = "", timeout: float
    ) -> TestReport:
        """Look at the file; what is not selected is not run."""
        self.selectors.append(selector)
        code = (await sandbox.read("calc.py")).data.decode()
        failing, other = "test_calc.py::test_add", "test_calc.py::test_half"
        passed = [failing] * (self.right in code)
        if other in selector or not selector:
            passed += [other] * ("raise" not in code)
        run = [failing] if selector and other not in selector else [failing, other]
        failed = tuple(each for each in run if each not in passed)
        return TestReport(command, 1 if failed else 0, tuple(passed), failed, 0.1, "")


async def test_a_candidate_that_does_too_much_is_tried_without_one_of_its_changes() -> None:
    """The tests that it broke are run first; the model is not asked again."""
    before = replace(FAILING, passed=("test_calc.py::test_half",))
    done = await work(GREEDY, samples=1, before=before, tests=Careful())
    assert done.end.outcome == "answered"
    assert done.code == CODE.replace(
        "    return a - b", "    if a < 0:\n        return -1\n    return a + b"
    )
    add, half = "test_calc.py::test_add", "test_calc.py::test_half"
    assert done.tests.selectors == [add, "", half, f"{add} {half}", ""]
    calls = [event.call.id for event in done.of(ToolCallIntended)]
    assert len(calls) == len(set(calls)) == 4


@dataclass
class Ordered(Careful):
    """The other test does not pass by itself, whatever the code."""

    async def __call__(
        self, sandbox: Sandbox, command: str, *, selector: str = "", timeout: float
    ) -> TestReport:
        """Run it alone, and it fails."""
        told = await super().__call__(sandbox, command, selector=selector, timeout=timeout)
        if selector == "test_calc.py::test_half":
            return TestReport(command, 1, (), (selector,), 0.1, "")
        return told


async def test_a_test_that_does_not_pass_alone_is_not_asked_for_alone() -> None:
    """It would refuse what is right: the whole suite decides."""
    before = replace(FAILING, passed=("test_calc.py::test_half",))
    done = await work(GREEDY, samples=1, before=before, tests=Ordered())
    assert done.end.outcome == "answered"
    add, half = "test_calc.py::test_add", "test_calc.py::test_half"
    assert done.tests.selectors == [add, "", half, add, ""]


async def test_what_one_candidate_broke_is_run_first_for_the_next() -> None:
    """So that the next one that breaks it does not take the whole suite."""
    before = replace(FAILING, passed=("test_calc.py::test_half",))
    single = "```python\ndef add(a, b):\n    return a + b or raise_{}()\n```"
    turns = [Turn(single.format(n)) for n in range(2)]
    done = await work(*turns, samples=2, before=before, tests=Careful())
    add, half = "test_calc.py::test_add", "test_calc.py::test_half"
    assert done.tests.selectors == [add, "", half, f"{add} {half}"]
    said = [event.result.content for event in done.of(ToolCallDone)][-1]
    assert said.startswith(f"What passed before fails: {half}.")
    assert done.code == CODE


async def test_where_no_change_alone_is_to_blame_all_are_taken_back() -> None:
    """Every part is tried, and the files are as they were."""
    before = replace(FAILING, passed=("test_calc.py::test_half",))
    worse = Turn(GREEDY.text.replace("return -1", "raise KeyError"))
    done = await work(worse, samples=1, before=before, tests=Careful())
    assert (done.end.outcome, done.code) == ("step_limit", CODE)
    assert len(done.of(ToolCallDone)) == 2 * 4
