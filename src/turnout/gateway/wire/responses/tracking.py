"""The output of an upstream's stream, put in order: every item opened, filled and closed once."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from secrets import token_hex
from typing import NamedTuple

from turnout.core.ids import new_tool_call_id
from turnout.core.json import JsonObject, JsonValue, as_object, as_objects, as_text
from turnout.gateway.catalog import Deployment
from turnout.gateway.dialog.conversation import Call, Foreign
from turnout.gateway.dialog.events import (
    AnswerPart,
    CallDelta,
    CallOpened,
    Event,
    ForeignPart,
    Native,
    Piece,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
)
from turnout.gateway.exchange import UpstreamError
from turnout.gateway.wire.responses.answer import id_prefix, mended_item, parts_of
from turnout.gateway.wire.responses.history import read_call
from turnout.gateway.wire.responses.items import CALLS, kind
from turnout.gateway.wire.responses.seal import sealed_item

__all__ = ["FIELDS", "Field", "Output"]


class Field(NamedTuple):
    """A text that comes in pieces."""

    form: str
    """Type of the item that it is part of."""
    place: str
    """Name of the index among the item's texts; empty: there is one text."""
    said: str
    """Name of the whole text in the closing event."""
    part: str
    """Type of the part that holds it; empty: the item itself does."""


FIELDS: Mapping[str, Field] = {
    "response.output_text": Field("message", "content_index", "text", "output_text"),
    "response.refusal": Field("message", "content_index", "refusal", "refusal"),
    "response.reasoning_summary_text": Field("reasoning", "summary_index", "text", "summary_text"),
    "response.reasoning_text": Field("reasoning", "content_index", "text", "reasoning_text"),
    "response.function_call_arguments": Field("function_call", "", "arguments", ""),
    "response.custom_tool_call_input": Field("custom_tool_call", "", "input", ""),
}
"""By the stem of the events that carry it."""

_STEMS = {of.part or of.form: stem for stem, of in FIELDS.items()}
_NOT_OURS = "chatcmpl"
_MOST_ITEMS = 2_048
"""Items of one answer; each event is looked for among them."""


@dataclass(slots=True)
class _Item:
    at: int
    id: str
    form: str
    item: JsonObject
    named: str = ""
    """Its id at the upstream."""
    given: JsonValue = None
    """The place that the upstream gave it."""
    given_call: str = ""
    """The id that the upstream gave the call."""
    call: int | None = None
    """Its place among the calls."""
    said: dict[tuple[str, int], list[str]] = field(default_factory=dict)
    """What has come of each text, by stem and index, in its pieces."""
    announced: set[tuple[str, int]] = field(default_factory=set)
    """Parts that were opened, by the name of their index."""
    done: bool = False

    def text(self, stem: str) -> str:
        """Return all that has come under a stem."""
        return "".join("".join(said) for (of, _), said in self.said.items() if of == stem)

    def has(self, stem: str, index: int) -> str:
        """Return what has come of one text."""
        return "".join(self.said.get((stem, index), ()))

    def snapshot(self) -> JsonObject:
        """Return the item with what has come so far."""
        item: dict[str, JsonValue] = dict(self.item)
        if self.form in CALLS:
            said = self.text(_STEMS[self.form])
            item[CALLS[self.form]] = said or as_text(item.get(CALLS[self.form]))
        elif self.form == "message" and not as_objects(item.get("content")):
            item["content"] = self._parts("content_index")
        elif self.form == "reasoning":
            for name, index in (("summary", "summary_index"), ("content", "content_index")):
                if not as_objects(item.get(name)) and (parts := self._parts(index)):
                    item[name] = parts
        return item

    def _parts(self, index: str) -> list[JsonValue]:
        return [
            _part(FIELDS[stem], "".join(said))
            for (stem, _), said in sorted(self.said.items(), key=lambda entry: entry[0][1])
            if FIELDS[stem].place == index
        ]


