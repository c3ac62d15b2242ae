"""A model that works by shell commands, and what it was told of them."""

from tests.acceptance.command import EXPLAIN, PLAN

from turnout.core.json import as_text
from turnout.testing.model_server import Call, ScriptedModelServer, Turn

__all__ = ["everything_sent", "results", "shell"]


def shell(*commands: str) -> tuple[Turn, ...]:
    """Return the turns of a model that runs some commands, one a step, and says that it is done."""
    turns = (Turn(calls=(Call("run", {"command": command}),)) for command in commands)
    return (PLAN, *turns, Turn(calls=(Call("finish", {"summary": "Done."}),)), EXPLAIN)


def results(server: ScriptedModelServer) -> list[str]:
    """Return what the model was told of its commands, in order."""
    act = max((request.messages for request in server.requests if request.tool_names), key=len)
    return [as_text(message.get("content")) for message in act if message.get("role") == "tool"]


def everything_sent(server: ScriptedModelServer) -> str:
    """Return all that was ever sent to the model."""
    return "\n".join(
        as_text(message.get("content"))
        for request in server.requests
        for message in request.messages
    )
