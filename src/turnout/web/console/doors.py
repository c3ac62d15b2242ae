"""Who is signed in: sessions that a cookie carries, signed, and that end with their key.

A session holds what the key is known by, never the key. It says nothing about what its holder may
do: that is looked up anew with every request.
"""

import hashlib
import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

import orjson

from turnout.core.clock import Clock
from turnout.errors import GatewayError
from turnout.gateway.exchange import Caller
from turnout.web.console.sessions.ended import EndedSessions

__all__ = ["COOKIE", "LASTS", "Doorman", "Holders", "Session", "Signer"]

COOKIE: Final = "turnout_console"
LASTS: Final = timedelta(hours=12)
"""How long a session is good for, whatever is done in it."""

_LONGEST: Final = 1_000
_ROLES: Final = frozenset({"viewer", "member", "approver"})


class Holders(Protocol):
    """Knows the holders of keys."""

    def enter(self, key: str, host: str) -> tuple[str, Caller]:
        """Return what a key is known by, and its holder; `GatewayError` (401, 403) for no key.

        Without a key, a program of this machine may be let in, if it asks for `host`.
        """
        ...

    def again(self, digest: str, host: str) -> Caller:
        """Return the holder of a key by what it is known by; `GatewayError` (401) if it is shut."""
        ...


@dataclass(frozen=True, slots=True)
class Session:
    """What a cookie says, once its signature is seen to be ours."""

    digest: str
    """What the key is known by; empty where none was needed."""
    until: datetime
    token: str
    """The whole cookie."""

    @property
    def mark(self) -> str:
        """Stands for it among those that have ended; nobody makes a cookie of that."""
        return hashlib.sha256(self.token.encode()).hexdigest()[:32]


class Signer:
    """Makes and reads the values of cookies."""

    def __init__(self, secret: bytes) -> None:
        if len(secret) < 32:
            raise ValueError("a secret of less than 32 bytes can be guessed")
        self._secret = secret

    def token(self, digest: str, until: datetime) -> str:
        """Return a new session's cookie; no two are alike."""
        # To the millisecond: whoever signs out everywhere can sign in again at once.
        said = [digest, round(until.timestamp(), 3), secrets.token_hex(16)]
        body = urlsafe_b64encode(orjson.dumps(said)).decode().rstrip("=")
        return f"{body}.{self._mark('session', body)}"

    def read(self, token: str) -> Session | None:
        """Return what a cookie says; None for one that was not made here."""
        body, _, mark = token.partition(".")
        if len(token) > _LONGEST or not hmac.compare_digest(
            mark.encode(errors="replace"), self._mark("session", body).encode()
        ):
            return None
        try:
            digest, until, _ = orjson.loads(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        except (ValueError, Base64Error):
            return None
        return Session(digest, datetime.fromtimestamp(until).astimezone(), token)

    def csrf(self, token: str) -> str:
        """Return what the forms of a session carry.

        It is the same for every session of a key: what somebody has written on a page whose
        session has ended can be sent once they have signed in anew.
        """
        session = self.read(token)
        return self._mark("csrf", token if session is None else session.digest)

    def _mark(self, purpose: str, said: str) -> str:
        text = f"{purpose}\0{said}".encode(errors="replace")
        return hmac.new(self._secret, text, hashlib.sha256).hexdigest()


class Doorman:
    """Lets people in by their key, and knows them by their cookie afterwards."""

    def __init__(
        self,
        holders: Holders,
        signer: Signer,
        clock: Clock,
        ended: EndedSessions | None = None,
    ) -> None:
        """Keep who has signed out in `ended`; without it, in this process alone."""
        self._holders = holders
        self._signer = signer
        self._clock = clock
        self._ended = ended or EndedSessions(clock)

    def sign_in(self, key: str, host: str) -> Session:
        """Return a new session; `GatewayError` (401, 403) for a key that opens no console."""
        digest, caller = self._holders.enter(key, host)
        _check(caller)
        until = self._clock.now() + LASTS
        return Session(digest, until, self._signer.token(digest, until))

    def recognise(self, token: str, host: str) -> Caller:
        """Return whose session it is; `GatewayError` (401, 403) where it has ended."""
        session = self._signer.read(token)
        if session is None or session.until <= self._clock.now():
            raise GatewayError(
                "You are not signed in." if session is None else "Your session has ended.",
                status=401,
                code="not_signed_in",
                mend="Sign in with your key.",
            )
        if self._ended.has(session.digest, session.mark, session.until.timestamp()):
            raise GatewayError(
                "You have signed out.",
                status=401,
                code="signed_out",
                mend="Sign in with your key.",
            )
        caller = self._holders.again(session.digest, host)
        _check(caller)
        return caller

    def sign_out(self, token: str, *, everywhere: bool = False) -> None:
        """End a session, here and wherever its cookie was copied to; one that is none stays so.

        `everywhere` ends all that were begun with its key by now.
        """
        session = self._signer.read(token)
        if session is None:
            return
        if everywhere:
            until = (self._clock.now() + LASTS).timestamp()
            self._ended.add(session.digest, "", until)
        else:
            self._ended.add(session.digest, session.mark, session.until.timestamp())

    def csrf(self, token: str) -> str:
        """Return what the forms of a session carry."""
        return self._signer.csrf(token)


def _check(caller: Caller) -> None:
    if caller.admin or caller.role in _ROLES:
        return
    raise GatewayError(
        f"A key with the role `{caller.role}` opens no console.",
        status=403,
        code="role_not_allowed",
        mend="Use one with the role `viewer`, `member` or `approver`, or an admin key.",
    )
