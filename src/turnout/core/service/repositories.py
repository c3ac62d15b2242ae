"""Which repositories a remote caller may name: those of a list, and those of trusted servers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from turnout.errors import UsageError

__all__ = ["RepositoryAccess", "RepositoryBook", "check_name", "check_server"]

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_PATH: Final = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._~+-]+)+/?")
_SERVER: Final = re.compile(
    r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?(?::[1-9][0-9]{0,4})?"
    r"(?:(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._~+-]+)+/?)?"
)
_SHOWN: Final = 200


@dataclass(frozen=True, slots=True)
class RepositoryAccess:
    """What the service may do with a repository beside reading it as anybody may."""

    credential_variable: str = ""
    """Variable of the service that holds a token for its URL; empty: it takes none."""
    push: bool = False
    """Whether new branches `turnout/...` are pushed there."""


_READ_ONLY: Final = RepositoryAccess()


@dataclass(frozen=True, slots=True)
class RepositoryBook:
    """Repositories by name, and servers of which any may be named by its URL.

    What a caller writes is never taken for a path: nobody reads this machine's files by it, nor
    reaches a server that is not listed.
    """

    named: Mapping[str, str] = field(default_factory=dict)
    """Name to absolute path or URL on this machine; every name fits `check_name`."""
    servers: tuple[str, ...] = ()
    """`git.example.org`, `git.example.org:8443` or `git.example.org/team`, as `check_server`."""
    access: Mapping[str, RepositoryAccess] = field(default_factory=dict)
    """By name; those that are not there are read as anybody may, and never pushed to."""

    def check(self, wanted: str) -> None:
        """Refuse (`UsageError`) what may not be named."""
        self.located(wanted)

    def located(self, wanted: str) -> str:
        """Return the path or URL of what a caller named; `UsageError` where it may not be."""
        found = self.named.get(wanted)
        if found is not None:
            return found
        if "://" in wanted and self._is_served(wanted):
            return wanted
        names = ", ".join(sorted(self.named)[:10])
        raise UsageError(
            f"The repository {wanted[:_SHOWN]!r} is none that this service works on.",
            mend=(f"It knows: {names}. " if names else "")
            + "Repositories and servers are listed under `[service]` of its turnout.toml.",
        )

    def access_of(self, wanted: str) -> RepositoryAccess:
        """Return what the service may do with what a caller named."""
        return self.access.get(wanted, _READ_ONLY)

    def may_push(self, wanted: str) -> bool:
        """Whether new branches are pushed to what a caller named."""
        return self.access_of(wanted).push

    def check_push(self, wanted: str) -> None:
        """Refuse (`UsageError`) to push where that was not allowed."""
        if not self.may_push(wanted):
            raise UsageError(
                f"This service pushes no branches to {wanted[:_SHOWN]!r}.",
                mend="Leave `publish` out, or have `push = true` written for that repository "
                "under `[service.repositories]` of its turnout.toml.",
            )

    def _is_served(self, url: str) -> bool:
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            return False
        plain = f"{parts.scheme}://{parts.netloc}{parts.path}" == url and parts.scheme == "https"
        if not plain or "@" in parts.netloc or not _PATH.fullmatch(parts.path):
            return False
        place = f"{host}:{port}" if port not in (None, 443) else host
        return any(_covers(server, place, parts.path) for server in self.servers)


def check_name(name: str) -> None:
    """Refuse (`UsageError`) what cannot be the name of a repository."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name[:_SHOWN]!r} cannot be the name of a repository.",
            mend="A name is 1 to 100 letters, digits, `.`, `_` and `-`, a letter or digit first.",
        )


def check_server(server: str) -> None:
    """Refuse (`UsageError`) what is no server whose repositories may be named."""
    if not _SERVER.fullmatch(server):
        raise UsageError(
            f"{server[:_SHOWN]!r} is no server of repositories.",
            mend="Write a host in lower case, with a port or the start of a path where need be: "
            "`git.example.org/team`.",
        )


def _covers(server: str, place: str, path: str) -> bool:
    host, slash, start = server.partition("/")
    return host == place and path.startswith(f"{slash}{start.rstrip('/')}{slash}")
