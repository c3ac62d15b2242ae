"""Which variables of the environment hold secrets."""

import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

from turnout.core.json import JsonValue
from turnout.core.secrecy.redactor import Redactor

__all__ = ["redactor_of"]

_SECRET: Final = re.compile(r"(.*_)?(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)", re.IGNORECASE)
"""Names of variables that usually hold one."""
_DATABASE: Final = "TURNOUT_DATABASE"


def redactor_of(file: JsonValue, env: Mapping[str, str]) -> Redactor:
    """Return what knows the secrets of this process.

    They are the values of variables whose name says so or that `turnout.toml` names anywhere, and
    the password in the URL of the database.
    """
    named = {name for name in _texts(file) if name in env}
    secrets = {name: env[name].strip() for name in env if name in named or _SECRET.fullmatch(name)}
    password = _password(env.get(_DATABASE, ""))
    return Redactor({**secrets, _DATABASE: password} if password else secrets)


def _texts(value: JsonValue) -> Iterator[str]:
    """Yield every text of the file, and every name: one of a secret is the name of its table."""
    match value:
        case str():
            yield value
        case Mapping():
            for name, item in value.items():
                yield name
                yield from _texts(item)
        case list() | tuple():
            for item in value:
                yield from _texts(item)
        case _:
            pass


def _password(url: str) -> str:
    try:
        return urlsplit(url).password or ""
    except ValueError:
        return ""
