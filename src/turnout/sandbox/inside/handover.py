"""The resident agent as sandboxes are given it: one file, and the arguments that start it."""

import ast
from functools import cache
from importlib.resources import files
from threading import Lock

from turnout.sandbox.base import REPO, Limits

__all__ = ["EGRESS_PORT", "agent_words", "resident_source"]

EGRESS_PORT = 3128
"""Where the proxy listens on the loopback of a sandbox that may reach something."""

_RESIDENT = ("files", "processes", "command", "memory", "stillness", "loop", "start")
_MODULES = ("wire", *(f"resident/{name}" for name in _RESIDENT))
_PACKAGE = "turnout"
_JOINING = Lock()
"""Some versions of CPython 3.11 lose count when two threads parse at once."""


def _body(source: str) -> list[ast.stmt]:
    """Return a module's statements without those that only make sense in the package."""

    def belongs(node: ast.stmt) -> bool:
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            return module != "__future__" and module.partition(".")[0] != _PACKAGE
        return not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))

    return [node for node in ast.parse(source).body if belongs(node)]


def resident_source() -> bytes:
    """Return the resident agent as one standalone script for Python 3.8 or newer."""
    with _JOINING:
        return _joined()


@cache
def _joined() -> bytes:
    folder = files("turnout.sandbox.inside")
    joined = ast.Module(body=[], type_ignores=[])
    for name in _MODULES:
        joined.body += _body((folder / f"{name}.py").read_text())
    return f"from __future__ import annotations\n{ast.unparse(joined)}\n".encode()


def agent_words(
    channel: tuple[int, int],
    limits: Limits,
    *,
    root: str = REPO,
    egress: str = "",
    watch: bool = False,
    alone: bool = True,
) -> tuple[str, ...]:
    """Return the arguments of the agent; `main` of its `start` module says what they mean.

    `channel` holds the descriptors that it reads from and writes to: equal for a socket, 0 and 1
    for standard input and output. `egress` is `fd:N` or `path:SOCKET`, or empty for no network.
    Without being `alone` it does not limit processes: those of others would count.
    """
    words: dict[str, int | str] = {
        "in": channel[0],
        "out": channel[1],
        "root": root,
        "alone": int(alone),
    }
    words |= {"files": limits.open_files, "file_bytes": limits.file_bytes}
    words |= {"memory": limits.memory_bytes, "watch": int(watch)}
    if alone:
        words["pids"] = limits.pids
    if egress:
        words |= {"egress": egress, "port": EGRESS_PORT}
    return tuple(f"{name}={value}" for name, value in words.items())
