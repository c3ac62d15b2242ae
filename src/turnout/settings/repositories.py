"""The repositories that a service works on, built from `[service]`."""

from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from turnout.core.service.repositories import (
    RepositoryAccess,
    RepositoryBook,
    check_name,
    check_server,
)
from turnout.errors import ConfigError, UsageError
from turnout.settings.tables import RepositoryTable

__all__ = ["book_of"]


def book_of(repositories: Mapping[str, RepositoryTable], servers: Sequence[str]) -> RepositoryBook:
    """Return the repositories; `ConfigError` for one that nobody could name, read or push to."""
    try:
        for name in repositories:
            check_name(name)
        for server in servers:
            check_server(server)
    except UsageError as error:
        raise ConfigError(f"`service`: {error.message}", mend=error.mend) from error
    named = {name: _place(name, table) for name, table in repositories.items()}
    access = {name: _access(name, table) for name, table in repositories.items()}
    return RepositoryBook(named, tuple(servers), access)


def _place(name: str, table: RepositoryTable) -> str:
    """Return where a repository is; `ConfigError` for a path that depends on the folder."""
    if (table.url is None) == (table.path is None):
        raise ConfigError(f"`service.repositories.{name}` takes either a `url` or a `path`.")
    if table.url is not None and "://" in table.url:
        _check_login(name, table.url)
        return table.url
    place = table.path or table.url or ""
    if table.url is not None or not Path(place).is_absolute():
        raise ConfigError(
            f"`service.repositories.{name}` is {place!r}.", mend="Write an absolute path or a URL."
        )
    return str(Path(place).resolve())


def _check_login(name: str, url: str) -> None:
    """Refuse (`ConfigError`) a secret in a URL: everybody on the machine reads git's arguments."""
    parts = urlsplit(url)
    login = parts.netloc.rpartition("@")[0]
    if ":" in login or (login and parts.scheme in ("https", "http")):
        raise ConfigError(
            f"The URL of `service.repositories.{name}` holds a user or a password.",
            mend="Leave them out, and name the variable that holds a token: `credential_env`.",
        )


def _access(name: str, table: RepositoryTable) -> RepositoryAccess:
    variable, url = table.credential_env or "", table.url or ""
    if variable and not _is_guarded(url):
        raise ConfigError(
            f"`service.repositories.{name}` has a `credential_env`, and no https URL.",
            mend="A token is sent over https only; to a folder of this machine it leads nowhere.",
        )
    if table.push and url and not variable:
        raise ConfigError(
            f"`service.repositories.{name}` is to be pushed to, with no `credential_env`.",
            mend="Name the variable that holds a token which may push branches there.",
        )
    return RepositoryAccess(variable, table.push)


def _is_guarded(url: str) -> bool:
    """Whether nobody on the way can read what is sent to a URL."""
    parts = urlsplit(url)
    if "@" in parts.netloc:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and _is_here(parts.hostname or ""))


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
