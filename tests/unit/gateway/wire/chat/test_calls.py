"""Fragments of tool calls find their call, however the upstream numbers them."""

from typing import Any

import pytest

from turnout.core.ids import ToolCallId
from turnout.gateway.dialog.events import CallDelta, CallOpened
from turnout.gateway.exchange import UpstreamError
from turnout.gateway.wire.chat.calls import CallTable


def _fragment(text: str = "", **fields: Any) -> dict[str, Any]:
    return {**fields, "function": {"arguments": text}}


def _opening(name: str, **fields: Any) -> dict[str, Any]:
    return {**fields, "function": {"name": name, "arguments": ""}}


def _made(table: CallTable) -> list[tuple[str, str, str]]:
    return [(call.id, call.name, call.arguments) for call in table.calls]


def test_fragments_without_an_index_follow_the_call_that_is_open() -> None:
    """One call, all its fragments at index 0."""
    table = CallTable()
    placed = [
        table.add(_opening("f", id="a", type="function")).fragment or {},
        table.add(_fragment('{"p"')).fragment or {},
        table.add(_fragment(":1}")).fragment or {},
    ]
    assert [fragment["index"] for fragment in placed] == [0, 0, 0]
    assert _made(table) == [("a", "f", '{"p":1}')]


def test_parallel_calls_that_all_claim_index_0_are_kept_apart() -> None:
    """Another id is another call, whatever its index says."""
    table = CallTable()
    for name in ("a", "b"):
        table.add(_opening("f", id=name, index=0))
        table.add(_fragment("{}", index=0))
    assert _made(table) == [("a", "f", "{}"), ("b", "f", "{}")]


def test_interleaved_fragments_go_by_their_index() -> None:
    """With a sound index nothing is guessed."""
    table = CallTable()
    table.add(_opening("f", id="a", index=0))
    table.add(_opening("g", id="b", index=1))
    table.add(_fragment("1", index=0))
    table.add(_fragment("2", index=1))
    assert _made(table) == [("a", "f", "1"), ("b", "g", "2")]


def test_an_id_repeated_in_every_fragment_is_the_same_call() -> None:
    """Some upstreams repeat it."""
    table = CallTable()
    table.add(_opening("f", id="a"))
    table.add(_fragment("1", id="a"))
    table.add(_fragment("2", id="a"))
    assert _made(table) == [("a", "f", "12")]


def test_a_call_without_an_id_is_given_one() -> None:
    """The tool result must be able to name its call."""
    placed = CallTable().add(_opening("f", index=0)).fragment or {}
    assert str(placed["id"]).startswith("call_")
    assert placed["type"] == "function"


def test_two_named_calls_without_id_or_index_are_two_calls() -> None:
    """A second name opens a second call."""
    table = CallTable()
    table.add({"function": {"name": "f", "arguments": "{}"}})
    table.add({"function": {"name": "g", "arguments": "{}"}})
    assert [call.name for call in table.calls] == ["f", "g"]


def test_arguments_that_come_as_an_object_become_text() -> None:
    """Clients concatenate strings."""
    table = CallTable()
    placed = table.add({"id": "a", "function": {"name": "f", "arguments": {"p": 1}}}).fragment or {}
    assert placed["function"] == {"name": "f", "arguments": '{"p":1}'}
    assert table.calls[0].arguments == '{"p":1}'


@pytest.mark.cases
def test_two_calls_under_one_id_get_two() -> None:
    """A result can answer only one of them; the first keeps its id."""
    table = CallTable()
    table.add(_opening("f", id="a", index=0))
    table.add(_opening("g", id="a", index=1))
    table.add(_fragment("1", index=0, id="a"))
    table.add(_fragment("2", index=1, id="a"))
    first, second = table.calls
    assert (first.id, first.arguments, second.arguments) == ("a", "1", "2")
    assert second.id != "a"
    assert "duplicate call id replaced" in table.repairs


def test_a_new_id_in_every_fragment_is_the_same_call() -> None:
    """Without a name nothing opens."""
    table = CallTable()
    table.add(_opening("f", id="a", index=0))
    table.add(_fragment("1", id="b", index=0))
    table.add(_fragment("2", id="c", index=0))
    assert _made(table) == [("a", "f", "12")]


def test_calls_without_ids_at_one_index_part_where_arguments_are_whole() -> None:
    """Nothing can follow a whole object but another call."""
    table = CallTable()
    for name in ("f", "f", "g"):
        table.add({"index": 0, "function": {"name": name, "arguments": '{"p":1}'}})
    assert [(call.name, call.arguments) for call in table.calls] == [
        ("f", '{"p":1}'),
        ("f", '{"p":1}'),
        ("g", '{"p":1}'),
    ]


def test_a_call_is_shown_once_its_name_is_known() -> None:
    """What came before is in the fragment that opens it."""
    table = CallTable()
    early = table.add({"index": 0, "id": "a", "function": {"arguments": ""}})
    opening = table.add({"index": 0, "function": {"name": "f", "arguments": '{"'}})
    assert early == (None, ())
    assert opening.fragment == {
        "index": 0,
        "id": "a",
        "type": "function",
        "function": {"name": "f", "arguments": '{"'},
    }
    assert list(opening.events) == [CallOpened(0, ToolCallId("a"), "f"), CallDelta(0, '{"')]


def test_a_call_that_never_gets_a_name_is_not_shown() -> None:
    """It takes no index either."""
    table = CallTable()
    table.add({"index": 0, "id": "a", "function": {"arguments": "{}"}})
    opening = table.add(_opening("f", index=1, id="b")).fragment or {}
    assert opening["index"] == 0
    assert table.unnamed()


def test_a_free_text_call_keeps_its_form() -> None:
    """Its input is text, whatever it holds."""
    table = CallTable()
    custom = {"name": "patch", "input": ""}
    table.add({"index": 0, "id": "a", "type": "custom", "custom": custom})
    more = table.add({"index": 0, "custom": {"input": "*** Begin"}}).fragment or {}
    assert more["custom"] == {"input": "*** Begin"}
    assert (table.calls[0].type, table.calls[0].arguments) == ("custom", "*** Begin")


@pytest.mark.parametrize(
    ("fragments", "repair"),
    [
        ([{"index": 0, "function": {"name": "f"}}], "call id added"),
        ([{"id": "a", "function": {"name": "f"}}], "call index added"),
        ([{"index": 1, "id": "a", "function": {"name": "f"}}], "call index corrected"),
    ],
)
def test_what_an_upstream_got_wrong_is_named(fragments: list[Any], repair: str) -> None:
    """For the receipt, and against the deployment."""
    table = CallTable()
    for fragment in fragments:
        table.add(fragment)
    assert list(table.repairs) == [repair]


def test_there_is_an_end_to_the_calls_of_one_answer() -> None:
    """Every fragment is looked for among all of them."""
    table = CallTable()
    for number in range(512):
        table.add(_opening("f", id=f"call_{number}", index=number))
    table.add(_fragment("{}", index=511))
    with pytest.raises(UpstreamError, match="more than 512 tool calls"):
        table.add(_opening("f", id="call_512", index=512))
    assert len(table.calls) == 512
