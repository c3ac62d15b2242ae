"""How a provider is opened that takes more than a key in a header."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from turnout.gateway.catalog import Provider

__all__ = ["Authenticator", "Prepared"]


class Prepared(NamedTuple):
    """A request as it goes out."""

    url: str
    headers: Mapping[str, str]
    body: bytes


class Authenticator(Protocol):
    """One kind of cloud account."""

    async def prepare(
        self, provider: Provider, url: str, headers: Mapping[str, str], body: bytes
    ) -> Prepared:
        """Return the request as the account wants it; `UpstreamError` where it has no access.

        `url` is the base URL with the shape's path, `headers` have lower-case names and no key;
        `body` is empty for a GET.
        """
        ...
