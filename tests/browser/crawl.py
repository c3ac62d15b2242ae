"""The pages that somebody reaches by following links, one of each kind."""

import re
from collections import deque
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Final
from urllib.parse import parse_qsl, urldefrag, urljoin, urlsplit

from playwright.async_api import APIRequestContext

__all__ = ["pages_of"]

_MOST: Final = 80
_SAME: Final = re.compile(
    r"(?<=^keys/)[^/_][^/]*|(?<=^policies/)[^/_][^/]*|[a-z]+-[0-9a-f]{8,}|\d+"
)
"""What tells pages of one kind apart."""


class _Links(HTMLParser):
    """Notes where links lead that open pages."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a link."""
        names = dict(attrs)
        if tag == "a" and "download" not in names:
            self.found.append(names.get("href") or "")


async def pages_of(http: APIRequestContext, url: str, *more: str) -> Sequence[str]:
    """Return the address of one page of each kind, below the console's.

    Those of `more` are all of them returned. A page that cannot be had is an error, and
    so are more than 80 kinds: then kinds are told apart by what is only data.
    """
    waiting = deque([*more, ""])
    found: dict[str, str] = {}
    while waiting:
        path = waiting.popleft()
        kind = path if path in more else _kind(path)
        if kind in found:
            continue
        answer = await http.get(urljoin(url, path))
        assert answer.status == 200, (path, answer.status)
        if "text/html" not in answer.headers.get("content-type", ""):
            continue
        found[kind] = path
        assert len(found) <= _MOST, sorted(found)
        links = _Links()
        links.feed(await answer.text())
        waiting += [_below(url, urljoin(answer.url, link)) for link in links.found]
    return list(found.values())


def _kind(path: str) -> str:
    """Return what pages have in common that differ in what they show alone."""
    place, _, query = path.partition("?")
    return "&".join([_SAME.sub("*", place), *sorted({name for name, _ in parse_qsl(query)})])


def _below(url: str, link: str) -> str:
    """Return where a link leads below the console; the first page for what leaves it."""
    there, base = urlsplit(urldefrag(link).url), urlsplit(url)
    if there.netloc != base.netloc or not there.path.startswith(base.path):
        return ""
    if there.query.startswith("project=eval%3A"):
        # A run that results tell of: it is wherever they were made.
        return ""
    return there._replace(scheme="", netloc="", path=there.path.removeprefix(base.path)).geturl()
