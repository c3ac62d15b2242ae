"""What the model of these tests says: to each task the turns that were written for it."""

import json
from collections import deque
from collections.abc import Sequence

from turnout.testing.recorded import RecordedRequest
from turnout.testing.turns import Turn

__all__ = ["Spoken"]


class Spoken:
    """Answers a conversation with the next turn for the longest task that it knows in it."""

    def __init__(self) -> None:
        self._turns: dict[str, deque[Turn]] = {}

    def teach(self, task: str, turns: Sequence[Turn]) -> None:
        """Have a task answered with these turns, one after the other, and then not at all."""
        self._turns[task] = deque(turns)

    def __call__(self, request: RecordedRequest) -> Turn:
        """Answer a request."""
        said = json.dumps(request.messages, ensure_ascii=False)
        for task in sorted(self._turns, key=len, reverse=True):
            turns = self._turns[task]
            if turns and json.dumps(task, ensure_ascii=False)[1:-1] in said:
                return turns.popleft()
        return Turn("Done.")
