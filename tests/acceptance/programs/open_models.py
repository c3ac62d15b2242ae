"""An agent that fixes a bug in a repository, and a grade that does not take its word for it."""

import json
import os

from openai import OpenAI

from turnout import Sandbox

CLONE_URL = os.environ["CLONE_URL"]
MODEL = os.environ.get("LLM_MODEL", "m")
REPO, TESTS = "/workspace/repo", "python3 -m pytest -q -x"

model_server = OpenAI(base_url=os.environ["LLM_BASE_URL"], api_key=os.environ["LLM_API_KEY"])


def declared(name: str, purpose: str, *parameters: str) -> dict:
    """Return the declaration of a tool whose parameters are all text."""
    schema = {
        "type": "object",
        "properties": {parameter: {"type": "string"} for parameter in parameters},
        "required": list(parameters),
    }
    function = {"name": name, "description": purpose, "parameters": schema}
    return {"type": "function", "function": function}


TOOLS = [
    declared("run", "Run a bash command in the repository.", "command"),
    declared("read_file", "Return the text of a file of the repository.", "path"),
    declared("edit_file", "Put `new` in place of `old`, which occurs once.", "path", "old", "new"),
    declared("finish", "Say that the tests pass, and what was changed.", "summary"),
]


def run_tool(sbx: Sandbox, name: str, raw: str) -> str:
    """Do what the model asks for; its mistakes come back to it as text."""
    try:
        given = json.loads(raw)
    except json.JSONDecodeError:
        return f"error: these arguments are no JSON: {raw[:200]}"
    path = f"{REPO}/{given.get('path', '')}"
    if name == "run":
        r = sbx.exec(given.get("command", ""), cwd=REPO, timeout_ms=300_000)
        late = " (timed out)" if r.timed_out else ""
        return f"exit {r.exit_code}{late}\n{(r.stdout + r.stderr)[-6000:]}"
    if name == "read_file":
        if not sbx.files.exists(path):
            return "error: there is no such file"
        return sbx.files.read_text(path)[:20_000]
    if name == "edit_file":
        if not given.get("old"):
            sbx.files.write(path, given.get("new", ""))
            return "written"
        text = sbx.files.read_text(path)
        if (count := text.count(given["old"])) != 1:
            return f"error: `old` is there {count} times"
        sbx.files.write(path, text.replace(given["old"], given.get("new", ""), 1))
        return "edited"
    return f"error: there is no tool {name}"


def solve(sbx: Sandbox, task: str, max_turns: int = 40) -> str:
    """Let the model work on a task until it calls `finish`."""
    messages = [
        {"role": "system", "content": f"Fix the repository at {REPO}; leave its tests alone."},
        {"role": "user", "content": task},
    ]
    for _ in range(max_turns):
        reply = model_server.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS)
        message = reply.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            messages.append({"role": "user", "content": "Go on by a tool call, or call finish."})
            continue
        for call in message.tool_calls:
            if call.function.name == "finish":
                return call.function.arguments
            content = run_tool(sbx, call.function.name, call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
    return f"stopped after {max_turns} turns"


with Sandbox.create(timeout_seconds=3600, labels={"task": "fix-pages"}) as sandbox:
    sandbox.exec(f"git clone --depth 1 {CLONE_URL} {REPO}", check=True, timeout_ms=300_000)
    sandbox.exec("pip install -q -e '.[test]'", cwd=REPO, check=True, timeout_ms=600_000)
    before = sandbox.exec(TESTS, cwd=REPO, timeout_ms=600_000)

    said = solve(sandbox, "tests/test_pages.py fails on the first page. Fix the code.")

    after = sandbox.exec(TESTS, cwd=REPO, timeout_ms=600_000)
    touched = sandbox.exec("git diff --name-only -- tests", cwd=REPO).stdout.strip()
    patch = sandbox.exec("git diff", cwd=REPO).stdout[:2000]
    grade = {
        "failed_before": before.exit_code != 0,
        "passes_after": after.exit_code == 0,
        "tests_untouched": touched == "",
        "patch": patch,
        "said": said,
    }
    print(json.dumps(grade))
