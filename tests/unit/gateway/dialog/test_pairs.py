"""Calls and results that belong together, and those that do not."""

import pytest

from turnout.core.ids import ToolCallId
from turnout.errors import GatewayError
from turnout.gateway.dialog.conversation import Call, Conversation, Part, Result, Text, Turn
from turnout.gateway.dialog.pairs import check_pairs

ONE, TWO = (Call(ToolCallId(name), "look", "{}") for name in ("c1", "c2"))
OF_ONE, OF_TWO = (Result(call.id, (Text("seen"),)) for call in (ONE, TWO))
HURRY = Text("Hurry.")


def _said(*answers_and_replies: tuple[Part, ...]) -> Conversation:
    """Return a conversation in which an answer and what the user says to it take turns."""
    turns = [Turn("user", (Text("Hi"),))]
    for at, parts in enumerate(answers_and_replies):
        turns.append(Turn("user" if at % 2 else "assistant", parts))
    return Conversation(tuple(turns))


@pytest.mark.cases
@pytest.mark.parametrize(
    "said",
    [
        _said(),
        _said((ONE, TWO), (OF_TWO, OF_ONE)),
        _said((ONE,), (HURRY, OF_ONE), (TWO,), (OF_TWO,)),
        _said((ONE,), (OF_ONE,), (ONE,), (OF_ONE,)),
        Conversation(
            (Turn("assistant", (ONE,)), Turn("assistant", (TWO,)), Turn("user", (OF_ONE, OF_TWO)))
        ),
        Conversation((Turn("assistant", (ONE,)), Turn("user", (HURRY,)), Turn("user", (OF_ONE,)))),
    ],
)
def test_what_belongs_together_passes(said: Conversation) -> None:
    """In whichever order the results come, and whatever stands between."""
    check_pairs(said)


@pytest.mark.cases
@pytest.mark.parametrize(
    ("said", "named"),
    [
        (_said((ONE,)), "c1"),
        (_said((ONE, TWO), (OF_ONE,)), "c2"),
        (_said((ONE,), (HURRY,), (HURRY,), (OF_ONE,)), "c1"),
        (_said((HURRY,), (OF_TWO,)), "c2"),
        (_said((ONE,), (OF_ONE, OF_ONE)), "c1"),
        (_said((ONE,), (OF_ONE, OF_TWO)), "c2"),
    ],
)
def test_what_does_not_is_refused_by_name(said: Conversation, named: str) -> None:
    """Before any provider is asked."""
    with pytest.raises(GatewayError, match=f"`{named}`") as caught:
        check_pairs(said)
    assert caught.value.status == 400
