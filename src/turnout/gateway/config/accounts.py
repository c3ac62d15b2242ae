"""The table `[providers.NAME.account]`: the cloud account through which a provider is reached."""

from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

from turnout.errors import ConfigError
from turnout.gateway.catalog import Account
from turnout.gateway.config.tables import close_match

__all__ = ["read_account"]

_Kind = Literal["azure", "bedrock", "vertex"]

_NEEDED: Final[Mapping[_Kind, frozenset[str]]] = {
    "azure": frozenset(),
    "bedrock": frozenset({"region"}),
    "vertex": frozenset({"project", "region"}),
}
_OPTIONAL: Final[Mapping[_Kind, frozenset[str]]] = {
    "azure": frozenset({"api_version", "authority", "client_id", "scope", "tenant"}),
    "bedrock": frozenset({"access_key_id", "profile"}),
    "vertex": frozenset({"key_file"}),
}
"""What each kind of account can be told; a secret is what the provider's `api_key_env` holds."""


def read_account(table: Mapping[str, Any] | None, where: str) -> Account | None:
    """Return the account that a table describes; None where there is none.

    `ConfigError` names the key below `where` that is wrong.
    """
    if table is None:
        return None
    kind = next((each for each in get_args(_Kind) if each == table.get("kind")), None)
    if kind is None:
        kinds = ", ".join(f'"{each}"' for each in get_args(_Kind))
        raise ConfigError(f"`{where}.kind` is no kind of account.", mend=f"Write one of {kinds}.")
    options = {name: value for name, value in table.items() if name != "kind"}
    known = sorted(_NEEDED[kind] | _OPTIONAL[kind])
    for name, value in options.items():
        if name not in known:
            raise ConfigError(f"`{where}.{name}` is no key.", mend=close_match(name, known))
        if not isinstance(value, str) or not value.strip():
            raise ConfigError(f"`{where}.{name}` must be text.")
    if missing := sorted(_NEEDED[kind] - set(options)):
        raise ConfigError(f"`{where}.{missing[0]}` is missing.", mend="Add it.")
    return Account(kind, options)