class Output:
    """What has come of an answer; every method yields what follows from an event."""

    def __init__(self, deployment: Deployment) -> None:
        self._by = deployment
        self._items: list[_Item] = []
        self._stray: dict[str, str] = {}
        self._calls = 0
        self._call_ids: set[str] = set()
        self.mends: dict[str, None] = {}
        """What was mended in the calls."""

    def parts(self) -> Iterator[AnswerPart]:
        """Yield the answer so far."""
        for item in self._items:
            yield from parts_of(item.item if item.done else item.snapshot())

    def items(self) -> list[JsonValue]:
        """Return the items as they are."""
        return [item.item for item in self._items]

    def opened(self, data: JsonObject) -> Iterator[Piece]:
        """Take in `output_item.added`."""
        item = as_object(data.get("item"))
        if not kind(item):
            return
        found = self._of(data, item)
        if found is None or found.done:
            yield from self._open(data, item)

    def closed(self, data: JsonObject) -> Iterator[Piece]:
        """Take in `output_item.done`."""
        item = as_object(data.get("item"))
        if not kind(item):
            return
        found = self._of(data, item)
        if found is None or (found.done and found.named != as_text(item.get("id"))):
            yield from self._open(data, {**item, **_emptied(item)})
            found = self._items[-1]
        if not found.done:
            yield from self._close(found, item)

    def piece(self, data: JsonObject, stem: str) -> Iterator[Piece]:
        """Take in the delta of a text."""
        found, said = self._find(data, FIELDS[stem].form), as_text(data.get("delta"))
        if found is None and FIELDS[stem].form in CALLS:
            # A call without a name is none yet: its item will say.
            self._stray[_key(data)] = self._stray.get(_key(data), "") + said
            return
        if found is None:
            yield from self._open(data, _empty(FIELDS[stem].form))
            found = self._items[-1]
        if said and not found.done:
            yield from self._add(found, stem, _index(data, stem), said, data)

    def whole(self, data: JsonObject, stem: str) -> Iterator[Piece]:
        """Take in the closing event of a text; what no delta brought comes now."""
        found = self._find(data, FIELDS[stem].form)
        said = as_text(data.get(FIELDS[stem].said))
        if found is None:
            if FIELDS[stem].form not in CALLS:
                yield from self.piece({**data, "delta": said}, stem)
            else:
                self._stray[_key(data)] = said
            return
        if found.done:
            return
        yield from self._rest(found, stem, _index(data, stem), said)
        has = found.has(stem, _index(data, stem))
        yield Piece(native=_native({**data, **_place(found), FIELDS[stem].said: has}))

    def part(self, data: JsonObject) -> Iterator[Piece]:
        """Take in an event about a part of an item, or about a tool that the provider runs."""
        found = self._find(data, "")
        if found is None or found.done:
            return
        name = "summary_index" if "summary_index" in data else "content_index"
        if as_text(data.get("type")).endswith("part.added"):
            found.announced.add((name, _number(data.get(name))))
        yield Piece(native=_native({**data, **_place(found)}))

    def finish(self, response: JsonObject) -> Iterator[Piece]:
        """Take in the whole output at its end: items that never came, or were not closed."""
        for at, item in enumerate(as_objects(response.get("output"))):
            if not kind(item):
                continue
            found = self._known(item, at)
            if found is None:
                yield from self._open({}, {**item, **_emptied(item)})
                found = self._items[-1]
            if not found.done:
                yield from self._close(found, item)
        for left in self._items:
            if not left.done:
                yield from self._close(left, left.snapshot())

    def _known(self, item: JsonObject, at: int) -> _Item | None:
        for found in self._items:
            if found.id == item.get("id") or (
                item.get("call_id") and found.item.get("call_id") == item.get("call_id")
            ):
                return found
        there = self._items[at] if at < len(self._items) else None
        return there if there is not None and there.form == kind(item) else None

    def _of(self, data: JsonObject, item: JsonObject) -> _Item | None:
        """Return what is known of an item that is opened or closed; calls differ by their id."""
        found = self._find({**data, "item_id": item.get("id")}, kind(item))
        theirs = as_text(item.get("call_id"))
        if found is None or not theirs or not found.given_call or theirs == found.given_call:
            return found
        return next((i for i in self._items if i.given_call == theirs and not i.done), None)

    def _find(self, data: JsonObject, form: str) -> _Item | None:
        """Return the item that an event is about: by id and place, by either, or as the last."""
        place, named = data.get("output_index"), as_text(data.get("item_id"))
        by_id = by_place = going = None
        for item in reversed(self._items):
            if form and item.form != form:
                continue
            here = place is not None and item.given == place
            if named and named in (item.id, item.named):
                if here:
                    return item
                by_id = by_id or item
            by_place = by_place or (item if here else None)
            going = going or (item if form and not item.done else None)
        return by_id or by_place or going

    def _open(self, data: JsonObject, item: JsonObject) -> Iterator[Piece]:
        form, at = kind(item), len(self._items)
        if at >= _MOST_ITEMS:
            raise UpstreamError(f"says more than {_MOST_ITEMS} things at once", status=None)
        given = as_text(item.get("id")) or as_text(data.get("item_id"))
        if not given or given.startswith(_NOT_OURS):
            given = f"{id_prefix(form)}_{token_hex(12)}"
        started: dict[str, JsonValue] = {**item, "type": form, "id": given}
        given_call = as_text(item.get("call_id"))
        if form in CALLS and (not given_call or given_call in self._call_ids):
            started["call_id"] = new_tool_call_id()
            mend = "duplicate call id replaced" if given_call else "call id added"
            self.mends[mend] = None
        self._call_ids.add(as_text(started.get("call_id")))
        opened = _Item(at, given, form, started, as_text(item.get("id")), data.get("output_index"))
        opened.given_call = as_text(item.get("call_id"))
        self._items.append(opened)
        call = read_call(started)
        if call is not None:
            opened.call, self._calls = self._calls, self._calls + 1
        added: JsonObject = {"type": "response.output_item.added", "item": started}
        events = () if call is None else (_opened(call, opened.call or 0),)
        yield Piece(events, _native({**data, **added, "output_index": at}))

    def _close(self, found: _Item, item: JsonObject) -> Iterator[Piece]:
        """Close an item that its own event, or the end of the answer, has told whole."""
        for stem, index, said in _texts(item):
            yield from self._rest(found, stem, index, said)
        if found.form in CALLS:
            yield from self._fill(found)
        final: dict[str, JsonValue] = {**found.snapshot(), **item, "id": found.id}
        final |= _filled(found.snapshot(), item)
        if found.form in CALLS or "call_id" in found.item:
            final["call_id"] = found.item.get("call_id")
        events = list(self._last(found, item))
        if found.form == "reasoning":
            final = sealed_item(final, self._by)
        found.item, found.done = mended_item(final), True
        done: JsonObject = {"type": "response.output_item.done", "item": found.item}
        yield Piece(tuple(events), _native({**done, "output_index": found.at}))

    def _fill(self, found: _Item) -> Iterator[Piece]:
        """Give a call its arguments where no event of its item had them."""
        stem = _STEMS[found.form]
        if found.text(stem):
            return
        said = self._stray.pop(found.id, "") or self._stray.pop(str(found.at), "")
        if not said and found.form == "function_call":
            said = "{}"
            self.mends["empty arguments replaced by {}"] = None
        yield from self._rest(found, stem, 0, said)

    def _last(self, found: _Item, item: JsonObject) -> Iterator[Event]:
        if found.form == "reasoning" and as_text(item.get("encrypted_content")):
            yield ReasoningDelta(encrypted=as_text(item.get("encrypted_content")))
        elif found.call is None and found.form not in {"message", "reasoning"}:
            yield ForeignPart(Foreign("responses", item))
        elif found.call is not None and found.form not in CALLS:
            call = read_call(item)
            if call is not None:
                yield CallDelta(found.call, call.arguments)

    def _rest(self, found: _Item, stem: str, index: int, said: str) -> Iterator[Piece]:
        has = found.has(stem, index)
        if len(said) > len(has) and said.startswith(has):
            yield from self._add(found, stem, index, said[len(has) :], {})

    def _add(
        self, found: _Item, stem: str, index: int, said: str, data: JsonObject
    ) -> Iterator[Piece]:
        of, key = FIELDS[stem], (stem, index)
        if of.part and (of.place, index) not in found.announced:
            found.announced.add((of.place, index))
            yield Piece(native=_part_added(found, of, index))
        first = key not in found.said
        found.said.setdefault(key, []).append(said)
        delta: dict[str, JsonValue] = {
            **data,
            "type": f"{stem}.delta",
            "delta": said,
            "output_index": found.at,
            "item_id": found.id,
        }
        if of.place:
            delta[of.place] = index
        if stem == "response.output_text":
            delta.setdefault("logprobs", [])
        event = _event(found, stem, said, apart=first and index > 0)
        yield Piece(() if event is None else (event,), _native(delta))


