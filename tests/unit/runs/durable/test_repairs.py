"""A run that repairs goes on from wherever its record ends, by its record alone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.unit.runs.durable.parts import Green, House, Nobody, Remembering, Working, no_egress
from tests.unit.runs.durable.parts import resolve as find_commit

from turnout.agent.repair import RepairStrategy
from turnout.core.events import ModelCallDone, ToolCallDone, ToolCallIntended
from turnout.core.runs import TestReport
from turnout.runs.durable.segment import Outfit, Segments
from turnout.runs.ports import ModelAccess
from turnout.runs.summary import fold
from turnout.runs.worker import Workshop
from turnout.sandbox.base import Limits
from turnout.testing.model_client import ScriptedModelClient
from turnout.testing.sandbox.driver import ScriptedDriver
from turnout.testing.turns import Turn

CODE = "def add(a, b):\n    return a - b\n"
TEST = "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"
NODE = ("test_calc.py::test_add",)
FAILURE = "=== FAILURES ===\n___ test_add ___\nE   assert -1 == 3\n"
BODIES = ("a * b", "a % b", "a + b")


async def judged(sandbox, command, *, selector="", timeout=0.0):
    """Look at the file instead of running the tests."""
    code = (await sandbox.read("calc.py")).data.decode()
    passes = "a + b" in code
    passed, failed = (NODE, ()) if passes else ((), NODE)
    return TestReport(command, int(not passes), passed, failed, 0.1, "" if passes else FAILURE)


class Judging(Green):
    """Finds the tests red until the code adds."""

    async def run(self, sandbox, command):
        """Count it."""
        self.runs += 1
        return await judged(sandbox, command)


class Guessing(Remembering):
    """A model that finds the fix with its third guess, whatever it is asked in between."""

    def as_of(self, events):
        """Forget every answer: the gateway's store may have been emptied meanwhile."""
        return Guessing()

    async def call(self, request):
        """Answer as the step wants."""
        self.asked.append(request.idempotency_key)
        body = BODIES[int(request.idempotency_key.rpartition("-")[2]) - 1]
        turn = Turn(f"```python\ndef add(a, b):\n    return {body}\n```")
        return await ScriptedModelClient(turn).call(request)


class Repairing(Working):
    """The agent, which repairs."""

    def strategy(self, name, client, sandbox, approver):
        """Return the repair."""
        assert name == "repair"
        return RepairStrategy(client, sandbox, self.config, self.clock, run_tests=judged)


@dataclass
class Workbench(House):
    """A service whose models can only repair."""

    def segments(self):
        """Return what works on runs."""
        working = Repairing(self.config, self.clock)
        shop = Workshop(self.driver, working, self.suite, Limits(), self.clock, Nobody(), no_egress)

        @asynccontextmanager
        async def outfit(_order) -> AsyncIterator[Outfit]:
            yield Outfit(shop, ModelAccess(self.model, "repair"))

        return Segments(
            self.orders,
            self.records,
            outfit,
            find_commit,
            lambda name: f"/repositories/{name}",
            self.clock,
            self.on_entry,
        )


async def test_a_repair_cut_anywhere_comes_to_the_same_end():
    """With the same patch, though another machine has nothing but its record.

    No answer on record is asked for again, and no call or result is put there twice.
    """
    driver = ScriptedDriver({"calc.py": CODE, "test_calc.py": TEST})
    house = Workbench(driver=driver, model=Guessing(), suite=Judging())
    await house.order()
    await house.segment()
    whole = await house.events()
    done = fold(await house.records.entries("run-1"))
    assert (done.outcome, done.verdict.name) == ("answered", "resolved")
    assert "checkpoint_made" not in [event.type for event in whole]
    for at in range(len(whole)):
        other = await house.with_record(whole[:at])
        other.suite = Judging()
        run = await other.segment()
        events = await other.events()
        result = fold(await other.records.entries("run-1"))
        assert (run.outcome, run.verdict) == ("answered", "resolved"), at
        assert result.patch.diff == done.patch.diff
        assert result.cost == done.cost
        answered = {e.idempotency_key for e in whole[:at] if isinstance(e, ModelCallDone)}
        assert not answered & set(other.model.asked)
        for kind in (ModelCallDone, ToolCallIntended, ToolCallDone):
            found = [event for event in events if isinstance(event, kind)]
            assert len(found) == sum(isinstance(event, kind) for event in whole), (at, kind)
        assert not any("begins anew" in warning for warning in result.warnings)
