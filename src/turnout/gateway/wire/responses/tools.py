"""Tools as a request of the responses shape declares them, in all of its places and forms."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from turnout.core.json import JsonObject, as_object, as_objects, as_text
from turnout.gateway.dialog.conversation import Foreign, ToolSpec
from turnout.gateway.exchange import ConnectionAsk, DeclaredTool
from turnout.gateway.wire.connections import connection_ask, declared_tools
from turnout.gateway.wire.fields import invalid, items, objects, text
from turnout.gateway.wire.responses.client_tools import CLIENT_TOOLS, is_run_by_client

__all__ = ["Declared", "Form", "Tools", "allowed_names", "flat_name", "read_choice", "read_tools"]

_MOST_TOOLS = 1_024
_LONGEST = 64
"""Characters of a tool's name that every model takes."""
_DATED = re.compile(r"_\d{4}_\d{2}_\d{2}$")
_LISTS = frozenset({"additional_tools", "tool_search_output"})
"""Input items that bring tools of their own."""

Form = Literal["function", "custom", "client", "hosted"]


@dataclass(frozen=True, slots=True)
class Declared:
    """One tool."""

    name: str
    """As policy, receipts and models of other shapes know it."""
    form: Form
    entry: JsonObject
    own_name: str
    """As the client calls it."""
    namespace: str = ""

    def spec(self) -> ToolSpec:
        """Return the tool as every shape can declare it."""
        entry, described = self.entry, as_text(self.entry.get("description"))
        strict = entry.get("strict")
        match self.form:
            case "function":
                return ToolSpec(
                    self.name,
                    described,
                    as_object(entry.get("parameters")) or None,
                    strict if isinstance(strict, bool) else None,
                )
            case "custom":
                return ToolSpec(self.name, described + _grammar(entry), type="custom")
            case "client":
                tool = CLIENT_TOOLS[self.own_name]
                given = as_object(entry.get("parameters"))
                return ToolSpec(self.name, described or tool.description, given or tool.parameters)
            case _:
                return ToolSpec(self.name, foreign=Foreign("responses", entry))


@dataclass(frozen=True, slots=True)
class Tools:
    """All tools of a request."""

    declared: tuple[Declared, ...]
    connections: tuple[ConnectionAsk, ...] = ()

    def names(self) -> tuple[DeclaredTool, ...]:
        """Return what policy judges."""
        ours = (tool for ask in self.connections for tool in declared_tools(ask))
        return (*(DeclaredTool(tool.name) for tool in self.declared), *ours)

    def by_name(self) -> Mapping[str, Declared]:
        """Return the tools by their names; the first of a name counts."""
        return {tool.name: tool for tool in reversed(self.declared)}


def flat_name(namespace: str, name: str) -> str:
    """Return one name for a tool of a namespace, short enough for every model."""
    if not namespace:
        return name
    joined = f"{namespace}{name}" if namespace.endswith("__") else f"{namespace}__{name}"
    if len(joined) <= _LONGEST:
        return joined
    digest = hashlib.sha256(joined.encode()).hexdigest()[:8]
    return f"{joined[: _LONGEST - 9]}_{digest}"


def read_tools(body: JsonObject, given: Sequence[JsonObject]) -> Tools:
    """Return the tools of a body and of its input items, `given`.

    `GatewayError` (400) names the field that is wrong.
    """
    declared: list[Declared] = []
    asks: list[ConnectionAsk] = []
    for entry, path in _entries(body, given):
        ask = connection_ask(entry, path)
        if ask is None:
            declared += _declared(entry, path)
        else:
            asks.append(ask)
        if len(declared) > _MOST_TOOLS:
            raise invalid(f"`tools` holds more than {_MOST_TOOLS} tools.", "tools")
    return Tools(tuple(declared), tuple(asks))


def read_choice(body: JsonObject, tools: Tools) -> str:
    """Return `auto`, `required`, `none`, or the name of one tool; `GatewayError` (400)."""
    choice = body.get("tool_choice")
    if choice is None or choice in ("auto", "required", "none"):
        return str(choice or "auto")
    if not isinstance(choice, dict):
        raise invalid(
            "`tool_choice` must be auto, required, none, or an object that names a tool.",
            "tool_choice",
        )
    kind = text(choice, "type", "tool_choice.type") or ""
    if kind == "allowed_tools":
        return "required" if choice.get("mode") == "required" else "auto"
    if kind == "mcp":
        return "required"
    own = text(choice, "name", "tool_choice.name") or kind
    namespace = text(choice, "namespace", "tool_choice.namespace") or ""
    for tool in tools.declared:
        if (own, namespace) in ((tool.own_name, tool.namespace), (tool.name, "")):
            return tool.name
    raise invalid(f"`tool_choice` names `{own}`, which `tools` does not hold.", "tool_choice")


def _entries(body: JsonObject, given: Sequence[JsonObject]) -> Iterator[tuple[JsonObject, str]]:
    for position, entry in enumerate(items(body, "tools", "tools")):
        yield entry, f"tools[{position}]"
    for at, item in enumerate(given):
        if as_text(item.get("type")) in _LISTS:
            for position, entry in enumerate(items(item, "tools", f"input[{at}].tools")):
                yield entry, f"input[{at}].tools[{position}]"


def _declared(entry: JsonObject, path: str, namespace: str = "") -> Iterator[Declared]:
    kind = text(entry, "type", f"{path}.type")
    match kind:
        case None:
            raise invalid(f"`{path}.type` is missing.", f"{path}.type")
        case "function" | "custom":
            name = text(entry, "name", f"{path}.name")
            if name is None:
                raise invalid(f"`{path}.name` is missing.", f"{path}.name")
            objects(entry, "parameters", f"{path}.parameters")
            yield Declared(flat_name(namespace, name), kind, entry, name, namespace)
        case "namespace" if not namespace:
            name = text(entry, "name", f"{path}.name")
            if name is None:
                raise invalid(f"`{path}.name` is missing.", f"{path}.name")
            for position, inner in enumerate(items(entry, "tools", f"{path}.tools")):
                yield from _declared(inner, f"{path}.tools[{position}]", name)
        case _ if is_run_by_client(entry):
            yield Declared(kind, "client", entry, kind)
        case _:
            yield Declared(_DATED.sub("", kind), "hosted", entry, kind)


def _grammar(entry: JsonObject) -> str:
    """Return what a custom tool's input must look like, in words for a model."""
    wanted = as_object(entry.get("format"))
    definition = as_text(wanted.get("definition"))
    if wanted.get("type") != "grammar" or not definition:
        return ""
    syntax = as_text(wanted.get("syntax")) or "formal"
    return f"\n\nThe input must follow this {syntax} grammar:\n{definition}"


def allowed_names(body: JsonObject, tools: Tools) -> frozenset[str] | None:
    """Return the tools that a choice among allowed ones leaves; None where it leaves all."""
    choice = as_object(body.get("tool_choice"))
    if choice.get("type") != "allowed_tools":
        return None
    wanted = {
        (as_text(tool.get("name")) or as_text(tool.get("type")))
        for tool in as_objects(choice.get("tools"))
    }
    return frozenset(t.name for t in tools.declared if {t.name, t.own_name} & wanted)
