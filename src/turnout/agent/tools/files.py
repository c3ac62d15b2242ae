"""Paths and whole files of the workspace, as tools use them."""

import posixpath
from difflib import get_close_matches

from turnout.agent.tools.base import ToolContext
from turnout.errors import ToolError
from turnout.sandbox.base import REPO, Blob, Sandbox

__all__ = ["LARGEST", "read_whole", "refuse_tests", "workspace_path", "write_text"]

LARGEST = 16 << 20
"""Bytes of the largest file that tools read whole."""

_PIECE = 1 << 20


def workspace_path(text: str) -> str:
    """Return a model's path relative to the workspace; `ToolError` where it leaves it."""
    if not text.strip() or "\0" in text:
        raise ToolError("The path is empty or no text.", mend="Send a path in the repository.")
    absolute = posixpath.normpath(posixpath.join(REPO, text))
    path = posixpath.relpath(absolute, REPO)
    if path == ".." or path.startswith("../"):
        raise ToolError(
            f"`{text}` is outside the repository.",
            mend=f"Send a path relative to {REPO}, such as src/app.py.",
        )
    return path


async def read_whole(sandbox: Sandbox, path: str) -> Blob:
    """Return a whole file; `ToolError`, with similar paths, where it is none or too large."""
    try:
        first = await sandbox.read(path, offset=0, limit=_PIECE)
    except ToolError as error:
        raise ToolError(error.message, mend=await _similar(sandbox, path) or error.mend) from error
    if first.size > LARGEST:
        raise ToolError(
            f"`{path}` has {first.size} bytes, more than the {LARGEST} that are read.",
        )
    data = bytearray(first.data)
    while len(data) < first.size:
        piece = await sandbox.read(path, offset=len(data), limit=_PIECE)
        if piece.sha256 != first.sha256 or not piece.data:
            raise ToolError(f"`{path}` changed while it was read.", mend="Read it again.")
        data += piece.data
    return Blob(bytes(data), first.size, first.mode, first.sha256)


async def write_text(path: str, text: str, context: ToolContext) -> None:
    """Write a whole file of exactly this text, in UTF-8; an existing one keeps its mode."""
    refuse_tests(path, context)
    data = text.encode()
    if len(data) > LARGEST:
        raise ToolError(f"The file would have {len(data)} bytes, more than {LARGEST}.")
    await context.sandbox.write(path, data)


def refuse_tests(path: str, context: ToolContext) -> None:
    """Raise `ToolError` where a change of `path` would change an existing test."""
    if path in context.brief.test_files:
        raise ToolError(
            f"`{path}` is an existing test file and must not be changed.",
            mend="Change the code that it tests; new test files are allowed.",
        )


async def _similar(sandbox: Sandbox, path: str) -> str:
    listing = await sandbox.list("**/*", limit=2_000)
    name = posixpath.basename(path)
    others = [known for known in listing.paths if known != path]
    same = [known for known in others if posixpath.basename(known) == name]
    close = (same or get_close_matches(path, others, n=3, cutoff=0.6))[:3]
    return f"Did you mean {' or '.join(f'`{one}`' for one in close)}?" if close else ""
