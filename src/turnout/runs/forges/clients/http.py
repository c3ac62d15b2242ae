"""Requests to the API of one forge: to its configured address and nowhere else."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

import aiohttp
import orjson
from yarl import URL

from turnout.core.json import JsonObject, JsonValue, as_object, as_objects, as_text, read_json
from turnout.core.service.forges import Forge
from turnout.errors import ForgeError
from turnout.runs.forges.ports import Secrets

__all__ = ["PAGE", "Answer", "ForgeHttp", "commit_id", "web_address"]

PAGE: Final = 100
"""Items of one page of a list."""
_MOST_PAGES: Final = 10

Params = Mapping[str, str | int]

_TIMEOUT: Final = aiohttp.ClientTimeout(total=20.0, sock_connect=5.0)
_LARGEST: Final = 8 * 2**20
_CONNECTIONS: Final = 8
_PASSING: Final = frozenset({401, 403, 408, 425, 429})
"""Refusals that end by themselves, or once somebody has mended the token."""
_SHOWN: Final = 300
_LONGEST_ADDRESS: Final = 2_000
_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a forge answered, good or bad."""

    status: int
    body: bytes = field(repr=False)

    @property
    def good(self) -> bool:
        """Whether it did as asked."""
        return 200 <= self.status < 300

    def json(self) -> JsonValue:
        """Return what its JSON says; `ForgeError` where it is none."""
        try:
            return read_json(self.body)
        except orjson.JSONDecodeError:
            raise ForgeError("The forge answered with what is no JSON.", passing=True) from None

    def refusal(self, what: str) -> ForgeError:
        """Return the error that says what the forge did not do, in its own words where it has any.

        They are cut short, and hold no more than printable text.
        """
        said = ""
        with suppress(ForgeError):
            body = as_object(self.json())
            said = as_text(body.get("message")) or as_text(body.get("error"))
        plain = "".join(c for c in said if c.isprintable())[:_SHOWN]
        because = f": {plain}" if plain else ""
        passing = self.status in _PASSING or self.status >= 500
        mend = "Does the token grant it?" if self.status in {401, 403, 404} else ""
        text = f"{what} failed with {self.status}{because}".rstrip(".")
        return ForgeError(f"{text}.", mend=mend, passing=passing)


class ForgeHttp:
    """Asks one forge; use it inside `async with`.

    No redirect is followed and no proxy or cookie of the environment is used. The token is read
    from its variable for each request.
    """

    def __init__(self, forge: Forge, secrets: Secrets, headers: Mapping[str, str]) -> None:
        """`headers` go with each request; `{token}` in them stands for the token."""
        self._forge = forge
        self._secrets = secrets
        self._headers = headers
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=_CONNECTIONS),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=_TIMEOUT,
            trust_env=False,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def get(self, path: str, *, accept: str = "", params: Params | None = None) -> Answer:
        """Read what is at a path, whose parts are quoted already."""
        headers = {"accept": accept} if accept else {}
        return await self._send("GET", path, headers=headers, params=params)

    async def listed(self, path: str, what: str, params: Params) -> list[JsonObject]:
        """Read a list page by page, at most a thousand; `what` says in a refusal what was done."""
        found: list[JsonObject] = []
        for page in range(1, _MOST_PAGES + 1):
            answer = await self.get(path, params={**params, "per_page": PAGE, "page": page})
            if not answer.good:
                raise answer.refusal(what)
            some = as_objects(answer.json())
            found += some
            if len(some) < PAGE:
                break
        return found

    async def post(self, path: str, body: JsonObject) -> Answer:
        """Make something at a path, whose parts are quoted already."""
        sent = {"content-type": "application/json"}
        return await self._send("POST", path, headers=sent, data=orjson.dumps(body))

    async def _send(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str],
        params: Params | None = None,
        data: bytes | None = None,
    ) -> Answer:
        # As it is written: a slash inside of a part stays quoted.
        url = URL(f"{self._forge.api}{path}", encoded=True)
        if params:
            url = url.with_query(params)
        options: dict[str, Any] = {"headers": {**self._own(), **headers}, "data": data}
        try:
            async with self._open.request(method, url, allow_redirects=False, **options) as answer:
                return Answer(answer.status, await _body(answer))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ForgeError(
                f"The forge {self._forge.name} cannot be reached: {type(error).__name__}.",
                passing=True,
            ) from None

    def _own(self) -> dict[str, str]:
        token = (self._secrets(self._forge.token_variable) or "").strip()
        if not token or not token.isascii() or not token.isprintable():
            raise ForgeError(
                f"{self._forge.token_variable} holds no token for the forge {self._forge.name}.",
                mend="Set it for `turnout serve`.",
                passing=True,
            )
        return {name: text.replace("{token}", token) for name, text in self._headers.items()}

    @property
    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("ForgeHttp is used inside `async with`.")
        return self._session


def web_address(found: JsonValue) -> str:
    """Return the address of something at the forge; `ForgeError` for what is none to be shown."""
    text = as_text(found)
    shape = text.startswith(("https://", "http://")) and len(text) <= _LONGEST_ADDRESS
    if not shape or not text.isascii() or any(c in text for c in " \t\r\n<>()[]`\"'"):
        raise ForgeError("The forge answered without the address of what it made.", passing=True)
    return text


def commit_id(found: JsonValue) -> str:
    """Return the full id of a commit; `ForgeError` for what is none."""
    text = as_text(found)
    if not _COMMIT.fullmatch(text):
        raise ForgeError("The forge answered without the id of a commit.", passing=True)
    return text


async def _body(answer: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in answer.content.iter_chunked(1 << 16):
        body += chunk
        if len(body) > _LARGEST:
            raise ForgeError(f"The forge's answer is larger than {_LARGEST >> 20} MiB.")
    return bytes(body)
