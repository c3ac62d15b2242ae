"""Azure OpenAI: a resource's address, an API version, a key or a token of Entra ID."""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

import aiohttp

from turnout.core.clock import Clock
from turnout.core.json import as_object, as_text
from turnout.gateway.catalog import Provider
from turnout.gateway.exchange import UpstreamError
from turnout.gateway.providers.accounts.requests import body_of, fields, path_of
from turnout.gateway.providers.accounts.tokens import Token, TokenError, Tokens
from turnout.gateway.providers.authenticator import Prepared

__all__ = ["AzureAccount", "EntraSource", "open_account"]

_DATED: Final = re.compile(r"\d{4}-\d{2}-\d{2}(-preview)?")
_OF_DEPLOYMENTS: Final = frozenset({"/chat/completions"})
"""Paths that name the deployment, in the dated versions of the API."""

_AUTHORITY: Final = "https://login.microsoftonline.com"
_SCOPE: Final = "https://cognitiveservices.azure.com/.default"
_SECONDS: Final = 20.0


class AzureAccount:
    """An `Authenticator`.

    With a dated `api_version` addresses have the form `/openai/deployments/NAME/…`; with `v1`,
    `preview`, or none, that of `/openai/v1/…`. The deployment's upstream name is the name that it
    has at Azure.
    """

    def __init__(self, tokens: Tokens | None = None) -> None:
        self._tokens = tokens

    async def prepare(
        self, provider: Provider, url: str, headers: Mapping[str, str], body: bytes
    ) -> Prepared:
        """Return the request with Azure's address, and its key or token."""
        options: Mapping[str, str] = provider.account.options if provider.account else {}
        if not provider.exact_path:
            url, body = _address(provider, url, body, options.get("api_version", ""))
        if self._tokens is not None:
            access = {"authorization": f"Bearer {await self._tokens.value()}"}
        elif provider.api_key:
            access = {"api-key": provider.api_key}
        else:
            raise UpstreamError("has neither a key nor an identity to ask for a token", status=401)
        return Prepared(url, {**headers, **access}, body)


def _address(provider: Provider, url: str, body: bytes, version: str) -> tuple[str, bytes]:
    base, path = provider.base_url.rstrip("/"), path_of(provider, url)
    base = base.removesuffix("/v1").removesuffix("/openai")
    if _DATED.fullmatch(version) is None:
        query = "" if version in {"", "v1"} else f"?api-version={quote(version)}"
        return f"{base}/openai/v1{path}{query}", body
    query = f"?api-version={version}"
    if path not in _OF_DEPLOYMENTS:
        return f"{base}/openai{path}{query}", body
    name = quote(as_text(fields(body).get("model")), safe="")
    return f"{base}/openai/deployments/{name}{path}{query}", body_of(body, "model")


class EntraSource:
    """Tokens of an application registered in Entra ID, by its client secret."""

    def __init__(
        self, tenant: str, client: str, secret: str, *, authority: str = "", scope: str = ""
    ) -> None:
        root = (authority or _AUTHORITY).rstrip("/")
        self._url = f"{root}/{quote(tenant, safe='')}/oauth2/v2.0/token"
        self._form = {
            "grant_type": "client_credentials",
            "client_id": client,
            "client_secret": secret,
            "scope": scope or _SCOPE,
        }

    async def fetch(self) -> Token:
        """Return a fresh token; `TokenError` where the directory gives none."""
        timeout = aiohttp.ClientTimeout(total=_SECONDS)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.post(self._url, data=self._form, allow_redirects=False) as answer,
            ):
                read = as_object(await answer.json(content_type=None))
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise TokenError("Entra ID did not answer") from error
        token, seconds = as_text(read.get("access_token")), read.get("expires_in")
        if not token:
            code = as_text(read.get("error"))[:64]
            raise TokenError(f"Entra ID answered {answer.status} {code}".strip())
        # Older endpoints write the number as text.
        return Token(token, float(seconds) if isinstance(seconds, int | str) else 300.0)


def open_account(provider: Provider, clock: Clock) -> AzureAccount:
    """Return the adapter of one provider: tokens where `tenant` and `client_id` are set, else keys.

    The client secret is what the provider's `api_key_env` holds.
    """
    options: Mapping[str, str] = provider.account.options if provider.account else {}
    tenant, client = options.get("tenant", ""), options.get("client_id", "")
    if not (tenant and client):
        return AzureAccount()
    source = EntraSource(
        tenant,
        client,
        provider.api_key,
        authority=options.get("authority", ""),
        scope=options.get("scope", ""),
    )
    return AzureAccount(Tokens(source, clock))
