"""Tools with a form of their own that the client runs, as functions for models that know none."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson

from turnout.core.json import JsonObject, JsonValue, as_object, as_text, read_json

__all__ = ["BY_CALL", "BY_OUTPUT", "CLIENT_TOOLS", "ClientTool", "is_run_by_client"]

_TEXT: JsonObject = {"type": "string"}
_NUMBER: JsonObject = {"type": "integer"}
_TEXTS: JsonObject = {"type": "array", "items": _TEXT}


@dataclass(frozen=True, slots=True)
class ClientTool:
    """One such tool: the items it is called and answered with, and what stands in for it."""

    type: str
    call: str
    """Type of the item that calls it."""
    output: str
    """Type of the item that answers."""
    arguments: str
    """Field of the call in which the arguments stand, as an object."""
    result: str
    """Field of the output in which the result stands."""
    description: str
    parameters: JsonObject
    fixed: Mapping[str, JsonValue] = field(default_factory=dict)
    """Fields that every call has."""
    fixed_arguments: Mapping[str, JsonValue] = field(default_factory=dict)
    """The same inside the arguments."""

    def write_call(self, arguments: str) -> dict[str, JsonValue]:
        """Return what a call item says of its arguments; broken ones are sent as a text."""
        try:
            parsed = read_json(arguments or "{}")
        except orjson.JSONDecodeError:
            parsed = {"input": arguments}
        said = parsed if isinstance(parsed, dict) else {"input": parsed}
        return {**self.fixed, self.arguments: {**self.fixed_arguments, **said}}

    def read_arguments(self, item: JsonObject) -> str:
        """Return the arguments of a call item as the text of a function call."""
        said = as_object(item.get(self.arguments))
        fixed = self.fixed_arguments
        kept = {k: v for k, v in said.items() if k not in fixed or v != fixed[k]}
        return orjson.dumps(kept).decode()

    def read_result(self, item: JsonObject) -> str:
        """Return the result of an output item as a text."""
        said = item.get(self.result)
        if said is None:
            return as_text(item.get("status"))
        return said if isinstance(said, str) else orjson.dumps(said).decode()


def _object(required: tuple[str, ...], properties: JsonObject) -> JsonObject:
    return {"type": "object", "properties": properties, "required": list(required)}


CLIENT_TOOLS: Mapping[str, ClientTool] = {
    tool.type: tool
    for tool in (
        ClientTool(
            type="tool_search",
            call="tool_search_call",
            output="tool_search_output",
            arguments="arguments",
            result="tools",
            description="Search for more tools; those that are found can be called afterwards.",
            parameters=_object(("query",), {"query": _TEXT, "limit": _NUMBER}),
            fixed={"execution": "client"},
        ),
        ClientTool(
            type="local_shell",
            call="local_shell_call",
            output="local_shell_call_output",
            arguments="action",
            result="output",
            description="Run one command, given as a list of words.",
            parameters=_object(
                ("command",),
                {"command": _TEXTS, "working_directory": _TEXT, "timeout_ms": _NUMBER},
            ),
            fixed_arguments={"type": "exec", "env": {}},
        ),
        ClientTool(
            type="shell",
            call="shell_call",
            output="shell_call_output",
            arguments="action",
            result="output",
            description="Run shell commands.",
            parameters=_object(
                ("commands",),
                {"commands": _TEXTS, "timeout_ms": _NUMBER, "max_output_length": _NUMBER},
            ),
        ),
        ClientTool(
            type="apply_patch",
            call="apply_patch_call",
            output="apply_patch_call_output",
            arguments="operation",
            result="output",
            description="Create, change or delete one file; `diff` is a V4A diff of its text.",
            parameters=_object(
                ("type", "path"),
                {
                    "type": {"enum": ["create_file", "update_file", "delete_file"]},
                    "path": _TEXT,
                    "diff": _TEXT,
                },
            ),
        ),
    )
}
"""By the type under which a request declares them."""

BY_CALL: Mapping[str, ClientTool] = {tool.call: tool for tool in CLIENT_TOOLS.values()}
BY_OUTPUT: Mapping[str, ClientTool] = {tool.output: tool for tool in CLIENT_TOOLS.values()}


def is_run_by_client(entry: JsonObject) -> bool:
    """Return whether a declaration is of such a tool, and not of the provider's own form of it."""
    match entry.get("type"):
        case "tool_search":
            return entry.get("execution") == "client"
        case "shell":
            environment = as_object(entry.get("environment"))
            return environment.get("type") in (None, "local")
        case "local_shell" | "apply_patch":
            return True
        case _:
            return False
