"""The uid and gid that a sandbox runs under on the host."""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from turnout.errors import SandboxUnavailableError

__all__ = ["Identity", "choose_identity", "identity_within"]

_UNUSED = (1_879_048_192, 2_147_000_000)
"""A span of uids that no distribution, container or user name service hands out."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Whom the walls of one sandbox belong to."""

    uid: int
    gid: int
    """Common to all sandboxes of a machine."""


def choose_identity() -> Identity | None:
    """Return a fresh identity when running as root; None for an ordinary user, who keeps his own.

    Root must not start the walls as himself: inside a user namespace his uid still owns every file
    of root's, and each run gets its own so that runs have nothing in common.
    """
    if os.geteuid() != 0:
        return None
    return identity_within(Path("/proc/self/uid_map").read_text())


def identity_within(uid_map: str) -> Identity:
    """Return a fresh identity that a user namespace with this map can take on."""
    low, high = _UNUSED
    spans = [tuple(int(field) for field in line.split()) for line in uid_map.splitlines()]
    if any(inner <= low and high <= inner + count for inner, _, count in spans):
        return Identity(low + 1 + secrets.randbelow(high - low - 1), low)
    top = max((inner + count for inner, _, count in spans), default=0)
    if top < 60_000:
        raise SandboxUnavailableError(
            "Turnout runs as root in a user namespace with too few uids to give each run its own.",
            mend="Run it as an ordinary user, or map at least 65536 uids into the container.",
        )
    return Identity(top - 2 - secrets.randbelow(5_000), top - 1)
