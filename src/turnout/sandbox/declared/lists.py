"""Files for `pip install -r`: one requirement a line."""

import re
from collections.abc import Mapping

from turnout.sandbox.declared.collection import Collection

__all__ = ["is_list", "read_list"]

_LIST = re.compile(
    r"(?:requirements|(?:test|tests)/requirements)\.txt|requirements[^/]*(?:test|dev)[^/]*\.txt"
    r"|(?:test|tests|dev)[-_]requirements\.txt|requirements/[^/]*(?:test|dev)[^/]*\.txt"
)
_COMMENT = re.compile(r"(^|\s+)#.*$")
_TRAILING_OPTIONS = re.compile(r"\s--?[a-z][a-z-]*[\s=].*$")
_INCLUDE = re.compile(r"(?:-r|--requirement)[\s=]*(\S+)$")
_ITSELF = re.compile(r"(?:(?:-e|--editable)[\s=]*)?\.(?:\[[^\]]*\])?/?$")


def is_list(path: str) -> bool:
    """Say whether a file of this path lists what the project or its tests need."""
    return _LIST.fullmatch(path) is not None


def read_list(collection: Collection, path: str, texts: Mapping[str, str]) -> None:
    """Take the lines of a file, and of those that it includes where they are among `texts`."""
    waiting, seen = [path], {path}
    while waiting:
        here = waiting.pop()
        folder = here.rpartition("/")[0]
        for raw in texts[here].replace("\\\r\n", " ").replace("\\\n", " ").splitlines():
            line = _COMMENT.sub("", raw).strip()
            if not line or _ITSELF.match(line):
                continue
            included = _included(folder, line)
            if included not in texts:
                collection.take(here, _TRAILING_OPTIONS.sub("", line))
            elif included not in seen:
                seen.add(included)
                waiting.append(included)


def _included(folder: str, line: str) -> str:
    """Return the path that a line includes, relative to the repository; empty where it does not."""
    include = _INCLUDE.match(line)
    if include is None:
        return ""
    parts: list[str] = folder.split("/") if folder else []
    for part in include[1].split("/"):
        if part == ".." and parts:
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)
