"""What a sandbox asked the proxy for."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from turnout.sandbox.base import Connection
from turnout.sandbox.egress.wire.refusal import RefusedError

__all__ = ["Entry", "Ledger", "noting", "shown"]

_MOST_CONNECTIONS = 10_000
_MOST_REFUSALS = _MOST_CONNECTIONS // 2
_LONGEST_HOST = 253


@dataclass(slots=True)
class Entry:
    """A request or tunnel while it is served."""

    host: str
    port: int
    allowed: bool = True
    reason: str = ""
    sent_bytes: int = 0
    received_bytes: int = 0
    secrets: dict[str, None] = field(default_factory=dict)

    def refuse(self, reason: str) -> None:
        """Say that it turned out to be what the rules do not let pass."""
        self.allowed, self.reason = False, reason

    def note_secrets(self, variables: Iterable[str]) -> None:
        """Say which secrets were put in."""
        self.secrets |= dict.fromkeys(variables)

    def connection(self) -> Connection:
        """Return it as it stands."""
        return Connection(
            host=self.host,
            port=self.port,
            allowed=self.allowed,
            reason=self.reason,
            sent_bytes=self.sent_bytes,
            received_bytes=self.received_bytes,
            secrets=tuple(self.secrets),
        )


@contextmanager
def noting(entry: Entry) -> Iterator[None]:
    """Note on the entry why what is done in the block fails."""
    try:
        yield
    except RefusedError as refused:
        entry.allowed, entry.reason = refused.allowed, refused.text
        raise
    except TimeoutError:
        entry.reason = "nothing was sent for too long"
        raise
    except OSError:
        entry.reason = "it broke off"
        raise


def shown(text: str) -> str:
    """Return what a sandbox called a host, fit for a record."""
    return "".join(c if c.isprintable() else "?" for c in text[:_LONGEST_HOST])


class Ledger:
    """The connections of one sandbox, oldest first; one that is on it keeps its place.

    Asking for what is refused costs nothing, and must not hide what is served: refusals take half
    of the places at most, and once all are taken nothing is served any more.
    """

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._refusals = 0

    def admit(self, host: str, port: int) -> Entry:
        """Add a connection that the rules let pass; `RefusedError` where there is no place."""
        if len(self._entries) >= _MOST_CONNECTIONS:
            raise RefusedError(
                429, f"This sandbox has asked for {_MOST_CONNECTIONS} connections, no more pass."
            )
        entry = Entry(host, port)
        self._entries.append(entry)
        return entry

    def refuse(self, host: str, port: int, reason: str) -> None:
        """Add a connection that they do not, with the host as it was asked for, if it fits."""
        if self._refusals < _MOST_REFUSALS and len(self._entries) < _MOST_CONNECTIONS:
            self._refusals += 1
            self._entries.append(Entry(shown(host), port, allowed=False, reason=reason))

    def connections(self) -> tuple[Connection, ...]:
        """Return them as they stand, at most 10,000."""
        return tuple(entry.connection() for entry in self._entries)
