"""A model that counts, one writing step a number: what is done twice or lost shows in the file."""

from collections import Counter
from collections.abc import Sequence

from turnout.core.events import Entry, ModelCallDone, PatchMade, ToolCallDone, ToolCallIntended
from turnout.core.json import JsonValue, as_object, as_text
from turnout.core.service.orders import Order
from turnout.core.tasks import Task
from turnout.testing.recorded import RecordedRequest
from turnout.testing.turns import Call, Turn

__all__ = ["Counting", "counting_order", "repeated", "written"]


def counting_order(steps: int, *, project: str = "red") -> Order:
    """Return the order of a run of so many writing steps."""
    task = Task(f"Count to {steps}.", "tiny", surface="shell", requirements=())
    return Order(task, project, "key")


class Counting:
    """Has one number a step written into a file, and looks what has become of each."""

    def __init__(self, delay: float = 0.0) -> None:
        """Take `delay` seconds for each answer."""
        self.asked: Counter[str] = Counter()
        """Requests by idempotency key."""
        self._delay = delay

    @property
    def asked_again(self) -> int:
        """Requests beyond the first under each key."""
        return self.asked.total() - len(self.asked)

    def __call__(self, request: RecordedRequest) -> Turn:
        """Answer a request of the loop, or of who describes the change."""
        self.asked[request.headers.get("idempotency-key", "")] += 1
        if not request.tool_names:
            return Turn("It counts.", delay=self._delay)
        goal = next(
            int(word.rstrip("."))
            for message in request.messages
            for text in as_text(message.get("content")).split("Count to ")[1:2]
            for word in text.split()[:1]
        )
        done = sum(_went_well(message) for message in request.messages)
        name = f"c{len(request.messages)}"
        if done >= goal:
            return Turn(calls=(Call("finish", {"summary": "done"}, id=name),), delay=self._delay)
        call = Call("run", {"command": f"echo {done + 1} >> log.txt"}, id=name)
        return Turn(calls=(call,), delay=self._delay)


def _went_well(message: JsonValue) -> bool:
    fields = as_object(message)
    return fields.get("role") == "tool" and as_text(fields.get("content")).startswith("exit 0")


def written(entries: Sequence[Entry]) -> list[str]:
    """Return the lines that the newest patch of a run adds; nothing where it made none."""
    patches = [each.event.patch for each in entries if isinstance(each.event, PatchMade)]
    lines = patches[-1].diff.decode().splitlines() if patches else []
    return [line[1:] for line in lines if line.startswith("+") and not line.startswith("+++")]


def repeated(entries: Sequence[Entry]) -> list[str]:
    """Return what a record holds twice: answers of a key, results and intents of a call."""
    seen: Counter[str] = Counter()
    for entry in entries:
        match entry.event:
            case ModelCallDone(idempotency_key=key):
                seen[f"answer {key}"] += 1
            case ToolCallIntended(call=call):
                seen[f"intent {call.id}"] += 1
            case ToolCallDone(result=result):
                seen[f"result {result.call_id}"] += 1
            case _:
                pass
    return [what for what, count in seen.items() if count > 1]