def _event(found: _Item, stem: str, said: str, *, apart: bool) -> Event | None:
    """Return what a delta means in any shape."""
    if stem == "response.output_text":
        return TextDelta(said)
    if stem == "response.refusal":
        return RefusalDelta(said)
    if found.form == "reasoning":
        # Servers that show both send the thought itself, and a summary of it: one of them counts.
        if any(of != stem for of, _ in found.said):
            return None
        return ReasoningDelta(f"\n\n{said}" if apart else said)
    return None if found.call is None else CallDelta(found.call, said)


def _opened(call: Call, index: int) -> CallOpened:
    return CallOpened(index, call.id, call.name, call.type)


def _texts(item: JsonObject) -> Iterator[tuple[str, int, str]]:
    """Yield the texts of a whole item: stem, index, words."""
    form = kind(item)
    if form in CALLS:
        said = mended_item(item).get(CALLS[form])
        if item.get(CALLS[form]):
            yield _STEMS[form], 0, as_text(said)
        return
    for name in ("summary", "content"):
        for index, part in enumerate(as_objects(item.get(name))):
            stem = _STEMS.get(as_text(part.get("type")))
            if stem is not None:
                yield stem, index, as_text(part.get(FIELDS[stem].said))


def _emptied(item: JsonObject) -> JsonObject:
    """Return what an item looks like before any of its texts has come."""
    form = kind(item)
    if form in CALLS:
        return {CALLS[form]: "", "status": "in_progress"}
    if form == "message":
        return {"content": [], "status": "in_progress"}
    return {"summary": [], "content": []} if form == "reasoning" else {}


