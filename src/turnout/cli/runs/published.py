"""What has become of a run's diff outside of its service, as a line."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from turnout.cli.terminal import safe
from turnout.core.json import JsonObject, as_object, as_text

__all__ = ["publication_line", "published_line"]

_PAUSE: Final = 0.5
_PATIENCE: Final = 20.0
"""Seconds; a push takes a few."""


def published_line(run: JsonObject) -> str:
    """Return what is said of a run's publication; nothing where there is nothing to say."""
    publication = as_object(run.get("publication"))
    branch, link, detail, again = (
        as_text(publication.get(name)) for name in ("branch", "link", "detail", "next_try")
    )
    match as_text(publication.get("state")):
        case "done" if branch:
            return safe(f"Published: branch {branch}{f', {link}' if link else ''}")
        case "due":
            when = f"It is tried again at {again[11:16]} UTC." if again else ""
            return safe(" ".join(filter(None, ("Published: not yet.", detail, when))))
        case "":
            return ""
        case _:
            return safe(f"Not published: {detail}")


async def publication_line(
    read: Callable[[str], Awaitable[JsonObject]], run_id: str, *, patience: float = _PATIENCE
) -> str:
    """Return the same of a run that has ended, once its publication has come to something.

    Where it has not within some seconds, or is to be tried again, the line says where to look.
    """
    now = asyncio.get_running_loop().time
    until = now() + patience
    run = await read(run_id)
    while _under_way(run) and now() < until:
        await asyncio.sleep(_PAUSE)
        run = await read(run_id)
    line = published_line(run)
    due = as_text(as_object(run.get("publication")).get("state")) == "due"
    return f"{line} See `turnout runs show {safe(run_id)}`." if due else line


def _under_way(run: JsonObject) -> bool:
    publication = as_object(run.get("publication"))
    return as_text(publication.get("state")) == "due" and not as_text(publication.get("detail"))
