"""A table of the configuration file, checked, with errors that name the key and the mend."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from difflib import get_close_matches
from typing import Annotated, Final, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from turnout.core.json import JsonObject
from turnout.core.money import read_usd
from turnout.errors import ConfigError

__all__ = [
    "Rate",
    "Share",
    "Table",
    "Usd",
    "close_match",
    "dotted",
    "plain_words",
    "read_table",
    "shaped",
]


class Table(BaseModel):
    """A table that knows its keys and takes no others."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


_MOST_USD: Final = 1_000_000
_NO_AMOUNT: Final = f'must be an amount from 0 to {_MOST_USD} US dollars, such as "0.27"'


def _usd(value: object) -> Decimal:
    if isinstance(value, float):
        raise ValueError(f'must be text, so that no digit is lost: write "{value}"')
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(_NO_AMOUNT)
    try:
        amount = read_usd(value)
    except ValueError:
        raise ValueError(_NO_AMOUNT) from None
    if not 0 <= amount <= _MOST_USD:
        raise ValueError(_NO_AMOUNT)
    return amount


Usd = Annotated[Decimal, BeforeValidator(_usd)]
"""US dollars, written as text or as a whole number."""

Share = Annotated[float, Field(ge=0, le=1)]
"""A number from 0 to 1."""

Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
"""A number above 0."""

_Table = TypeVar("_Table", bound=Table)

_SHOWN: Final = 80

_KINDS: Final[Mapping[str, str]] = {
    "string_type": "text",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
}


def read_table(kind: type[_Table], table: JsonObject, where: str) -> _Table:
    """Return the checked table; `ConfigError` names the first wrong key below `where`."""
    try:
        return kind.model_validate(table)
    except ValidationError as error:
        # A wrong key before a missing one: the first is often the cause of the second.
        found = sorted(error.errors(), key=lambda detail: detail["type"] != "extra_forbidden")
        raise _config_error(kind, found[0], where) from error


def close_match(name: str, known: Sequence[str]) -> str:
    """Return the mend for a name that is not known."""
    near = get_close_matches(name, known, n=1)
    if near:
        return f"Did you mean `{near[0]}`?"
    return f"Known: {', '.join(sorted(known))}." if known else ""


def _config_error(kind: type[BaseModel], detail: ErrorDetails, where: str) -> ConfigError:
    place = detail["loc"]
    key = dotted(where, place)
    match detail["type"]:
        case "extra_forbidden":
            known = list(_keys(kind, place[:-1]))
            return ConfigError(f"`{key}` is no key.", mend=close_match(str(place[-1]), known))
        case "missing":
            return ConfigError(f"`{key}` is missing.", mend="Add it.")
        case "literal_error":
            allowed = str(detail.get("ctx", {}).get("expected"))
            given = detail["input"]
            return ConfigError(f"`{key}` is {given!r}.", mend=f"Write one of {allowed}.")
        case _:
            return ConfigError(f"`{key}` {plain_words(detail)}.")


def shaped(pattern: str, words: str) -> AfterValidator:
    """Return the check that the whole of a text fits a pattern, which `words` describe."""
    compiled = re.compile(pattern)

    def check(text: str) -> str:
        if not compiled.fullmatch(text):
            raise ValueError(f"must be {words}")
        return text

    return AfterValidator(check)


def plain_words(detail: ErrorDetails) -> str:
    """Return what a value must be, for the end of a sentence about it."""
    given = detail["input"]
    match detail["type"]:
        case "list_type" if isinstance(given, str):
            return f"must be a list, such as [{json.dumps(given[:_SHOWN], ensure_ascii=False)}]"
        case kind if kind in _KINDS:
            return f"must be {_KINDS[kind]}"
        case "string_too_short" | "too_short":
            return "must not be empty" if not given else f"must {_rule(detail)}"
        case _:
            return f"must {_rule(detail)}"


def _rule(detail: ErrorDetails) -> str:
    """Return what the checker says after "must"."""
    said = detail["msg"].removeprefix("Value error, ").removeprefix("must ")
    subject, should, rule = said.partition(" should ")
    if should and " " not in subject:
        return rule
    return said if detail["msg"].startswith("Value error, must ") else f"be {said}"


def dotted(where: str, place: Sequence[str | int]) -> str:
    """Return the place of a value as people write it, such as `deployments[0].model`."""
    key = where
    for part in place:
        if isinstance(part, int):
            key += f"[{part}]"
        elif part != "[key]":
            key += f".{part}" if key else part
    return key


def _keys(kind: type[BaseModel], place: Sequence[str | int]) -> Iterator[str]:
    """Yield the keys of the table at `place`."""
    at: type[BaseModel] | None = kind
    for part in place:
        if at is not None and isinstance(part, str) and part in at.model_fields:
            at = next(_tables_in(at.model_fields[part].annotation), None)
    if at is not None:
        yield from at.model_fields


def _tables_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _tables_in(argument)
