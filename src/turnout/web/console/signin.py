"""The page where people sign in, and what keeps their session."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from turnout.web.console.doors import COOKIE, LASTS, Session
from turnout.web.console.visits import BASE

__all__ = [
    "SIGN_IN",
    "SIGN_OUT",
    "SignIn",
    "query_of",
    "safe_next",
    "sign_in_path",
    "with_session",
    "without",
]

SIGN_IN: Final = "/sign-in"
SIGN_OUT: Final = "/sign-out"

_LONGEST: Final = 2_000


@dataclass(frozen=True, slots=True)
class SignIn:
    """What the page shows."""

    next: str
    """Where to go afterwards, below `/console`."""
    failed: str = ""
    """Why it did not work; empty at first."""
    keyless: bool = False
    """Whether a program of this machine may come in without a key."""


def safe_next(asked: str) -> str:
    """Return a path of the console that may be gone to; its first page for any other address."""
    plain = asked.isascii() and asked.isprintable() and len(asked) <= _LONGEST
    inside = asked.startswith("/") and not asked.startswith(("//", "/\\"))
    path = asked.partition("?")[0]
    return asked if plain and inside and path not in {SIGN_IN, SIGN_OUT} else "/"


def sign_in_path(request: Request) -> str:
    """Return where somebody who is not signed in goes, to come back to where they were."""
    path: str = request.scope["path"].removeprefix(BASE)
    query = query_of(request)
    back = safe_next(f"{path}?{query}" if query else path)
    return f"{BASE}{SIGN_IN}" + ("" if back == "/" else f"?{urlencode({'next': back})}")


def query_of(request: Request) -> str:
    """Return what stands behind the `?`; `request.url` fails where `Host` is no host."""
    query: bytes = request.scope["query_string"]
    return query.decode("latin-1")


def with_session(request: Request, session: Session, path: str) -> Response:
    """Return the way to a page of the console for somebody who has just signed in."""
    answer = RedirectResponse(BASE + path, 303)
    answer.set_cookie(
        COOKIE,
        session.token,
        max_age=int(LASTS.total_seconds()),
        path=BASE,
        secure=_is_encrypted(request),
        httponly=True,
        samesite="lax",
    )
    return answer


def without(answer: Response) -> Response:
    """Return an answer that lets the browser forget the session."""
    answer.delete_cookie(COOKIE, path=BASE, httponly=True, samesite="lax")
    return answer


def _is_encrypted(request: Request) -> bool:
    # A proxy that ends TLS says so; whoever else says it only keeps their own cookie from plain
    # HTTP.
    return "https" in {request.scope["scheme"], request.headers.get("x-forwarded-proto", "")}
