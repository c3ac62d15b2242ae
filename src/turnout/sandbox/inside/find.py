"""Listing and searching the workspace, run inside as a command of its own.

`find.py list GLOB LIMIT` prints how many files match and their paths, `find.py search REGEX GLOB
LIMIT` prints path, line number and line of each hit; fields end with NUL. The workspace is where it
is started. It runs under a time-out, for a regular expression can take for ever.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys

__all__ = ["NO_EXPRESSION", "glob_expression", "main", "matching_lines"]

NO_EXPRESSION = 3
"""Exit status where the expression of a search is none."""

_TEXT_CHARACTERS = 400
_BINARY_PROBE = 8192
_FILE_BYTES = 16 << 20
_INTERNAL = {".git", ".hg", ".svn", "__pycache__", "node_modules", ".venv"}


def glob_expression(pattern: str) -> str:
    """Return the regular expression that whole paths must match for a glob.

    `**` crosses folders, `*` and `?` do not; a pattern without a slash matches names at any depth.
    """
    pattern = pattern.removeprefix("./") if hasattr(pattern, "removeprefix") else pattern
    if "/" not in pattern:
        pattern = "**/" + pattern
    parts = []
    position = 0
    while position < len(pattern):
        if pattern.startswith("**/", position):
            parts.append("(?:[^/]+/)*")
            position += 3
            continue
        if pattern.startswith("**", position):
            parts.append(".*")
            position += 2
            continue
        character = pattern[position]
        end = pattern.find("]", position + 2)
        if character == "[" and end > 0:
            content = pattern[position + 1 : end].replace("\\", "\\\\")
            parts.append("[" + ("^" + content[1:] if content[0] == "!" else content) + "]")
            position = end
        else:
            parts.append({"*": "[^/]*", "?": "[^/]"}.get(character) or re.escape(character))
        position += 1
    return "(?s:" + "".join(parts) + r")\Z"


def matching_lines(expression: re.Pattern[str], text: str) -> list[tuple[int, str]]:
    """Return number and text of each line that a search finds, cut to a length people can read."""
    return [
        (number, line[:_TEXT_CHARACTERS])
        for number, line in enumerate(text.split("\n"), 1)
        if expression.search(line)
    ]


def _tracked(root: bytes) -> list[bytes] | None:
    """Return the files that git does not ignore; None where git cannot say."""
    git = ["git", "-c", "core.fsmonitor=false", "ls-files", "-z", "-c", "-o", "--exclude-standard"]
    try:
        result = subprocess.run(git, cwd=root, capture_output=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return None
    return sorted(set(result.stdout.split(b"\0")) - {b""})


def _walked(root: bytes) -> list[bytes]:
    """Return the files of a tree without the folders that nobody wants to see.

    However deep a tree is, this ends: it does not recurse, and skips what no path can name.
    """
    found = []
    pending = [b""]
    while pending:
        folder = pending.pop()
        try:
            entries = list(os.scandir(os.path.join(root, folder)))
        except OSError:
            continue
        for entry in entries:
            path = os.path.join(folder, entry.name)
            if not entry.is_dir(follow_symlinks=False):
                found.append(path)
            elif os.fsdecode(entry.name) not in _INTERNAL:
                pending.append(path)
    return sorted(found)


def _candidates(root: bytes, pattern: str) -> list[bytes]:
    """Return the regular files and links beneath `root` that match a glob, sorted."""
    paths = _tracked(root)
    expression = re.compile(glob_expression(pattern))
    chosen = []
    for path in _walked(root) if paths is None else paths:
        try:
            mode = os.lstat(os.path.join(root, path)).st_mode
        except OSError:
            continue
        if (stat.S_ISREG(mode) or stat.S_ISLNK(mode)) and expression.match(os.fsdecode(path)):
            chosen.append(path)
    return chosen


def _text_of(path: bytes) -> str | None:
    """Return the text of a regular file; None for links, binary files and very large ones."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with open(fd, "rb") as file:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode) or info.st_size > _FILE_BYTES:
            return None
        data = file.read()
    return None if b"\0" in data[:_BINARY_PROBE] else data.decode(errors="backslashreplace")


def main(arguments: list[str]) -> None:
    """Print what was asked for."""
    root = os.getcwdb()
    out = sys.stdout.buffer
    if arguments[0] == "list":
        paths = _candidates(root, arguments[1])
        out.write(b"%d\0" % len(paths))
        for path in paths[: int(arguments[2])]:
            out.write(path + b"\0")
        return
    try:
        expression = re.compile(arguments[1])
    except (re.error, RecursionError, OverflowError) as error:
        sys.stderr.write(str(error))
        sys.exit(NO_EXPRESSION)
    left = int(arguments[3])
    for path in _candidates(root, arguments[2]):
        for number, line in matching_lines(expression, _text_of(os.path.join(root, path)) or ""):
            if left <= 0:
                return
            left -= 1
            shown = line.replace("\0", "\\x00").encode(errors="backslashreplace")
            out.write(b"%s\0%d\0%s\0" % (path, number, shown))


if __name__ == "__main__":
    main(sys.argv[1:])
