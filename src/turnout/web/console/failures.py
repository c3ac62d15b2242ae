"""What is shown where something went wrong."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from turnout.errors import GatewayError, TurnoutError
from turnout.gateway.admin.errors import status_of

__all__ = ["Failure", "failure_of"]

_BROKEN: Final = "Something went wrong here. It is in the service's log."


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as its page tells it."""

    status: int
    message: str
    mend: str = ""
    code: str = ""

    @property
    def title(self) -> str:
        """The status in words."""
        return HTTPStatus(self.status).phrase


def failure_of(error: Exception) -> Failure:
    """Return what is told of an error; nothing of one that nobody meant to raise."""
    if not isinstance(error, TurnoutError):
        return Failure(500, _BROKEN)
    status = status_of(error)
    code = error.code if isinstance(error, GatewayError) else ""
    return Failure(status, error.message, error.mend, code)
