"""What goes wrong with a server, in words for people."""

from typing import Final

from mcp import MCPError

from turnout.core.govern.connections import Connection
from turnout.errors import ConnectionFailedError
from turnout.mcp.reading import Scrubber

__all__ = ["CLOSED", "ILL_FORMED", "Failures"]

CLOSED: Final = -32000
"""Code of the SDK's error where a server is not heard any more."""

ILL_FORMED: Final = -32051
"""Code of the error that stands for an answer which is not of the protocol."""

_LONGEST: Final = 1_000


class Failures:
    """Says what went wrong with one server."""

    def __init__(self, connection: Connection, called: str, scrub: Scrubber) -> None:
        self._who = f"The {called} {connection.name}"
        self._is_program = bool(connection.command)
        self._scrub = scrub

    def of(self, what: str, mend: str = "") -> ConnectionFailedError:
        """Return the error that says `what`, the end of a sentence about the server."""
        return ConnectionFailedError(f"{self._who}: {self._scrub(what)[:_LONGEST]}.", mend=mend)

    def explained(self, error: Exception, why: str) -> ConnectionFailedError:
        """Return the error for one by which the SDK did not open the connection.

        `why`: the reason that the way to the server has given for its end, where it has.
        """
        match error:
            case ConnectionFailedError():
                return error
            case MCPError() if error.code == CLOSED and why:
                return self.of(why)
            case MCPError() if error.code == CLOSED and self._is_program:
                return self.of("its program ended", "Run its command by hand to see why.")
            case MCPError():
                return self.of(error.message)
            case ExceptionGroup():
                return self.explained(error.exceptions[0], why)
            case _:
                return self.of("does not speak the protocol")
