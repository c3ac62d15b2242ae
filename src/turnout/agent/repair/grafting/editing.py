"""Search-and-replace edits put into the files that they are most likely meant for. Pure."""

from collections.abc import Mapping, Sequence

from turnout.agent.repair.grafting.reply import SearchReplace
from turnout.agent.tools.replacing import replace_once
from turnout.errors import ToolError

__all__ = ["edited"]

_MOST_EDITS = 20
_MOST_COMPARED = 4
"""Files in which an edit is looked for that is in none of them word by word."""


def edited(files: Mapping[str, bytes], edits: Sequence[SearchReplace]) -> Mapping[str, bytes]:
    """Return the new content of the files that `edits` change.

    `files` come most suspected first. Each edit is made in the file that it names, else in the
    first one that has its text exactly once, else in the first that has it but for blanks and
    characters that look alike; one that fits nowhere is left out.
    """
    now = dict(files)
    for edit in edits[:_MOST_EDITS]:
        told = [path for path in now if edit.path and f"/{path}".endswith(f"/{edit.path}")]
        paths = told or list(now)
        exact = [path for path in paths if now[path].count(edit.search.rstrip("\n").encode()) == 1]
        for path in exact[:1] or paths[:_MOST_COMPARED]:
            changed = _changed(now[path], edit)
            if changed is not None:
                now[path] = changed
                break
    return {path: data for path, data in now.items() if data != files[path]}


def _changed(data: bytes, edit: SearchReplace) -> bytes | None:
    try:
        return replace_once(data, edit.search, edit.replace).data
    except ToolError:
        return None
