"""Answers in pieces and whole are the same answers."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from turnout.core.ids import ToolCallId
from turnout.gateway.dialog.conversation import Call, Reasoning, Refusal, Text
from turnout.gateway.dialog.events import AnswerPart, CallDelta, CallOpened, Event, TextDelta
from turnout.gateway.dialog.fold import events_of, fold_events

_WORDS = st.text(min_size=1, max_size=8)
_PARTS = st.one_of(
    st.builds(Text, _WORDS),
    st.builds(Refusal, _WORDS),
    st.builds(Reasoning, _WORDS, _WORDS),
    st.builds(Call, _WORDS.map(ToolCallId), _WORDS, st.text(max_size=8)),
)


def _joined(parts: Sequence[AnswerPart]) -> bool:
    """Return whether no two neighbours are of a kind that pieces cannot keep apart."""
    return not any(isinstance(a, Text | Refusal) and type(a) is type(b) for a, b in pairwise(parts))


@given(st.lists(_PARTS, max_size=6).filter(_joined))
def test_an_answer_taken_apart_and_put_together_is_the_same(parts: list[AnswerPart]) -> None:
    """Text, thoughts, calls, their order and their ids."""
    assert list(fold_events(events_of(parts))) == parts


@given(st.lists(st.tuples(st.integers(0, 1), _WORDS), max_size=8))
def test_calls_that_take_turns_keep_their_own_arguments(turns: list[tuple[int, str]]) -> None:
    """Fragments go to the call whose index they carry."""
    opened: list[Event] = [CallOpened(i, ToolCallId(f"c{i}"), f"t{i}") for i in (0, 1)]
    parts = fold_events([*opened, *(CallDelta(i, said) for i, said in turns)])
    for i in (0, 1):
        call = parts[i]
        assert isinstance(call, Call)
        assert call.arguments == "".join(said for at, said in turns if at == i)


def test_text_in_many_pieces_is_one_part() -> None:
    """A stream's granularity leaves no trace."""
    assert fold_events([TextDelta("a"), TextDelta("b")]) == (Text("ab"),)
