"""What a loop has said and heard, step by step, and how it is cut short."""

from collections import OrderedDict
from typing import Final

from turnout.agent.tools.output import output_name
from turnout.core.events import HistoryCondensed
from turnout.core.messages import AssistantMessage, Message, UserMessage

__all__ = ["History", "Outputs"]

_KEPT_OUTPUT: Final = 4 << 20
"""Characters of whole outputs that a model may read on in; the oldest go first."""

_OPENING: Final = 2
"""Messages that open the conversation and outlive every condensation: instructions and task."""


class History:
    """The messages that the next call would send, each with the step that said it."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._steps: list[int] = []

    @property
    def messages(self) -> tuple[Message, ...]:
        """All of them, oldest first."""
        return tuple(self._messages)

    @property
    def model_spoke_last(self) -> bool:
        """Whether nothing was said to the model since it spoke, results of its calls aside."""
        return bool(self._messages) and not isinstance(self._messages[-1], UserMessage)

    def say(self, step: int, *messages: Message) -> None:
        """Add messages."""
        self._messages += messages
        self._steps += [step] * len(messages)

    def condensable(self, keep: int) -> tuple[tuple[Message, ...], int] | None:
        """Return what a summary could stand for, and the newest step in it.

        The newest `keep` turns stay as they are. None where nothing is left to condense.
        """
        spoken = [
            step
            for step, message in zip(self._steps, self._messages, strict=True)
            if isinstance(message, AssistantMessage)
        ]
        if keep > len(spoken):
            return None
        # A nudge that opened a kept turn has the turn's step.
        end = self._steps.index(spoken[-keep]) if keep else len(self._steps)
        if end <= _OPENING:
            return None
        return tuple(self._messages[_OPENING:end]), self._steps[end - 1]

    def condense(self, event: HistoryCondensed) -> None:
        """Let a summary take the place of what it stands for."""
        after = next(
            (
                at
                for at, step in enumerate(self._steps)
                if at >= _OPENING and step > event.through_step
            ),
            len(self._messages),
        )
        kept, steps = self._messages[after:], self._steps[after:]
        del self._messages[_OPENING:], self._steps[_OPENING:]
        self.say(event.through_step, UserMessage(event.text))
        self._messages += kept
        self._steps += steps


class Outputs:
    """Whole outputs behind results that were cut, by name; the newest ones are kept."""

    def __init__(self) -> None:
        self._outputs: OrderedDict[str, str] = OrderedDict()
        self._chars = 0

    def find(self, name: str) -> str | None:
        """Return the output of that name; None where it is not kept."""
        return self._outputs.get(name)

    def keep(self, number: int, output: str) -> None:
        """Keep the output of a run's result `number`."""
        self._outputs[output_name(number)] = output
        self._chars += len(output)
        while self._chars > _KEPT_OUTPUT and len(self._outputs) > 1:
            self._chars -= len(self._outputs.popitem(last=False)[1])
