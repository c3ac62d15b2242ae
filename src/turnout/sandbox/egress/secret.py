"""Values that never enter a sandbox: put in for their placeholders on the way out, taken out again.

Inside there is a placeholder, random for each run. In the header fields of a request to the host
that a secret is bound to, over TLS, it becomes the value; nowhere else, so never in a body or in a
URL. Where that host's answer holds the value, it becomes the placeholder: as it is, escaped for a
URL or for JSON, and in Base64, whatever stands before it. A host can still give away what it knows
in a form that nobody searches for: a secret is bound to a host that may have it.
"""

import base64
import binascii
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote, quote_plus

from turnout.errors import ConfigError
from turnout.sandbox.base import BoundSecret
from turnout.sandbox.egress.rules import canonical_host
from turnout.sandbox.egress.wire.http import Headers

__all__ = ["HostSecrets", "PlacedSecret", "Scrubber", "place"]

_SHORTEST = 8
_LONGEST = 4_096
_LONGEST_CREDENTIALS = 2 * _LONGEST
_RANDOM_BYTES = 16
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_BASIC = re.compile(rb"(basic +)([A-Za-z0-9+/]+={0,2})", re.IGNORECASE)
_KEPT_FIELDS = frozenset({b"host", b"content-length", b"expect"})
_BASE64_BITS = 6
"""Of one character."""


@dataclass(frozen=True, slots=True)
class PlacedSecret:
    """A bound secret and what stands for it inside."""

    variable: str
    host: str
    placeholder: bytes
    value: bytes = field(repr=False)


def place(secret: BoundSecret) -> PlacedSecret:
    """Return a secret with a placeholder of its own; `ConfigError` where it cannot be bound."""
    try:
        host = canonical_host(secret.host)
    except ValueError as error:
        raise ConfigError(
            f"A secret cannot be bound to {secret.host!r}: {error}.",
            mend="Bind it to the exact name of one host.",
        ) from None
    if not _VARIABLE.fullmatch(secret.variable):
        raise ConfigError(
            f"{secret.variable!r} cannot name a secret.",
            mend="Use letters, digits and underscores, as for an environment variable.",
        )
    value = secret.value
    fits = _SHORTEST <= len(value.encode()) <= _LONGEST
    if not fits or not value.isprintable() or value != value.strip():
        raise ConfigError(
            f"The value of {secret.variable} cannot be kept secret.",
            mend=f"It needs {_SHORTEST} to {_LONGEST} bytes on one line, no space around them.",
        )
    placeholder = f"turnout-secret-{secrets.token_hex(_RANDOM_BYTES)}"
    return PlacedSecret(secret.variable, host, placeholder.encode(), value.encode())


class HostSecrets:
    """The secrets bound to one host, for one request to it."""

    def __init__(self, placed: Sequence[PlacedSecret]) -> None:
        self._placed = tuple(placed)
        self._echoes: dict[bytes, bytes] = {}
        for secret in placed:
            self._echoes |= dict.fromkeys(_spellings(secret.value), secret.placeholder)

    def put_in(self, headers: Headers) -> tuple[Headers, tuple[str, ...]]:
        """Return the fields with values in place of placeholders, and the variables of these."""
        used: dict[str, None] = {}
        changed = [
            (name, value if name.lower() in _KEPT_FIELDS else self._put_in(value, used))
            for name, value in headers
        ]
        return changed, tuple(used)

    def _put_in(self, value: bytes, used: dict[str, None]) -> bytes:
        basic = _BASIC.fullmatch(value)
        if basic is None:
            return self._replace(value, used)
        try:
            credentials = base64.b64decode(basic[2], validate=True)
        except binascii.Error:
            return value
        changed = self._replace(credentials, used)
        if changed == credentials:
            return value
        encoded = base64.b64encode(changed)
        if len(encoded) <= _LONGEST_CREDENTIALS:
            self._echoes[encoded] = basic[2]
        return basic[1] + encoded

    def _replace(self, text: bytes, used: dict[str, None]) -> bytes:
        for secret in self._placed:
            if secret.placeholder in text:
                used[secret.variable] = None
                text = text.replace(secret.placeholder, secret.value)
        return text

    def scrub(self, headers: Headers) -> Headers:
        """Return the fields of an answer without the values."""
        scrubber = self.scrubber()
        return [(name, scrubber.feed(value) + scrubber.finish()) for name, value in headers]

    def scrubber(self) -> "Scrubber":
        """Return what takes the values out of a stream."""
        return Scrubber(self._echoes)


def _spellings(value: bytes) -> set[bytes]:
    """Return the forms in which an echo of a value is recognised."""
    forms = {value, quote(value, safe="").encode(), quote_plus(value).encode()}
    for ascii_only in (True, False):
        escaped = json.dumps(value.decode(), ensure_ascii=ascii_only)[1:-1]
        forms |= {escaped.encode(), escaped.replace("/", "\\/").encode()}
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        forms |= {_core(encode(b"\0" * before + value), before, value) for before in range(3)}
    return forms


def _core(encoded: bytes, before: int, value: bytes) -> bytes:
    """Return the characters of a Base64 text that depend on the value alone."""
    first = -(-8 * before // _BASE64_BITS)
    last = 8 * (before + len(value)) // _BASE64_BITS
    return encoded[first:last]


class Scrubber:
    """Replaces byte strings in a stream, whatever pieces it comes in.

    The leftmost match counts, at one place the longest. Only what may be the beginning of a match
    is held back.
    """

    def __init__(self, replacements: Mapping[bytes, bytes]) -> None:
        needles = sorted(replacements, key=len, reverse=True)
        self._needles = tuple(needles)
        self._pattern = re.compile(b"|".join(map(re.escape, needles)))
        self._replacements = dict(replacements)
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Return what can be passed on after a piece of the stream."""
        return self._replace(self._held + data, ended=False)

    def finish(self) -> bytes:
        """Return the rest at the end of the stream."""
        return self._replace(self._held, ended=True)

    def _replace(self, data: bytes, *, ended: bool) -> bytes:
        done, out = 0, []
        hold = len(data) if ended else self._may_begin(data, 0)
        # Most data holds none of them, which is found out faster one by one than by the pattern.
        some = any(needle in data for needle in self._needles)
        while some and (match := self._pattern.search(data, done)) and match.start() < hold:
            out += [data[done : match.start()], self._replacements[match[0]]]
            done = match.end()
            if done > hold:
                hold = self._may_begin(data, done)
        out.append(data[done:hold])
        self._held = data[hold:]
        return b"".join(out)

    def _may_begin(self, data: bytes, start: int) -> int:
        """Return where the data's end may be the beginning of a match; its length if nowhere."""
        earliest = len(data)
        for needle in self._needles:
            at = data.find(needle[:1], max(start, len(data) - len(needle) + 1), earliest)
            while at >= 0 and not needle.startswith(data[at:]):
                at = data.find(needle[:1], at + 1, earliest)
            if at >= 0:
                earliest = at
        return earliest
