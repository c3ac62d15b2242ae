"""Requests of the known shapes, as cloud accounts want them otherwise."""

from collections.abc import Mapping

import orjson

from turnout.core.json import JsonObject, as_text
from turnout.gateway.catalog import Provider
from turnout.gateway.exchange import UpstreamError

__all__ = ["body_of", "fields", "option", "path_of"]


def path_of(provider: Provider, url: str) -> str:
    """Return what a shape has added to the base URL, such as `/messages`."""
    return url.removeprefix(provider.base_url.rstrip("/"))


def body_of(body: bytes, *without: str, **added: object) -> bytes:
    """Return a JSON body with fields left out, and others added that it does not have."""
    read = fields(body)
    kept = {name: value for name, value in read.items() if name not in without}
    return orjson.dumps({**added, **kept})


def fields(body: bytes) -> JsonObject:
    """Return the fields of a body that was made here."""
    read = orjson.loads(body) if body else {}
    return read if isinstance(read, dict) else {}


def option(provider: Provider, name: str) -> str:
    """Return an option of the account; `UpstreamError` where it is not set."""
    options: Mapping[str, str] = provider.account.options if provider.account else {}
    if not options.get(name):
        raise UpstreamError(f"has no `account.{name}` in the catalog", status=None)
    return as_text(options[name])
