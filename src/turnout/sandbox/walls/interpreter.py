"""The Python that runs the resident agent inside."""

import sys
from dataclasses import dataclass
from pathlib import Path

from turnout.sandbox.base import Mount

__all__ = ["COMPILE", "Interpreter", "candidates"]

COMPILE = """
import importlib.util, marshal, sys
if sys.version_info < (3, 8):
    sys.exit("Python %d.%d is too old, 3.8 is needed" % sys.version_info[:2])
with open(sys.argv[1], "rb") as file:
    code = compile(file.read(), "resident.py", "exec", dont_inherit=True, optimize=2)
with open(int(sys.argv[2]), "wb") as file:
    file.write(importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(code))
"""
"""Compiles a script for the interpreter that runs this: parsing it anew costs each start 7 ms."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python that a sandbox may use, and the folder it needs for that."""

    path: str
    mounts: tuple[Mount, ...] = ()


def candidates() -> list[Interpreter]:
    """Return the interpreters to try: the system's, then the one that runs this.

    The second keeps its path inside, for it may find its own library by it.
    """
    found = []
    system = Path("/usr/bin/python3")
    if system.exists():
        found.append(Interpreter(str(system)))
    prefix = Path(sys.base_prefix)
    own = prefix / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    if own.exists() and not prefix.is_relative_to("/usr"):
        found.append(Interpreter(str(own), (Mount(str(prefix), str(prefix)),)))
    return found
