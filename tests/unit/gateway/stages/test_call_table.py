"""Fragments of tool calls find their call, however the upstream numbers them."""

from typing import Any

from turnout.gateway.stages.call_table import CallTable


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
        table.add(_opening("f", id="a", type="function")),
        table.add(_fragment('{"p"')),
        table.add(_fragment(":1}")),
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
    placed = CallTable().add(_opening("f", index=0))
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
    placed = table.add({"id": "a", "function": {"name": "f", "arguments": {"p": 1}}})
    assert placed["function"] == {"name": "f", "arguments": '{"p":1}'}
    assert table.calls[0].arguments == '{"p":1}'
