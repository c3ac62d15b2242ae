"""Scripts of models whose results are known before: one that knows every fix, one that does none.

They decide by the request alone, so that any number of runs may ask them at once, and again after
a crash.
"""

from collections.abc import Callable, Mapping
from typing import Final

from turnout.core.json import as_objects, as_text
from turnout.testing.recorded import RecordedRequest
from turnout.testing.turns import Call, Turn

__all__ = ["do_nothing", "knowing"]

_INTERRUPTED: Final = "Interrupted: "
"""What the result of a call says that was under way when its worker ended."""


def knowing(fixes: Mapping[str, str]) -> Callable[[RecordedRequest], Turn]:
    """Return the script of a model that knows the diff which fixes each task, by its words.

    It applies that with the tool `apply_patch`, once more where it is told that this was
    interrupted, and is done.
    """

    def answer(request: RecordedRequest) -> Turn:
        said = [as_text(message.get("content")) for message in request.messages]
        if "apply_patch" not in request.tool_names:
            return Turn("It is done as the task says.")
        called = any(as_objects(message.get("tool_calls")) for message in request.messages)
        if called and _INTERRUPTED not in said[-1]:
            return Turn("The task is done.")
        known = [diff for task, diff in fixes.items() if any(task in text for text in said)]
        return Turn(calls=(Call("apply_patch", {"diff": "".join(known[:1])}),))

    return answer


def do_nothing(request: RecordedRequest) -> Turn:
    """Answer that it is done, without having done anything."""
    del request
    return Turn("The task is done.")
