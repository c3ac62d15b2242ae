"""What is shown where something went wrong."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from turnout.errors import GatewayError, TurnoutError
from turnout.gateway.admin.errors import status_of
from turnout.web.console.visits import BASE

__all__ = ["Failure", "failure_of", "page_before"]

_BROKEN: Final = "Something went wrong here. It is in the service's log."


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as its page tells it."""

    status: int
    message: str
    mend: str = ""
    code: str = ""
    back: str = ""
    """The page whose form was refused; empty where none was, or that is not told."""

    @property
    def title(self) -> str:
        """The status in words."""
        return HTTPStatus(self.status).phrase


def page_before(headers: Mapping[str, str]) -> str:
    """Return the page of the console that a form was sent from; empty where that is not told.

    Names of headers are in lower case.
    """
    try:
        place = urlsplit(headers.get("referer", ""))
    except ValueError:
        return ""
    if place.netloc != headers.get("host", "") or not place.path.startswith(f"{BASE}/"):
        return ""
    return place.path + (f"?{place.query}" if place.query else "")


def failure_of(error: Exception) -> Failure:
    """Return what is told of an error; nothing of one that nobody meant to raise."""
    if not isinstance(error, TurnoutError):
        return Failure(500, _BROKEN)
    status = status_of(error)
    code = error.code if isinstance(error, GatewayError) else ""
    return Failure(status, error.message, error.mend, code)
