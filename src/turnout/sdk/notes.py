"""What a caller should know of a command that wanted to reach a host and could not."""

import re
from collections.abc import Sequence
from typing import Final

from turnout.sandbox.base import Connection, Egress

__all__ = ["connection_notes"]

_MOST_HOSTS: Final = 5
_UNREACHABLE: Final = re.compile(
    r"could not resolve host|name or service not known|name resolution|"
    r"network is unreachable|EAI_AGAIN|ENETUNREACH|failed to establish a new connection",
    re.IGNORECASE,
)
_HOST: Final = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)


def connection_notes(
    egress: Egress, refused: Sequence[Connection], printed: Sequence[str]
) -> tuple[str, ...]:
    """Return one line for each host that was refused, with the setting that would allow it.

    `printed` is what a failed command wrote: in a sandbox without any network nothing is refused,
    since nothing can be asked for, and only its words tell.
    """
    if egress.rules:
        refusals = [each for each in refused if not each.allowed]
        notes = list(dict.fromkeys(_note(each, egress.setting) for each in refusals))
        more = len(notes) - _MOST_HOSTS
        return (*notes[:_MOST_HOSTS], *([f"{more} more hosts were refused"] if more > 0 else []))
    if not any(_UNREACHABLE.search(text) for text in printed):
        return ()
    mend = f"list the hosts it needs under {egress.setting} in turnout.toml"
    return (f"this sandbox reaches no network; {mend}",)


def _note(refused: Connection, setting: str) -> str:
    """Say what was refused; the proxy's reason names what it was asked for, and the setting."""
    reason = refused.reason or f"it is not reachable from this sandbox; add it to {setting}"
    host = _shown(refused.host)
    return reason if reason.startswith(host) else f"{host}:{refused.port}: {reason}"


def _shown(host: str) -> str:
    """Return a name that something inside asked for: it may hold anything."""
    return host if _HOST.fullmatch(host) else ascii(host)
