"""From the tables of forges to what the service takes."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final

from turnout.core.service.forges import Forge
from turnout.errors import ConfigError
from turnout.gateway.config.addresses import http_address, variable_of_key
from turnout.settings.tables import ForgeTable

__all__ = ["forges_of"]

_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?")
_PATH: Final = re.compile(r"[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)+")
_DOTS: Final = frozenset({".", ".."})


def forges_of(tables: Mapping[str, ForgeTable]) -> Mapping[str, Forge]:
    """Return the forges by name; `ConfigError` names the key that is wrong."""
    forges = {name: _forge(name, table) for name, table in tables.items()}
    ours = Counter(name for forge in forges.values() for name in forge.repositories.values())
    for name, places in ours.items():
        if places > 1:
            raise ConfigError(
                f"`service.forges` has {places} places for the repository {name!r}.",
                mend="Give each a name of its own under `[service.repositories]`: a draft is "
                "opened at one place.",
            )
    return forges


def _forge(name: str, table: ForgeTable) -> Forge:
    where = f"service.forges.{name}"
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"`{where}` cannot be the name of a forge.",
            mend="A name is 1 to 32 small letters, digits and `-`, such as `github`.",
        )
    for path in table.repositories:
        _check_path(where, table, path)
    if table.label == table.review_label:
        raise ConfigError(f"`{where}` has one label for two kinds of work.")
    return Forge(
        name=name,
        kind=table.kind,
        api=_api(where, table.api),
        secret_variable=_variable(f"{where}.secret_env", table.secret_env),
        token_variable=_variable(f"{where}.token_env", table.token_env),
        key=table.key,
        repositories=dict(table.repositories),
        fix_label=table.label,
        review_label=table.review_label,
        starters=table.starters,
    )


def _check_path(where: str, table: ForgeTable, path: str) -> None:
    parts = path.split("/")
    usual = table.kind == "gitlab" or len(parts) == 2
    if not _PATH.fullmatch(path) or _DOTS & set(parts) or not usual:
        raise ConfigError(
            f"`{where}.repositories` names {path[:200]!r}, which is no repository of a forge.",
            mend='Write its path there and its name here: `{"acme/shop" = "shop"}`.',
        )


def _api(where: str, text: str) -> str:
    try:
        return http_address(text)
    except ValueError as error:
        wrong = str(error).partition(", such as")[0]
        raise ConfigError(
            f"`{where}.api` {wrong}.",
            mend="Write the base URL of its API: it ends with `/api/v3` at a GitHub of your own, "
            "with `/api/v4` at a GitLab.",
        ) from error


def _variable(where: str, text: str) -> str:
    try:
        return variable_of_key(text)
    except ValueError as error:
        raise ConfigError(f"`{where}` {error}.") from error
