"""What the user's own pip is told about where packages come from."""

import ast
import asyncio
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from turnout.sandbox.workspace.process import run_program

__all__ = ["PackagePlace", "PipSettings", "ask_pip", "merged", "read_settings"]

_TIMEOUT = 30.0
_LINE = re.compile(r"(global|install|:env:)\.([A-Za-z_-]+)=(.*)")
_SECTIONS: Final = ("global", "install", ":env:")
"""In pip's own order: the last that says something counts."""
_DEFAULT_INDEX = re.compile(r"--index-url\s.*?\(default\s+(\S+?)\)", re.DOTALL)
_KEPT: Final = (
    *("default-timeout", "timeout", "retries", "pre", "prefer-binary", "only-binary", "no-binary"),
)


@dataclass(frozen=True, slots=True)
class PackagePlace:
    """An index, or a page or folder with links to packages."""

    url: str = field(repr=False)
    """As it was set: it may hold credentials."""

    @property
    def folder(self) -> str:
        """The path of a local one; empty where it is not local."""
        parts = self._parts
        if parts.scheme == "file":
            return unquote(parts.path)
        return "" if parts.scheme else self.url

    @property
    def host(self) -> str:
        """The host, in lower case; empty where it is local."""
        return self._parts.hostname or ""

    @property
    def port(self) -> int:
        """The port; 0 where it is local or the URL makes no sense."""
        try:
            port = self._parts.port
        except ValueError:
            return 0
        return port or {"https": 443, "http": 80}.get(self._parts.scheme, 0)

    @property
    def encrypted(self) -> bool:
        """Whether it is spoken to over TLS."""
        return self._parts.scheme == "https"

    @property
    def credentials(self) -> tuple[str, str]:
        """User name and password; empty ones where there are none."""
        return unquote(self._parts.username or ""), unquote(self._parts.password or "")

    @property
    def bare(self) -> str:
        """The URL without credentials."""
        return self.with_credentials("")

    def with_credentials(self, credentials: str) -> str:
        """Return the URL with other credentials, which are escaped already."""
        parts = self._parts
        host = parts.netloc.rpartition("@")[2]
        netloc = f"{credentials}@{host}" if credentials else host
        return urlunsplit((parts.scheme, netloc, parts.path, parts.query, parts.fragment))

    @property
    def _parts(self) -> SplitResult:
        try:
            return urlsplit(self.url)
        except ValueError:
            return SplitResult("invalid", "", "", "", "")


@dataclass(frozen=True, slots=True)
class PipSettings:
    """Where packages come from, and how they are chosen."""

    indexes: tuple[PackagePlace, ...] = ()
    """The index, then the extra ones; none where they are switched off."""
    links: tuple[PackagePlace, ...] = ()
    trusted: tuple[str, ...] = ()
    """Hosts, some with ports, whose certificates are not looked at."""
    certificates: str | None = None
    """File with the certificate authorities that count."""
    client_certificate: bool = False
    proxy: bool = False
    constraints: tuple[str, ...] = ()
    """Files or URLs."""
    others: tuple[tuple[str, str], ...] = ()
    """Further settings of the `[global]` section."""

    @property
    def places(self) -> tuple[PackagePlace, ...]:
        """All of them."""
        return (*self.indexes, *self.links)


async def ask_pip() -> PipSettings:
    """Ask the pip that belongs to our own Python, run as the user.

    A machine without pip has no settings, and then there is no index either.
    """
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    listed, helped = await asyncio.gather(
        run_program([*pip, "config", "list"], timeout=_TIMEOUT),
        run_program([*pip, "install", "--help"], timeout=_TIMEOUT),
    )
    found = _DEFAULT_INDEX.search(helped.stdout.decode(errors="replace"))
    default = {} if found is None else {"index-url": found[1]}
    return read_settings({**default, **merged(listed.stdout.decode(errors="surrogateescape"))})


def merged(listing: str) -> dict[str, str]:
    """Read what `pip config list` prints: one setting a line, its value a literal of Python."""
    found: dict[str, dict[str, str]] = {section: {} for section in _SECTIONS}
    for line in listing.splitlines():
        setting = _LINE.fullmatch(line)
        if setting is None:
            continue
        try:
            value = ast.literal_eval(setting[3])
        except (ValueError, SyntaxError):
            continue
        found[setting[1]][setting[2].lower().replace("_", "-")] = str(value)
    return {name: value for section in _SECTIONS for name, value in found[section].items()}


def read_settings(settings: Mapping[str, str]) -> PipSettings:
    """Understand settings by the names that pip's configuration files have for them."""
    indexes = [*_words(settings, "index-url")[:1], *_words(settings, "extra-index-url")]
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        indexes = []
    return PipSettings(
        indexes=_places(indexes),
        links=_places(_words(settings, "find-links")),
        trusted=tuple(_words(settings, "trusted-host")),
        certificates=settings.get("cert") or None,
        client_certificate="client-cert" in settings,
        proxy=bool(settings.get("proxy")),
        constraints=tuple(_words(settings, "constraint")),
        others=tuple((name, settings[name]) for name in _KEPT if name in settings),
    )


def _words(settings: Mapping[str, str], name: str) -> Sequence[str]:
    return settings.get(name, "").split()


def _places(urls: Sequence[str]) -> tuple[PackagePlace, ...]:
    return tuple(map(PackagePlace, dict.fromkeys(urls)))
