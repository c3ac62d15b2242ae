"""Reading TOML within bounds: some texts of a few kilobytes take minutes to read."""

import re
import tomllib
from typing import Any, Final

__all__ = ["TomlError", "read_toml"]

_MOST_PARTS: Final = 64
"""Parts of a dotted key; reading one takes the square of them."""

_LONGEST: Final = 2**22
"""Characters of a whole text."""

_TOKEN: Final = re.compile(
    r"""
    (?P<skipped> "{3} (?: [^"\\] | \\. | "(?!"") )*+ (?: "{3,5} | \Z )
    | '{3} (?: [^'] | '(?!'') )*+ (?: '{3,5} | \Z )
    | " (?: [^"\\\n] | \\[^\n] )*+ "?
    | ' [^'\n]*+ '?
    | \# [^\n]*+ )
    | (?P<dot> \. )
    | (?P<end> [=\n,{}\[\]] )
    | [^"'\#.=\n,{}\[\]]++
    """,
    re.VERBOSE | re.DOTALL,
)
"""What a text consists of, as far as it tells how many parts a key has; each character is looked
at once, whatever it says."""

_HUGE: Final = re.compile(r"(?<![\w\"'])0[xob][0-9A-Fa-f_]{1000}")
"""A number that has no end in practice: of other bases Python takes any length."""


class TomlError(ValueError):
    """A text is not TOML, or not such as anybody would write; it says why."""


def read_toml(text: str) -> dict[str, Any]:
    """Return what a text says; `TomlError` where it is no TOML, or takes too long to read.

    What the size of an answer costs is bounded by what the text has: a caller that serves others
    meanwhile bounds the text, too.
    """
    if len(text) > _LONGEST:
        raise TomlError(f"it has more than {_LONGEST:,} characters")
    if _HUGE.search(text):
        raise TomlError("it has a number of more than 1,000 digits")
    if text.count(".") > _MOST_PARTS:
        _check_keys(text)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TomlError(str(error)) from error
    except RecursionError as error:
        raise TomlError("it nests too deep") from error
    except ValueError as error:
        # A number with thousands of digits.
        raise TomlError(str(error).partition(":")[0]) from error


def _check_keys(text: str) -> None:
    dots = 0
    for found in _TOKEN.finditer(text):
        if found["dot"]:
            dots += 1
            if dots >= _MOST_PARTS:
                line = text.count("\n", 0, found.start()) + 1
                raise TomlError(f"a key has more than {_MOST_PARTS} parts (at line {line})")
        elif found["end"]:
            dots = 0
