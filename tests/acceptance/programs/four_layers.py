"""A coding agent whose loop ends when the model asks for no tool."""

import json
import os
import sys

from openai import OpenAI

from turnout import Sandbox

model_server = OpenAI(base_url=os.environ["LLM_BASE_URL"], api_key=os.environ["LLM_API_KEY"])
sandbox = Sandbox.create(timeout=1800)


def read_file(path: str) -> str:
    """Show a file to the model."""
    try:
        return sandbox.files.read(path)
    except Exception as error:
        return f"Error: {error}"


def write_file(path: str, content: str) -> str:
    """Let the model write a file."""
    try:
        sandbox.files.write(path, content)
    except Exception as error:
        return f"Error: {error}"
    return f"wrote {path}"


def run_command(cmd: str) -> str:
    """Let the model run a command and read all that it printed."""
    try:
        return str(sandbox.commands.run(cmd))
    except Exception as error:
        return f"Error: {error}"


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
    declared("read_file", "Return the text of a file.", "path"),
    declared("write_file", "Write a whole file.", "path", "content"),
    declared("run_command", "Run a shell command and return what it prints.", "cmd"),
]
TOOL_FUNCTIONS = {
    "read_file": read_file,
    "write_file": write_file,
    "run_command": run_command,
}


def run_agent(task: str, model: str) -> str:
    """Work on a task until the model answers in plain text."""
    messages = [
        {"role": "system", "content": "Work with the tools, then say in plain text what was done."},
        {"role": "user", "content": task},
    ]
    while True:
        response = model_server.chat.completions.create(
            model=model, messages=messages, tools=TOOLS, tool_choice="auto"
        )
        message = response.choices[0].message
        messages.append(message)
        if not message.tool_calls:
            return message.content
        for call in message.tool_calls:
            arguments = json.loads(call.function.arguments)
            content = TOOL_FUNCTIONS[call.function.name](**arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": content})


print(run_agent(task=sys.argv[1], model=os.environ["LLM_MODEL"]))
sandbox.kill()
