"""Runs in a container of an image: what there is, what holds, and the agent compiled for it.

    python3 -ISE survey.py SOURCE

Prints one JSON object; see `survey` beside the folder of this file.
"""

from __future__ import annotations

import base64
import ctypes
import importlib.util
import json
import marshal
import os
import shutil
import socket
import sys
from pathlib import Path

__all__ = ["compiled", "family_opens", "glibc", "main", "memory_limit", "status"]

NEEDED = ("bash", "cp", "find", "git", "tar")
OLDEST = 0x03080000
AF_VSOCK = 40
UNLIMITED = 1 << 60
MEMORY_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def compiled(path: str) -> str:
    """Return a script as the bytes of a `.pyc` of this interpreter, in base64."""
    source = Path(path).read_bytes()
    code = compile(source, "resident.py", "exec", dont_inherit=True, optimize=2)
    whole = importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(code)
    return base64.b64encode(whole).decode()


def status() -> dict[str, str]:
    """Return the kernel's lines about this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    fields = [line.partition(":") for line in lines]
    return {name: value.strip() for name, _, value in fields}


def glibc() -> bool:
    """Whether the C library is the one that the agent calls by name."""
    try:
        ctypes.CDLL("libc.so.6")
    except OSError:
        return False
    return True


def family_opens(family: int) -> bool:
    """Whether a socket of an address family can be made."""
    try:
        socket.socket(family, socket.SOCK_STREAM).close()
    except OSError:
        return False
    return True


def memory_limit() -> int | None:
    """Return the bytes that the control group allows; None where nothing is seen to."""
    for path in MEMORY_FILES:
        try:
            limit = int(Path(path).read_text())
        except (OSError, ValueError):
            continue
        return limit if limit < UNLIMITED else None
    return None


def main(source: str) -> None:
    """Print what was found."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.hexversion < OLDEST:
        sys.exit("Python " + version + " is too old, 3.8 is needed")
    facts = status()
    found = {
        "python": sys.executable,
        "version": version,
        "machine": os.uname().machine,
        "glibc": glibc(),
        "missing": [name for name in NEEDED if shutil.which(name) is None],
        "uid": os.getuid(),
        "filtered": facts.get("Seccomp") == "2" and not family_opens(AF_VSOCK),
        "no_new_privileges": facts.get("NoNewPrivs") == "1",
        "capabilities": any(
            facts.get(name, "0").strip("0") for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb")
        ),
        "memory_limit": memory_limit(),
        "agent": compiled(source),
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
