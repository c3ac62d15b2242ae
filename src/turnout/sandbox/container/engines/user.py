"""Whom the processes of a container belong to."""

import os
import resource
from dataclasses import dataclass

from turnout.errors import SandboxUnavailableError
from turnout.sandbox.container.engines.engine import Engine
from turnout.sandbox.walls.arguments import INSIDE_UID
from turnout.sandbox.walls.identity import choose_identity

__all__ = ["User", "choose_user"]


@dataclass(frozen=True, slots=True)
class User:
    """Uid and gid inside."""

    uid: int
    gid: int
    alone: bool = True
    """Nobody else's processes run under this uid where they would be counted with these."""

    def most_processes(self, wanted: int) -> int | None:
        """Return the limit of processes to give to an engine; None: leave it at the default.

        It counts all of a uid. An engine may want more by itself than this machine allows.
        """
        if self.alone:
            return wanted
        _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
        return None if hard == resource.RLIM_INFINITY else hard


def choose_user(engine: Engine) -> User:
    """Return a fresh user for a container, whose writable mounts belong to it.

    As root each container has a uid of its own. Where an engine without root maps its own user to
    the one inside, that is always the same; so it is where Docker does an ordinary user's bidding.
    """
    if engine.rootless:
        return User(INSIDE_UID, INSIDE_UID)
    identity = choose_identity()
    if identity is not None:
        return User(identity.uid, identity.gid)
    if os.getuid() == 0:
        raise SandboxUnavailableError("Processes of containers must not be root's.")
    return User(os.getuid(), os.getgid(), alone=False)
