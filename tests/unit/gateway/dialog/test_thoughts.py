"""Thoughts are kept with their maker, and told to it alone."""

from hypothesis import given
from hypothesis import strategies as st

from turnout.core.ids import ModelId, ToolCallId
from turnout.gateway.dialog.conversation import Call, Conversation, Part, Reasoning, Text, Turn
from turnout.gateway.dialog.thoughts import (
    Thought,
    decode_thought,
    encode_thought,
    with_thoughts,
)

A, B = ModelId("a"), ModelId("b")
CALL = Call(ToolCallId("c"), "look", "{}")
KEPT = {CALL.id: Thought(A, (Reasoning("h", "signed"), Reasoning("m", "", "sealed")))}
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)


def _told(*parts: Part, to: ModelId, wanted: bool = True) -> tuple[Part, ...]:
    said = Conversation((Turn("user", (Text("Hi"),)), Turn("assistant", parts)))
    return with_thoughts(said, KEPT, to, wanted=wanted).turns[1].parts


@given(WORDS, st.lists(st.builds(Reasoning, WORDS, WORDS, WORDS), max_size=3))
def test_a_kept_thought_is_the_same_thought(maker: str, parts: list[Reasoning]) -> None:
    """Words, signatures and what is sealed."""
    thought = Thought(ModelId(maker), tuple(parts))
    assert decode_thought(encode_thought(thought)) == thought


def test_what_a_client_dropped_is_put_back_before_the_call() -> None:
    """With its signatures."""
    assert _told(Text("So."), CALL, to=A) == (*KEPT[CALL.id].parts, Text("So."), CALL)


def test_what_a_client_kept_is_not_doubled() -> None:
    """The model said it once; words without their proof give way to what was kept."""
    proven = Reasoning("hm", "signed")
    assert _told(proven, CALL, to=A) == (proven, CALL)
    assert _told(Reasoning("hm"), CALL, to=A) == (*KEPT[CALL.id].parts, CALL)


def test_another_model_is_told_nothing() -> None:
    """Whether the thought was kept here, sent by the client, or marked with its maker."""
    assert _told(Reasoning("hm"), CALL, to=B) == (CALL,)
    assert _told(CALL, to=B) == (CALL,)
    marked = Reasoning("hm", maker="a")
    assert _told(marked, Text("So."), to=B) == (Text("So."),)
    assert _told(marked, Text("So."), to=A) == (marked, Text("So."))


def test_who_wants_none_gets_none() -> None:
    """Not even its own."""
    assert _told(Reasoning("hm"), CALL, to=A, wanted=False) == (CALL,)
