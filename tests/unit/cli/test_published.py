"""What a command that has followed a run says of its publication."""

from collections.abc import Awaitable, Callable

import pytest

from turnout.cli.runs.published import publication_line
from turnout.core.json import JsonObject

LOOK = "See `turnout runs show run-1`."
BRANCH = "turnout/run-0123456789ab"
DONE: JsonObject = {"state": "done", "branch": BRANCH}
DUE: JsonObject = {"state": "due", "branch": None, "detail": ""}
AGAIN: JsonObject = {**DUE, "detail": "No route.", "next_try": "2026-01-01T12:34:00Z"}


def reading(*found: JsonObject | None) -> Callable[[str], Awaitable[JsonObject]]:
    """Return what reads a run whose publication goes on so, and stays at the last."""
    left = list(found)

    async def read(run_id: str) -> JsonObject:
        return {"id": run_id, "publication": left.pop(0) if len(left) > 1 else left[0]}

    return read


@pytest.mark.parametrize(
    ("found", "patience", "said"),
    [
        ((None,), 9.0, ""),
        ((DUE, DONE), 9.0, f"Published: branch {BRANCH}"),
        ((DUE,), 0.0, f"Published: not yet. {LOOK}"),
        (
            (AGAIN,),
            9.0,
            f"Published: not yet. No route. It is tried again at 12:34 UTC. {LOOK}",
        ),
    ],
)
async def test_a_publication_is_waited_for_but_not_for_ever(
    found: tuple[JsonObject | None, ...], patience: float, said: str
) -> None:
    """What is under way comes to something; what is tried again later is not waited for."""
    assert await publication_line(reading(*found), "run-1", patience=patience) == said
