"""A model client that answers from a script, without HTTP.

client = ScriptedModelClient(
    Turn(calls=(Call("read_file", {"path": "a.py"}),)), Turn("The bug is in a.py.")
)
...  # hand it to a strategy
assert client.asked("act")[1].messages[-1].role == "tool"
"""

import json
from collections.abc import Callable, Mapping, Sequence

from turnout.agent.wire import decode_reply
from turnout.core.inference import ModelReply, ModelRequest, StepKind
from turnout.core.json import JsonObject
from turnout.errors import GatewayError
from turnout.testing.turns import Refusal, Turn, completion

__all__ = ["Answer", "ScriptedModelClient"]

Answer = Turn | Refusal | Callable[[ModelRequest], Turn | Refusal]
"""What a call gets, or what decides it when the call is made."""

_OTHERS: Mapping[StepKind, str] = {
    "plan": "1. Read the code. 2. Fix it. 3. Run the tests.",
    "summary": "One test failed.",
    "answer": "The cause, the change and the check, in plain words.",
}


class ScriptedModelClient:
    """A `ModelClient` whose act calls are answered by `turns`, in order.

    The other kinds of call get one answer each, always the same; `others` sets it. An act call
    beyond the script is a fault of the test and raises AssertionError.
    """

    def __init__(self, *turns: Answer, others: Mapping[StepKind, Answer] | None = None) -> None:
        self.requests: list[ModelRequest] = []
        """Every request, in order."""
        self._turns = turns
        self._used = 0
        self._others: dict[StepKind, Answer] = {k: Turn(text) for k, text in _OTHERS.items()}
        self._others.update(others or {})

    def asked(self, kind: StepKind) -> Sequence[ModelRequest]:
        """Return the requests of one kind, in order."""
        return [request for request in self.requests if request.call_kind == kind]

    async def call(self, request: ModelRequest) -> ModelReply:
        """Answer from the script; `GatewayError` for a `Refusal`."""
        self.requests.append(request)
        answer = self._others.get(request.call_kind)
        if answer is None:
            if self._used == len(self._turns):
                raise AssertionError(f"the script has no turn for act call {self._used + 1}")
            answer = self._turns[self._used]
            self._used += 1
        if not isinstance(answer, Turn | Refusal):
            answer = answer(request)
        if isinstance(answer, Refusal):
            raise GatewayError(answer.message, status=answer.status, code=answer.code)
        number = len(self.requests)
        body = {**completion(answer, "scripted", number), "routing": _routing(request)}
        return decode_reply(json.dumps(body).encode(), 1, request.tools)


def _routing(request: ModelRequest) -> JsonObject:
    return {
        "model": "scripted",
        "provider": "test",
        "deployment": "test/scripted",
        "objective": request.routing.optimize or "balanced",
        "task": request.routing.task or "general",
        "task_source": "request" if request.routing.task else "default",
        "session": request.routing.session,
        "sticky": False,
        "fallback": False,
        "policy_revision": 1,
        "reason": "It is in the script.",
        "cost_micros": 100,
    }
