"""Runs where there are no walls: let a copied environment know where it is.

    python3 -ISE -c SOURCE VENV PROJECT REPO

Scripts name the interpreter of the place where they were made, and path files the places that are
the same in every sandbox with walls. `PROJECT` may be missing.
"""

from __future__ import annotations

import glob
import os
import sys

__all__ = ["main", "mended_path", "mended_script", "read", "rewrite"]

MOST_BYTES = 1 << 20
LONGEST = 120
EXEC = b"'''exec' "
SYSTEM = (b"/bin", b"/usr/bin", b"/usr/local/bin")


def mended_script(script: bytes, venv: bytes) -> bytes:
    """Return a script that starts the interpreter of `venv`, where it is one of an environment.

    A path that is too long for the first line stands in the second, as an argument of `exec`.
    """
    first, _, rest = script.partition(b"\n")
    if first == b"#!/bin/sh" and rest.startswith(EXEC):
        first, _, rest = rest[len(EXEC) :].partition(b"\n")
        rest = rest.partition(b"\n")[2]
    elif not first.startswith(b"#!"):
        return script
    interpreter = first.lstrip(b"#!").strip().split(b" ", 1)[0].strip(b'"')
    folder, _, name = interpreter.rpartition(b"/")
    if not folder.endswith(b"/bin") or folder in SYSTEM or name[:6] != b"python":
        return script
    python = venv + b"/bin/" + name
    if len(python) < LONGEST:
        return b"#!" + python + b"\n" + rest
    return b"#!/bin/sh\n" + EXEC + b'"' + python + b'" "$0" "$@"\n\' \'\'\'\n' + rest


def mended_path(text: bytes, project: bytes, repo: bytes) -> bytes:
    """Return a path file with the real places of project and workspace."""
    lines = text.replace(b"'/project/", b"'" + project + b"/").split(b"\n")
    return b"\n".join(repo + line[5:] if _in_repo(line) else line for line in lines)


def _in_repo(line: bytes) -> bool:
    return line == b"/repo" or line.startswith(b"/repo/")


def main(venv: str, project: str, repo: str) -> None:
    """Mend what lies in the environment and beside it."""
    real = [os.fsencode(path) for path in (venv, project, repo)]
    for place in (venv, project):
        for path in glob.glob(glob.escape(place) + "/bin/*"):
            if not os.path.islink(path) and os.path.getsize(path) <= MOST_BYTES:
                rewrite(path, mended_script(read(path), real[0]))
    for place in (glob.escape(venv) + "/lib/*/site-packages", glob.escape(project) + "/site"):
        for path in glob.glob(place + "/*.pth"):
            rewrite(path, mended_path(read(path), real[1], real[2]))


def read(path: str) -> bytes:
    """Return what a file holds."""
    with open(path, "rb") as file:
        return file.read()


def rewrite(path: str, content: bytes) -> None:
    """Write a file where its content changes."""
    if content != read(path):
        with open(path, "wb") as file:
            file.write(content)


if __name__ == "__main__":
    main(*sys.argv[1:4])
