"""A repair that another worker goes on with, from wherever its record ends."""

import pytest
from tests.unit.agent.repair.test_strategy import CODE, FAILING, TEST, Suite, reply

from turnout.agent.base import AgentConfig, Brief
from turnout.agent.repair import RepairStrategy
from turnout.core.events import Event, LoopEnded, ModelCallDone, ModelCallIntended
from turnout.core.ids import RunId
from turnout.core.inference import ModelReply, ModelRequest
from turnout.errors import GatewayError
from turnout.runs.worker.again import unsaid
from turnout.testing.clock import FrozenClock
from turnout.testing.model_client import ScriptedModelClient
from turnout.testing.sandbox import ScriptedSandbox

TURNS = (reply("a * b"), reply("a % b"), reply("a + b"))
BRIEF = Brief(RunId("run-1"), "add is wrong", "guide", "pytest", FAILING, ("test_calc.py",))


class Keyed:
    """A model whose answers go by the step that a key names, and that counts what it is asked."""

    def __init__(self, conflict: bool = False) -> None:
        self.asked: list[str] = []
        self._conflict = conflict

    async def call(self, request: ModelRequest) -> ModelReply:
        """Answer as the step wants; refuse the key of another prompt where there is a conflict."""
        key = request.idempotency_key
        self.asked.append(key)
        if self._conflict and not key.endswith("-anew"):
            raise GatewayError("other content", status=409, code="idempotency_conflict")
        step = int(key.removesuffix("-anew").rpartition("-")[2])
        return await ScriptedModelClient(TURNS[step - 1]).call(request)


async def repair(model: Keyed, record: list[Event]) -> tuple[list[Event], str]:
    """Return what comes on record from there, and the file at the end; the workspace is fresh."""
    sandbox = ScriptedSandbox({"calc.py": CODE, "test_calc.py": TEST})
    config = AgentConfig(repair_samples=6)
    strategy = RepairStrategy(model, sandbox, config, FrozenClock(), run_tests=Suite())
    events = unsaid(strategy.run(BRIEF, record), record)
    found = [event async for event in events]
    return found, sandbox.files["calc.py"].data.decode()


async def test_from_each_of_its_events_it_comes_to_the_same_end() -> None:
    """No answer on record is asked for again, nothing is put there twice, and the fix is made."""
    model = Keyed()
    whole, fixed = await repair(model, [])
    assert len(model.asked) == 3
    assert fixed == CODE.replace("a - b", "a + b")
    for at in range(len(whole)):
        known, model = whole[:at], Keyed()
        rest, code = await repair(model, known)
        assert [*known, *rest] == whole, at
        assert code == fixed
        answered = {e.idempotency_key for e in known if isinstance(e, ModelCallDone)}
        assert not answered & set(model.asked)
        assert len(model.asked) + len(answered) == 3


async def test_a_call_under_way_that_is_another_one_by_now_is_made_anew() -> None:
    """The gateway knows its key by another prompt: what tests print may differ each time."""
    whole, _ = await repair(Keyed(), [])
    at = next(n for n, event in enumerate(whole) if isinstance(event, ModelCallIntended)) + 1
    model = Keyed(conflict=True)
    rest, _ = await repair(model, whole[:at])
    assert isinstance(rest[-1], LoopEnded)
    assert rest[-1].outcome == "answered"
    assert model.asked[1] == f"{model.asked[0]}-anew"


async def test_a_refusal_that_is_no_conflict_comes_out() -> None:
    """It ends the work, as it would have without a record."""

    class Refusing(Keyed):
        async def call(self, request: ModelRequest) -> ModelReply:
            raise GatewayError("no", status=401, code="invalid_api_key")

    whole, _ = await repair(Refusing(), [])
    assert isinstance(whole[-1], LoopEnded)
    assert whole[-1].outcome == "failed"


@pytest.mark.parametrize("lost", [1, 2])
async def test_what_tests_say_differently_is_put_on_record(lost: int) -> None:
    """A result that is on record in other words is another fact."""
    whole, _ = await repair(Keyed(), [])
    results = [n for n, event in enumerate(whole) if event.type == "tool_call_done"]
    known = list(whole)
    known[results[lost]] = whole[results[0]]
    rest, _ = await repair(Keyed(), known)
    assert [event for event in rest if event.type == "tool_call_done"] == [whole[results[lost]]]
