"""What a reply of the model holds: Python blocks and search-and-replace edits."""

import ast
import re
import textwrap
from dataclasses import dataclass

from turnout.agent.repair.grafting.source import parse_text

__all__ = ["Block", "SearchReplace", "first_block", "python_blocks", "search_replaces"]

_MAX_CHARS = 40_000
"""More than any reply that was asked for; what follows is not read."""

_FENCE = re.compile(r"^[ \t]*```[^\n]*\n(.*?)(?:^[ \t]*```[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_PATH = re.compile(r"\A\s*(?:#|//)\s*(?:file:\s*)?(\S+\.\w+)\s*$", re.MULTILINE | re.IGNORECASE)
_EDIT = re.compile(
    r"(?:^[ \t#/*]*(?:file:[ \t]*)?`?([\w./-]{1,200}\.\w{1,9})`?:?[ \t]*\n)?(?:^[ \t]*```[^\n]*\n)?"
    r"^<{5,9} ?SEARCH[ \t]*\n(.*?)^={5,9}[ \t]*\n(.*?)^>{5,9} ?REPLACE[ \t]*$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Block:
    """Python code of a reply."""

    code: str
    """With `\\n` line endings and no common indentation that would not parse."""
    tree: ast.Module
    path: str | None
    """The file that its first line names in a comment."""


@dataclass(frozen=True, slots=True)
class SearchReplace:
    """One edit of a file."""

    search: str
    replace: str
    path: str = ""
    """The file that the line before it names; empty where none does."""


def python_blocks(text: str, *, cut: bool = False) -> tuple[Block, ...]:
    """Return the fenced blocks that parse as Python; a reply without fences is one block.

    Where the reply was `cut`, its last statement is left out: half a function can parse too.
    """
    text = _plain(text)
    pieces = _FENCE.findall(text) if "```" in text else [text]
    found = []
    for number, piece in enumerate(pieces, start=1):
        code = textwrap.dedent(piece)
        tree = parse_text(code)
        if tree is not None and cut and number == len(pieces):
            tree.body = tree.body[:-1]
        if tree is not None and tree.body:
            named = _PATH.match(code)
            found.append(Block(code, tree, named[1] if named else None))
    return tuple(found)


def first_block(text: str) -> str:
    """Return the first fenced block, whatever is in it; empty where none holds anything."""
    pieces = (textwrap.dedent(piece).rstrip() for piece in _FENCE.findall(_plain(text)))
    return next((piece for piece in pieces if piece.strip()), "")


def search_replaces(text: str) -> tuple[SearchReplace, ...]:
    """Return the search-and-replace edits, in order; one that searches for nothing is left out."""
    found = _EDIT.findall(_plain(text))
    edits = (SearchReplace(search, replace, path) for path, search, replace in found)
    return tuple(edit for edit in edits if edit.search.strip())


def _plain(text: str) -> str:
    return text[:_MAX_CHARS].replace("\r\n", "\n").replace("\r", "\n")
