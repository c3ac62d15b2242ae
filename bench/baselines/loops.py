"""The loops of three guides to coding agents, as plain as they are there, in our sandbox.

Each guide's system prompt in substance, its tools, its limits and its end. Two things are mended
in favour of them: arguments never meet a shell, and a call that cannot be read is told to the model
in place of ending the program.
"""

import json
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp

from turnout.errors import ToolError
from turnout.sandbox.base import Command, Sandbox

__all__ = ["GUIDES", "Endpoint", "Guide", "work"]

Arguments = Mapping[str, Any]
RunTool = Callable[[Sandbox, str, Arguments], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where chat completions are asked for, up to and including `/v1`."""

    base_url: str
    model: str


@dataclass(frozen=True, slots=True)
class Tool:
    """What a model is told of a tool; every parameter is a string."""

    name: str
    description: str
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Guide:
    """One guide's agent."""

    system: str
    tools: tuple[Tool, ...]
    run: RunTool
    steps: int
    max_tokens: int | None = None
    """Of a reply; None: the server's."""
    plan: str = ""
    """System prompt of a first call whose reply is added to the task; empty: there is none."""
    finish: bool = False
    """Whether a tool ends the work: a reply without a call is then answered by a nudge."""


async def work(guide: Guide, endpoint: Endpoint, sandbox: Sandbox, task: str) -> int:
    """Work on a task until the guide's loop ends; return how many model calls it took."""
    async with aiohttp.ClientSession() as http:
        calls, prompt = 0, task
        if guide.plan:
            messages = [_said("system", guide.plan), _said("user", task)]
            plan = await _ask(http, endpoint, messages, max_tokens=400)
            prompt, calls = f"{task}\n\nPlan:\n{plan.get('content') or ''}", 1
        messages = [_said("system", guide.system), _said("user", prompt)]
        tools = [_declared(tool) for tool in guide.tools]
        for _ in range(guide.steps):
            reply = await _ask(http, endpoint, messages, tools=tools, max_tokens=guide.max_tokens)
            calls += 1
            messages.append(reply)
            asked = reply.get("tool_calls") or []
            if not asked and not guide.finish:
                return calls
            if not asked:
                messages.append(_said("user", "Continue with a tool call, or call finish."))
            for call in asked:
                if call["function"]["name"] == "finish":
                    return calls
                content = await _carried_out(guide, sandbox, call["function"])
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
        return calls


async def _ask(
    http: aiohttp.ClientSession,
    endpoint: Endpoint,
    messages: Sequence[Arguments],
    *,
    tools: Sequence[Arguments] = (),
    max_tokens: int | None = None,
) -> dict[str, Any]:
    body: dict[str, Any] = {"model": endpoint.model, "messages": messages}
    if tools:
        body["tools"] = tools
    if max_tokens is not None:
        body["max_tokens"] = max_tokens
    async with http.post(f"{endpoint.base_url}/chat/completions", json=body) as response:
        response.raise_for_status()
        message: dict[str, Any] = (await response.json())["choices"][0]["message"]
        return message


async def _carried_out(guide: Guide, sandbox: Sandbox, function: Arguments) -> str:
    raw = function.get("arguments") or "{}"
    try:
        arguments = json.loads(raw)
        return await guide.run(sandbox, function["name"], arguments)
    except (ValueError, TypeError, KeyError, AttributeError):
        return f"error: these arguments cannot be used: {raw[:200]}"
    except ToolError as error:
        return f"error: {error}"


def _said(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "content": content}


def _declared(tool: Tool) -> dict[str, Any]:
    properties = {each: {"type": "string"} for each in (*tool.required, *tool.optional)}
    parameters = {"type": "object", "properties": properties, "required": list(tool.required)}
    function = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {"type": "function", "function": function}


async def _shell(
    sandbox: Sandbox, line: str, *, cap: int, timeout: float, stdin: bytes | None = None
) -> str:
    command = Command(("bash", "-c", f"exec 2>&1\n{line}"), timeout=timeout, stdin=stdin)
    result = await sandbox.run(command)
    late = " (timed out)" if result.exit.reason == "timeout" else ""
    return f"exit {result.exit.code}{late}\n{result.stdout.decode(errors='replace')[-cap:]}"


async def _patching(sandbox: Sandbox, name: str, arguments: Arguments) -> str:
    pattern, selector = arguments.get("pattern", ""), arguments.get("selector", "")
    lines = {
        "list_files": f"git ls-files | grep -E {shlex.quote(pattern)} | head -200",
        "read_file": f"cat -- {shlex.quote(arguments.get('path', ''))}",
        "run_tests": f"python -m pytest -q {shlex.join(selector.split())} | tail -80",
        "apply_patch": "git apply --3way - && git diff --stat",
    }
    if name not in lines:
        return f"error: there is no tool called {name}"
    stdin = arguments["diff"].encode() if name == "apply_patch" else None
    return await _shell(sandbox, lines[name], cap=8_000, timeout=120, stdin=stdin)


async def _writing(sandbox: Sandbox, name: str, arguments: Arguments) -> str:
    if name == "read_file":
        return (await sandbox.read(arguments["path"])).data.decode(errors="replace")
    if name == "write_file":
        await sandbox.write(arguments["path"], arguments["content"].encode())
        return f"Written to {arguments['path']}"
    if name == "run_command":
        return await _shell(sandbox, arguments["cmd"], cap=20_000, timeout=300)
    return f"error: there is no tool called {name}"


async def _editing(sandbox: Sandbox, name: str, arguments: Arguments) -> str:
    if name == "run":
        return await _shell(sandbox, arguments["command"], cap=6_000, timeout=300)
    if name == "read_file":
        return (await sandbox.read(arguments["path"])).data.decode(errors="replace")[:20_000]
    if name != "edit_file":
        return f"error: there is no tool called {name}"
    path, old, new = arguments["path"], arguments.get("old"), arguments.get("new", "")
    if not old:
        await sandbox.write(path, new.encode())
        return "written"
    text = (await sandbox.read(path)).data.decode(errors="replace")
    if (count := text.count(old)) != 1:
        return f"error: `old` occurs {count} times; copy it exactly, with more lines around it"
    await sandbox.write(path, text.replace(old, new, 1).encode())
    return "edited"


_RUN = "Run a bash command in the repo. Returns the exit code and the last 6,000 characters."
_EDIT = "Replace one exact occurrence of `old` with `new`. An empty `old` writes a new file."

GUIDES: Mapping[str, Guide] = {
    "guide_1": Guide(
        "You are a coding agent. Read before you change. Run the tests after a patch. When the "
        "tests pass, answer with the diff and two sentences on the cause.",
        (
            Tool("list_files", "List files matching a pattern.", (), ("pattern",)),
            Tool("read_file", "Read a file from the repository.", ("path",)),
            Tool("run_tests", "Run the test suite, or a selector.", (), ("selector",)),
            Tool("apply_patch", "Apply a unified diff to the repository.", ("diff",)),
        ),
        _patching,
        steps=20,
        max_tokens=800,
        plan="You plan the work of a coding agent. Name the files to read, the likely cause, and "
        "how to verify. Five lines at most.",
    ),
    "guide_2": Guide(
        "You are a coding agent with access to a Linux sandbox. Complete tasks by calling tools. "
        "When done, return a plain-text summary.",
        (
            Tool("read_file", "Read the contents of a file", ("path",)),
            Tool("write_file", "Write content to a file", ("path", "content")),
            Tool("run_command", "Run a shell command and return its output", ("cmd",)),
        ),
        _writing,
        steps=40,
    ),
    "guide_3": Guide(
        "You fix bugs in the repository at /repo. Run its tests first, then read, edit and rerun "
        "until they pass, then call finish. Never edit the tests.",
        (
            Tool("run", _RUN, ("command",)),
            Tool("read_file", "Read a file. Paths are relative to the repo.", ("path",)),
            Tool("edit_file", _EDIT, ("path", "old", "new")),
            Tool("finish", "Call when the tests pass, with a short summary.", ("summary",)),
        ),
        _editing,
        steps=40,
        finish=True,
    ),
}
