"""All that send one request under one key get one answer."""

import asyncio
from dataclasses import fields, replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.core.govern.closing import KeptReply
from turnout.core.ids import RequestId, SessionId, ToolCallId
from turnout.core.inference import RoutingAsk
from turnout.core.policies import Policy
from turnout.core.usage import Usage
from turnout.errors import GatewayError
from turnout.gateway.dialog.conversation import Call, Foreign, Reasoning, Refusal, Text
from turnout.gateway.dialog.events import Native, Reply
from turnout.gateway.dialog.fold import fold_events
from turnout.gateway.exchange import Caller, Completion
from turnout.gateway.stages.completion_text import read_completion, write_completion
from turnout.gateway.stages.replay import Replays, digest_of, stream_of
from turnout.testing.books import MemoryReplies
from turnout.testing.clock import FrozenClock
from turnout.testing.exchange import PLAIN_REQUEST, REPORT

CALLER = Caller("k")
ASKED = replace(PLAIN_REQUEST, idempotency_key="once")
POLICY = Policy()

# Two surrogates that make a pair cannot be told from the character that they spell.
TEXTS = st.text(
    st.one_of(st.characters(), st.characters(min_codepoint=0xDC80, max_codepoint=0xDCFF))
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
OBJECTS = st.dictionaries(TEXTS, JSON, max_size=3)
PARTS = st.one_of(
    st.builds(Text, TEXTS, st.booleans()),
    st.builds(Reasoning, TEXTS, TEXTS, TEXTS),
    st.builds(Refusal, TEXTS),
    st.builds(Call, TEXTS.map(ToolCallId), TEXTS, TEXTS, st.sampled_from(["function", "custom"])),
    st.builds(Foreign, st.sampled_from(["chat", "messages", "responses"]), OBJECTS),
)


def answer(text="Hello."):
    """Return an answer that says that."""
    body = {"choices": [{"message": {"content": text}}]}
    reply = Reply((Text(text),), "stop", Usage(10, 5))
    return Completion(reply, Native("chat", body), Usage(10, 5), REPORT)


class Serving:
    """Serves requests as the engine does, and counts how often."""

    def __init__(self, store=None, *, sign_of_life=5.0):
        self.store = store or MemoryReplies()
        self.clock = FrozenClock()
        self.replays = Replays(self.store, self.clock, sign_of_life=sign_of_life)
        self.served = []
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.failure = None

    async def serve(self, request=ASKED, name="req-1", caller=CALLER):
        """Return the text of the answer."""
        async with self.replays.claim(caller, request, RequestId(name)) as claim:
            if claim.replay is not None:
                return claim.replay.completion.reply.text
            self.served.append(name)
            kept = None
            try:
                await self.go_on.wait()
                if self.failure is not None and len(self.served) == 1:
                    raise self.failure
                kept = claim.keeps(answer(name), POLICY, self.clock.now())
            finally:
                kept = kept or claim.frees()
                if kept is not None:
                    await self.store.settle(kept)
            return name


async def test_without_a_key_each_request_is_served():
    """And nothing is kept."""
    serving = Serving()
    assert [await serving.serve(PLAIN_REQUEST, f"req-{n}") for n in range(3)] == serving.served
    assert serving.store.kept == {}


async def test_a_second_request_is_given_the_answer_of_the_first():
    """With the id of the request that was served."""
    serving = Serving()
    assert await serving.serve(name="req-1") == "req-1"
    assert await serving.serve(name="req-2") == "req-1"
    assert serving.served == ["req-1"]
    async with serving.replays.claim(CALLER, ASKED, RequestId("req-3")) as claim:
        assert claim.replay == (answer("req-1"), "req-1")
        assert claim.frees() is None


async def test_requests_that_come_while_it_is_served_wait_for_its_answer():
    """However many there are, one is served."""
    serving = Serving()
    serving.go_on.clear()
    asked = [asyncio.create_task(serving.serve(name=f"req-{n}")) for n in range(20)]
    await asyncio.sleep(0.01)
    assert serving.served == ["req-0"]
    serving.go_on.set()
    assert await asyncio.gather(*asked) == ["req-0"] * 20


@pytest.mark.parametrize(
    "failure", [GatewayError("No.", status=502, code="x"), asyncio.CancelledError()]
)
async def test_where_the_first_fails_the_next_is_served(failure):
    """An error is no answer to be given again."""
    serving = Serving()
    serving.failure = failure
    serving.go_on.clear()
    first = asyncio.create_task(serving.serve(name="req-1"))
    await asyncio.sleep(0)
    second = asyncio.create_task(serving.serve(name="req-2"))
    await asyncio.sleep(0.01)
    serving.go_on.set()
    with pytest.raises(type(failure)):
        await first
    assert await second == "req-2"


async def test_a_client_that_stops_waiting_leaves_the_others_waiting():
    """Nor is the one that is served disturbed."""
    serving = Serving()
    serving.go_on.clear()
    asked = [asyncio.create_task(serving.serve(name=f"req-{n}")) for n in range(3)]
    await asyncio.sleep(0.01)
    asked[1].cancel()
    await asyncio.wait({asked[1]})
    serving.go_on.set()
    assert await asked[0] == await asked[2] == "req-0"


@pytest.mark.parametrize(
    "change",
    [
        {"body": {"model": "auto", "messages": [{"role": "user", "content": "Bye"}]}},
        {"model": "other"},
        {"shape": "messages"},
        {"ask": RoutingAsk(optimize="cost")},
        {"session": SessionId("other")},
    ],
)
@pytest.mark.parametrize("under_way", [True, False])
async def test_another_request_under_the_same_key_is_a_conflict(change, under_way):
    """409, whether the first is under way or answered."""
    serving = Serving()
    if under_way:
        serving.go_on.clear()
    first = asyncio.create_task(serving.serve())
    await asyncio.sleep(0.01)
    with pytest.raises(GatewayError) as caught:
        await serving.serve(replace(ASKED, **change), "req-2")
    assert (caught.value.status, caught.value.code) == (409, "idempotency_conflict")
    serving.go_on.set()
    assert await first == "req-1"


async def test_whether_it_is_streamed_makes_no_other_request():
    """The answer can be given either way."""
    streamed = {**ASKED.body, "stream": True, "stream_options": {"include_usage": True}}
    assert digest_of(replace(ASKED, body=streamed, stream=True)) == digest_of(ASKED)


@pytest.mark.parametrize("ask", [RoutingAsk(tools=()), RoutingAsk(read_only=True)])
def test_a_request_that_asks_for_less_is_another(ask):
    """It is not given the answer of the one that had all tools."""
    assert digest_of(replace(ASKED, ask=ask)) != digest_of(ASKED)


async def test_two_callers_may_use_one_key():
    """Nobody is given what somebody else asked for."""
    serving = Serving()
    assert await serving.serve(name="req-1") == "req-1"
    assert await serving.serve(name="req-2", caller=Caller("other")) == "req-2"


@pytest.mark.parametrize("key", ["", "k" * 256, "a\nb", "\0"])
async def test_a_key_that_is_none_is_refused(key):
    """400, before anything is looked up."""
    with pytest.raises(GatewayError) as caught:
        await Serving().serve(replace(ASKED, idempotency_key=key))
    assert (caught.value.status, caught.value.param) == (400, "Idempotency-Key")


async def test_an_answer_is_kept_for_as_long_as_the_policy_says():
    """Then the key is as new."""
    serving = Serving()
    await serving.serve(name="req-1")
    serving.clock.advance(POLICY.keep_replies_hours * 3600 - 1)
    assert await serving.serve(name="req-2") == "req-1"
    serving.clock.advance(1)
    assert await serving.serve(name="req-3") == "req-3"


async def test_a_claim_of_a_process_that_died_lapses():
    """Whoever waits for it is served instead."""
    serving = Serving()
    until = serving.clock.now() + timedelta(seconds=30)
    dead = KeptReply("k", "once", digest_of(ASKED), "", until, RequestId("req-0"))
    await serving.store.claim(dead, serving.clock.now())
    assert await serving.serve() == "req-1"
    assert serving.clock.now() >= until


async def test_the_answer_of_another_process_is_waited_for():
    """And given as soon as it is there."""
    serving = Serving()
    until = serving.clock.now() + timedelta(seconds=30)
    other = KeptReply("k", "once", digest_of(ASKED), "", until, RequestId("req-0"))
    await serving.store.claim(other, serving.clock.now())

    class Watching(FrozenClock):
        async def sleep(self, seconds):
            await super().sleep(seconds)
            if len(self.slept) == 3:
                payload = write_completion(answer("req-0"), other.holder)
                await serving.store.settle(replace(other, payload=payload))

    serving.replays = Replays(serving.store, Watching())
    assert await serving.serve() == "req-0"
    assert serving.served == []


async def test_a_long_request_gives_signs_of_life():
    """Its claim does not lapse while it is served."""
    serving = Serving(sign_of_life=0.01)
    serving.go_on.clear()
    serve = asyncio.create_task(serving.serve())
    for _ in range(5):
        serving.clock.advance(25)
        await asyncio.sleep(0.05)
    (claim,) = serving.store.kept.values()
    assert claim.until > serving.clock.now()
    serving.go_on.set()
    assert await serve == "req-1"
    await serving.replays.close()


async def test_where_no_receipt_was_written_the_key_is_free():
    """A request that broke off before its end leaves no claim behind."""
    serving = Serving()
    with pytest.raises(LookupError):
        async with serving.replays.claim(CALLER, ASKED, RequestId("req-1")):
            raise LookupError
    assert serving.store.kept == {}


@given(st.lists(PARTS, max_size=4).map(tuple), OBJECTS, st.sampled_from(["stop", "length"]))
def test_an_answer_is_given_again_as_it_was(parts, body, finish):
    """Whatever a model wrote and the gateway ran, native form included."""
    report = replace(REPORT, connection_calls=("mcp:tracker/find",) * len(parts))
    reply = Reply(parts, finish, Usage(1, 2, 3, 4, True), "END")
    for native in (Native("messages", body, "name"), None):
        given_once = Completion(reply, native, Usage(5), report)
        assert read_completion(write_completion(given_once, RequestId("r"))) == (given_once, "r")


@given(st.lists(PARTS, max_size=4).map(tuple))
def test_an_answer_that_came_whole_can_be_given_as_a_stream(parts):
    """Its pieces amount to it."""
    reply = Reply(parts, "tool_calls")
    deltas, end = stream_of(Completion(reply, None, Usage(5), REPORT))
    events = [event for delta in deltas for event in delta.piece.events]
    assert all(delta.model == REPORT.model for delta in deltas)
    assert (end.finish, end.usage, end.report) == ("tool_calls", Usage(5), REPORT)
    assert [p for p in fold_events(events) if isinstance(p, Call)] == [
        replace(call, cached=False) for call in reply.calls
    ]


def test_every_field_of_an_answer_is_kept():
    """A field that is added must be written too, but for the origin of the reply."""
    assert {field.name for field in fields(Completion)} == {"reply", "native", "usage", "report"}
    names = {"parts", "finish", "usage", "stop_sequence", "origin"}
    assert {field.name for field in fields(Reply)} == names
