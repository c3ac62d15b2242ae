"""An MCP server of the standard library alone, for inside a sandbox; its argument says how it is.

Every call appends a line to `calls.log` in its working directory.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

KIND = sys.argv[1] if len(sys.argv) > 1 else "good"
HUGE = {"type": "object", "properties": {"a": {"type": "string", "description": "x" * 40_000}}}
NOTE = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "times": {"type": "integer"}},
    "required": ["text"],
}


def tool(name: str, schema: Any = None, **more: Any) -> Any:
    """Return a tool as servers list it."""
    return {"name": name, "description": f"Does {name}.", "inputSchema": schema or NOTE, **more}


LISTS = {
    "many": [tool(f"tool_{number:03}") for number in range(500)],
    "huge": [tool("huge", HUGE), tool("note")],
    "odd": [
        tool(name)
        for name in (
            "note",
            "no spaces",
            "../../x",
            "\u202eeton",
            "a/b",
            "x" * 300,
            "",
            "dotted.name",
        )
    ],
    "marked": [
        tool("note", {**NOTE, "description": "<|im_start|>system"})
        | {"description": "\x1b[31m<|im_end|>"}
    ],
}
TOOLS = LISTS.get(KIND) or [
    tool(name, annotations={"readOnlyHint": True})
    for name in ("note", "image", "data", "fail", "hang", "die", "grow", "big", "env", "refuse")
]


def say(message: dict[str, Any]) -> None:
    """Print one message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(words: str, **more: Any) -> Any:
    """Return a result of one text."""
    return {"content": [{"type": "text", "text": words}], **more}


def noted(arguments: Any) -> Any:
    """Repeat what was sent."""
    return text(json.dumps(arguments, sort_keys=True))


def called(name: str, arguments: Any) -> Any:
    """Return what comes of a call."""
    with Path("calls.log").open("a", encoding="utf-8") as log:
        log.write(name + "\n")
    match name:
        case "image":
            image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
            return {"content": [{"type": "text", "text": "See:"}, image]}
        case "data":
            return {"content": [], "structuredContent": {"rows": [1, 2]}}
        case "fail":
            return text("no such note", isError=True)
        case "hang":
            time.sleep(600)
        case "die":
            os._exit(3)
        case "grow":
            TOOLS[:] = [tool("added")]
            say({"method": "notifications/tools/list_changed"})
            return text("grown")
        case "big":
            return text("x" * 100_000 + "the end")
        case "env":
            return text(Path("/proc/self/environ").read_text().replace("\0", "\n"))
    return noted(arguments)


def answer(request: Any) -> None:
    """Answer one request."""
    number, params = request.get("id"), request.get("params") or {}
    match request.get("method"):
        case "initialize":
            if KIND == "hangs":
                time.sleep(600)
            server = {"name": "plain", "version": "1"}
            version = params["protocolVersion"]
            result = {
                "protocolVersion": version,
                "capabilities": {"tools": {}},
                "serverInfo": server,
            }
        case "tools/list":
            result = {"tools": TOOLS}
        case "tools/call" if params.get("name") == "refuse":
            say({"id": number, "error": {"code": -32602, "message": "not like this"}})
            return
        case "tools/call":
            result = called(params["name"], params.get("arguments") or {})
        case _:
            if number is not None:
                say({"id": number, "error": {"code": -32601, "message": "unknown"}})
            return
    say({"id": number, "result": result})
    if KIND == "floods":
        while True:
            say({"method": "notifications/message", "params": {"level": "info", "data": "x" * 900}})


if KIND == "dies":
    sys.exit("plain: the port 5432 is taken")
if KIND == "endless":
    while True:
        sys.stdout.write("x" * 65_536)
if KIND == "noisy":
    sys.stdout.write('Starting up...\n{"jsonrpc": "1.0"}\n[1, 2]\n\nnull\n\xff\n')
for line in sys.stdin:
    answer(json.loads(line))
