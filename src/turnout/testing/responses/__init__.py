"""A scripted server of the responses API, for tests of what speaks to one."""

from turnout.testing.responses.server import ReceivedRequest, ScriptedResponsesServer
from turnout.testing.responses.turns import ResponsesTurn, called, said, thought

__all__ = [
    "ReceivedRequest",
    "ResponsesTurn",
    "ScriptedResponsesServer",
    "called",
    "said",
    "thought",
]
