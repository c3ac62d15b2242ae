"""The tables `[connections.NAME]`: servers of tools that the gateway may call."""

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from turnout.core.govern.connections import Connection
from turnout.core.json import JsonObject
from turnout.errors import ConfigError
from turnout.gateway.config.addresses import http_address, sendable_key, variable_of_key
from turnout.gateway.config.tables import Rate, Table, read_table, shaped

__all__ = ["parse_connections"]

_Text = Annotated[str, Field(min_length=1)]
_Variable = Annotated[
    str, shaped(r"[A-Za-z_][A-Za-z0-9_]*", "the name of a variable: letters, digits and `_`")
]
_Secret = Annotated[str, AfterValidator(variable_of_key)]
_Header = Annotated[str, shaped(r"[A-Za-z0-9-]+", "a header's name: letters, digits and `-`")]
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_INHERITED: Final = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""Variables that every program is given."""


class _Connection(Table):
    url: Annotated[str, AfterValidator(http_address)] | None = None
    command: Annotated[list[_Text], Field(min_length=1)] | None = None
    token_env: _Secret | None = None
    headers: dict[_Header, _Text] = Field(default_factory=dict)
    headers_env: dict[_Header, _Secret] = Field(default_factory=dict)
    env: dict[_Variable, str] = Field(default_factory=dict)
    secret_env: list[_Secret] = Field(default_factory=list)
    allow: list[_Text] = Field(default_factory=list)
    read_only: bool = False
    timeout: Annotated[Rate, Field(le=600)] = 30.0
    longest_result: Annotated[int, Field(ge=200, le=1_000_000)] = 60_000


class _File(Table):
    connections: dict[_Text, _Connection] = Field(default_factory=dict)


def parse_connections(
    table: JsonObject, secret: Callable[[str], str | None]
) -> Mapping[str, Connection]:
    """Return the connections that `[connections]` describes, by name.

    `secret` gives the value of a variable. One that is not set is marked, and no error: it matters
    only to those who would use the connection. `ConfigError` names a wrong key.
    """
    read = read_table(_File, {"connections": table}, "")
    return {name: _connection(name, row, secret) for name, row in read.connections.items()}


def _connection(name: str, row: _Connection, secret: Callable[[str], str | None]) -> Connection:
    where = f"connections.{name}"
    if _NAME.fullmatch(name) is None:
        raise ConfigError(
            f"`{where}` is no name of a connection.",
            mend="Use letters, digits, `_` and `-`, at most 64.",
        )
    _check(row, where)
    wanted = {
        **{f"header {header}": variable for header, variable in row.headers_env.items()},
        **({"token": row.token_env} if row.token_env else {}),
        **{f"env {variable}": variable for variable in row.secret_env},
    }
    values = {use: _value(variable, secret) for use, variable in wanted.items()}
    headers = {header.lower(): value for header, value in row.headers.items()}
    headers |= {h.lower(): values[f"header {h}"] for h in row.headers_env}
    if row.token_env:
        headers["authorization"] = f"Bearer {values['token']}"
    inherited = {name: value for name in _INHERITED if (value := secret(name)) is not None}
    return Connection(
        name=name,
        url=row.url or "",
        command=tuple(row.command or ()),
        headers=headers if row.url else {},
        environment={**inherited, **row.env, **{v: values[f"env {v}"] for v in row.secret_env}}
        if row.command
        else {},
        secrets=tuple(filter(None, values.values())),
        allow=tuple(row.allow),
        read_only=row.read_only,
        timeout=row.timeout,
        longest_result=row.longest_result,
        unset=next((wanted[use] for use, value in values.items() if not value), ""),
    )


def _check(row: _Connection, where: str) -> None:
    if (row.url is None) == (row.command is None):
        raise ConfigError(
            f"`{where}` needs either `url` or `command`.", mend="Write one of the two."
        )
    of_url = {"token_env": row.token_env, "headers": row.headers, "headers_env": row.headers_env}
    of_command = {"env": row.env, "secret_env": row.secret_env}
    kind, other = ("url", of_command) if row.url else ("command", of_url)
    for key, value in other.items():
        if value:
            raise ConfigError(f"`{where}.{key}` does not go with `{kind}`.", mend="Remove it.")
    named = [header.lower() for header in (*row.headers, *row.headers_env)]
    named += ["authorization"] if row.token_env else []
    twice = next((header for header in named if named.count(header) > 1), None)
    if twice is not None:
        raise ConfigError(f"`{where}` sets the header {twice} twice.", mend="Remove one.")


def _value(variable: str, secret: Callable[[str], str | None]) -> str:
    try:
        return sendable_key(secret(variable) or "")
    except ValueError as error:
        raise ConfigError(
            f"The variable {variable} {error}.", mend="Set it to the credential alone."
        ) from error
