"""Models of Amazon Bedrock: Anthropic's by InvokeModel, others by the OpenAI-compatible API."""

import asyncio
from collections.abc import Mapping
from typing import Final, Protocol
from urllib.parse import quote

import botocore.session
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import BotoCoreError

from turnout.core.clock import Clock
from turnout.core.json import as_text
from turnout.gateway.catalog import Provider
from turnout.gateway.exchange import UpstreamError
from turnout.gateway.providers.accounts.requests import body_of, fields, option, path_of
from turnout.gateway.providers.authenticator import Prepared

__all__ = ["BedrockAccount", "Credentials", "open_account"]

_VERSION: Final = "bedrock-2023-05-31"
_OF_HEADERS: Final = frozenset({"anthropic-beta", "anthropic-version"})
"""What this API takes in the body instead."""
_SERVICE: Final = "bedrock"


class Credentials(Protocol):
    """Whoever has the keys that requests are signed with."""

    def current(self) -> ReadOnlyCredentials | None:
        """Return them, fetched anew where they have expired; it may block. None: there are none."""
        ...


class BedrockAccount:
    """An `Authenticator`; the base URL is that of `bedrock-runtime` alone.

    Without credentials the provider's key is a Bedrock API key, sent as a bearer token.
    """

    def __init__(self, credentials: Credentials | None) -> None:
        self._credentials = credentials

    async def prepare(
        self, provider: Provider, url: str, headers: Mapping[str, str], body: bytes
    ) -> Prepared:
        """Return the request with the model's address, and signed or with the API key."""
        if provider.exact_path:
            sent = Prepared(url, headers, body)
        else:
            sent = _address(provider, path_of(provider, url), headers, body)
        if self._credentials is None:
            access = {"authorization": f"Bearer {provider.api_key}"}
        else:
            access = await asyncio.to_thread(self._signed, provider, sent)
        return sent._replace(headers={**sent.headers, **access})

    def _signed(self, provider: Provider, sent: Prepared) -> dict[str, str]:
        region = option(provider, "region")
        try:
            keys = self._credentials.current() if self._credentials is not None else None
        except BotoCoreError as error:
            said = f"gave no access: {type(error).__name__}"
            raise UpstreamError(said, status=401) from error
        if keys is None:
            raise UpstreamError("has no AWS credentials to sign with", status=401)
        signed = {"content-type": sent.headers["content-type"]}
        request = AWSRequest("POST" if sent.body else "GET", sent.url, signed, data=sent.body)
        SigV4Auth(keys, _SERVICE, region).add_auth(request)
        return {name.lower(): value for name, value in request.headers.items()}


def _address(provider: Provider, path: str, headers: Mapping[str, str], body: bytes) -> Prepared:
    base = provider.base_url.rstrip("/")
    if path == "/chat/completions":
        return Prepared(f"{base}/openai/v1{path}", headers, body)
    if path != "/messages":
        raise UpstreamError(f"has no {path} at Bedrock", status=None)
    read = fields(body)
    streams = bool(read.get("stream"))
    verb = "invoke-with-response-stream" if streams else "invoke"
    # A colon stays as it is: clients may write it so, and the signature counts what was sent.
    name = quote(as_text(read.get("model")), safe=":")
    added: dict[str, object] = {"anthropic_version": _VERSION}
    if headers.get("anthropic-beta"):
        added["anthropic_beta"] = [b.strip() for b in headers["anthropic-beta"].split(",")]
    kept = {name: value for name, value in headers.items() if name not in _OF_HEADERS}
    kept["accept"] = "application/vnd.amazon.eventstream" if streams else "application/json"
    return Prepared(f"{base}/model/{name}/{verb}", kept, body_of(body, "model", "stream", **added))


class _Static:
    def __init__(self, access: str, secret: str) -> None:
        self._keys = ReadOnlyCredentials(access, secret, None)

    def current(self) -> ReadOnlyCredentials | None:
        return self._keys


class _Found:
    """What AWS's own tools would use: variables, a profile, the machine's role."""

    def __init__(self, profile: str) -> None:
        self._profile = profile or None
        self._session: botocore.session.Session | None = None

    def current(self) -> ReadOnlyCredentials | None:
        if self._session is None:
            self._session = botocore.session.Session(profile=self._profile)
        found = self._session.get_credentials()
        return None if found is None else found.get_frozen_credentials()


def open_account(provider: Provider, _: Clock) -> BedrockAccount:
    """Return the adapter of one provider.

    Option `access_key_id`: the provider's key is the secret that goes with it. A key alone is a
    Bedrock API key. Neither: what AWS's own tools would use, of the option `profile`.
    """
    options: Mapping[str, str] = provider.account.options if provider.account else {}
    if options.get("access_key_id"):
        return BedrockAccount(_Static(options["access_key_id"], provider.api_key))
    if provider.api_key:
        return BedrockAccount(None)
    return BedrockAccount(_Found(options.get("profile", "")))
