"""Running the calls of one answer."""

import asyncio
from collections.abc import Sequence

import pytest

from turnout.core.govern.connections import Connection, ConnectionTool, ToolOutcome
from turnout.core.ids import ToolCallId
from turnout.core.json import JsonObject
from turnout.core.receipts import ConnectionCall
from turnout.errors import ConnectionFailedError, ToolError
from turnout.gateway.connections.offer import Offer, Place
from turnout.gateway.connections.running import RoundBounds, Runner
from turnout.gateway.dialog.conversation import Call
from turnout.testing.clock import FrozenClock


class Tools:
    """Connections whose calls take as many turns of the loop as they say."""

    def __init__(self) -> None:
        self.clock = FrozenClock()
        self.under_way = 0
        self.most = 0
        self.waiting = asyncio.Event()

    def get(self, name: str) -> Connection | None:
        """Return None."""
        return {}.get(name)

    async def tools(self, name: str) -> tuple[ConnectionTool, ...]:
        """Return nothing."""
        return ()

    async def call(self, name: str, tool: str, arguments: JsonObject) -> ToolOutcome:
        """Take a second, and do what the arguments say."""
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0)
        self.clock.advance(1)
        self.under_way -= 1
        match arguments.get("do"):
            case "wait":
                self.waiting.set()
                await asyncio.Event().wait()
                return ToolOutcome("never")
            case "refuse":
                raise ToolError("not so")
            case "fail":
                raise ConnectionFailedError("The connection c: cannot be reached.")
            case "err":
                return ToolOutcome("went wrong", is_error=True)
            case _:
                return ToolOutcome(str(arguments.get("say", "ok")))


def calls(*arguments: str, name: str = "read") -> Sequence[Call]:
    """Return calls with these arguments."""
    return [Call(ToolCallId(f"c{n}"), name, text) for n, text in enumerate(arguments)]


@pytest.fixture
def tools() -> Tools:
    """Return fresh connections."""
    return Tools()


def runner(tools: Tools, record: list[ConnectionCall], **bounds: int) -> Runner:
    """Return one that knows a tool that reads and one that writes."""
    places = {"read": Place("c", "read"), "write": Place("c", "write")}
    offer = Offer({}, places, frozenset({"read"}))
    return Runner(offer, tools, tools.clock, RoundBounds(**bounds), record)


async def test_calls_that_only_read_run_side_by_side(tools: Tools) -> None:
    """Their results stand in the order of the calls."""
    ran = await runner(tools, []).run(calls('{"say":"a"}', '{"say":"b"}', '{"say":"c"}'))
    assert [done.text for done in ran] == ["a", "b", "c"]
    assert tools.most == 3


async def test_where_one_call_may_write_all_run_in_turn(tools: Tools) -> None:
    """A model that writes and then reads wants to read what it wrote."""
    await runner(tools, []).run([*calls("{}", name="write"), *calls("{}", "{}")])
    assert tools.most == 1


async def test_whatever_goes_wrong_is_a_result_and_is_recorded(tools: Tools) -> None:
    """The receipt has our words; those of the server are for the model alone."""
    record: list[ConnectionCall] = []
    wrong = ('{"do":"refuse"}', '{"do":"fail"}', '{"do":"err"}', "[1]", "{", "")
    ran = await runner(tools, record).run([*calls(*wrong, name="write")])
    assert [done.is_error for done in ran] == [True, True, True, True, True, False]
    assert [done.text for done in ran] == [
        "not so",
        "The connection c: cannot be reached.",
        "went wrong",
        "Not run: the arguments are no JSON object.",
        "Not run: the arguments are no JSON object.",
        "ok",
    ]
    assert [call.error for call in record] == [
        "refused by its server",
        "The connection c: cannot be reached.",
        "the tool reported an error",
        "the arguments are no JSON object",
        "the arguments are no JSON object",
        None,
    ]
    assert [call.latency_ms for call in record] == [1000, 1000, 1000, 0, 0, 1000]


async def test_more_calls_than_one_answer_may_make_are_not_run(tools: Tools) -> None:
    """The model reads so, for each."""
    record: list[ConnectionCall] = []
    ran = await runner(tools, record, calls=2).run(calls(*["{}"] * 4, name="write"))
    assert [done.is_error for done in ran] == [False, False, True, True]
    assert record[-1].error == "too many calls at once"
    assert tools.clock.monotonic() == 2


async def test_the_results_of_a_request_have_one_limit_together(tools: Tools) -> None:
    """However many rounds they come in."""
    running = runner(tools, [], result_chars=10)
    (first,) = await running.run(calls('{"say":"1234567"}'))
    (second,) = await running.run(calls('{"say":"1234567"}'))
    (third,) = await running.run(calls('{"say":"1234567"}'))
    assert first.text == "1234567"
    assert second.text.startswith("123\n[the rest is left out")
    assert third.text.startswith("\n[the rest is left out")


async def test_a_call_whose_client_goes_away_is_recorded(tools: Tools) -> None:
    """It may have done something."""
    record: list[ConnectionCall] = []
    running = asyncio.create_task(runner(tools, record).run(calls('{"do":"wait"}')))
    await tools.waiting.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [call.error for call in record] == ["the client went away"]
