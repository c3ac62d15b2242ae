"""Models of Vertex AI: Anthropic's by their own API, others by the OpenAI-compatible one."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

import google.auth
import google.auth.transport.requests
from google.auth.exceptions import GoogleAuthError
from google.oauth2 import service_account

from turnout.core.clock import Clock
from turnout.core.json import as_text
from turnout.gateway.catalog import Provider
from turnout.gateway.exchange import UpstreamError
from turnout.gateway.providers.accounts.requests import body_of, fields, option, path_of
from turnout.gateway.providers.accounts.tokens import Token, TokenError, Tokens
from turnout.gateway.providers.authenticator import Prepared

__all__ = ["GoogleSource", "VertexAccount", "open_account"]

_SCOPES: Final = ("https://www.googleapis.com/auth/cloud-platform",)
_AN_HOUR: Final = 3_600.0
_VERSION: Final = "vertex-2023-10-16"


class VertexAccount:
    """An `Authenticator`; the base URL ends with `/v1`."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    async def prepare(
        self, provider: Provider, url: str, headers: Mapping[str, str], body: bytes
    ) -> Prepared:
        """Return the request with the project's address and a token."""
        if not provider.exact_path:
            url, body = _address(provider, path_of(provider, url), body)
        kept = {name: value for name, value in headers.items() if name != "anthropic-version"}
        return Prepared(
            url, {**kept, "authorization": f"Bearer {await self._tokens.value()}"}, body
        )


def _address(provider: Provider, path: str, body: bytes) -> tuple[str, bytes]:
    project, region = option(provider, "project"), option(provider, "region")
    home = (
        f"{provider.base_url.rstrip('/')}/projects/{quote(project, safe='')}"
        f"/locations/{quote(region, safe='')}"
    )
    models = f"{home}/publishers/anthropic/models"
    if path == "/chat/completions":
        return f"{home}/endpoints/openapi{path}", body
    if path == "/messages":
        read = fields(body)
        verb = "streamRawPredict" if read.get("stream") else "rawPredict"
        name = quote(as_text(read.get("model")), safe="@")
        return f"{models}/{name}:{verb}", body_of(body, "model", anthropic_version=_VERSION)
    if path == "/messages/count_tokens":
        return f"{models}/count-tokens:rawPredict", body_of(body, anthropic_version=_VERSION)
    raise UpstreamError(f"has no {path} at Vertex AI", status=None)


class GoogleSource:
    """Tokens of a service account's key file, or of whoever runs the gateway."""

    def __init__(self, key_file: str = "") -> None:
        self._key_file = key_file
        self._credentials: google.auth.credentials.Credentials | None = None

    async def fetch(self) -> Token:
        """Return a fresh token; `TokenError` where there is no identity, or none is given."""
        return await asyncio.to_thread(self._fetch)

    def _fetch(self) -> Token:
        try:
            if self._credentials is None:
                self._credentials = self._load()
            self._credentials.refresh(google.auth.transport.requests.Request())
        except (GoogleAuthError, OSError, ValueError) as error:
            raise TokenError(f"Google gives no token ({type(error).__name__})") from error
        ends = self._credentials.expiry
        # Google's library counts in UTC without saying so.
        now = datetime.now(UTC).replace(tzinfo=None)
        left = _AN_HOUR if ends is None else (ends - now).total_seconds()
        return Token(str(self._credentials.token), left)

    def _load(self) -> google.auth.credentials.Credentials:
        if self._key_file:
            return service_account.Credentials.from_service_account_file(
                self._key_file, scopes=_SCOPES
            )
        credentials, _ = google.auth.default(scopes=_SCOPES)
        return credentials


def open_account(provider: Provider, clock: Clock) -> VertexAccount:
    """Return the adapter of one provider; `key_file` is an option of its account."""
    options: Mapping[str, str] = provider.account.options if provider.account else {}
    return VertexAccount(Tokens(GoogleSource(options.get("key_file", "")), clock))