def _empty(form: str) -> JsonObject:
    item: JsonObject = {"type": form, **_emptied({"type": form})}
    return {**item, "role": "assistant"} if form == "message" else item


def _filled(came: JsonObject, item: JsonObject) -> JsonObject:
    """Return the texts that came in pieces and that the closed item leaves out."""
    names = ("content", "summary", "arguments", "input")
    return {name: came[name] for name in names if came.get(name) and not item.get(name)}


def _part(of: Field, said: str) -> JsonObject:
    part: JsonObject = {"type": of.part, of.said: said}
    return {**part, "annotations": [], "logprobs": []} if of.part == "output_text" else part


def _part_added(found: _Item, of: Field, index: int) -> Native:
    summary = of.place == "summary_index"
    name = "response.reasoning_summary_part" if summary else "response.content_part"
    added: JsonObject = {"type": f"{name}.added", of.place: index, "part": _part(of, "")}
    return _native({**added, **_place(found)})


def _place(found: _Item) -> JsonObject:
    return {"output_index": found.at, "item_id": found.id}


def _index(data: JsonObject, stem: str) -> int:
    return _number(data.get(FIELDS[stem].place))


def _number(value: JsonValue) -> int:
    return value if isinstance(value, int) and value >= 0 else 0


def _key(data: JsonObject) -> str:
    return as_text(data.get("item_id")) or str(data.get("output_index"))


def _native(value: JsonObject) -> Native:
    return Native("responses", value, as_text(value.get("type")))
