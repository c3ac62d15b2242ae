"""The rows of a file of tasks, each with the line that it begins on."""

import codecs
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from turnout.errors import ConfigError

__all__ = ["MOST_LINE", "Entry", "entries"]

MOST_LINE: Final = 16 << 20
"""Characters of one row: a longer one is not read."""

_MOST_FILE: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Entry:
    """One row, not yet understood."""

    text: str
    """A JSON value, as it is written."""
    place: str
    """File and line, for people."""


def entries(path: Path) -> Iterator[Entry]:
    """Yield the rows of a file of JSON lines or of one JSON list; `ConfigError` names the line."""
    text = _read(path)
    if text.lstrip().startswith("["):
        yield from _listed(text, path)
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield _bounded(Entry(line.strip(), f"{path}, line {number}"))


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > _MOST_FILE:
            raise ConfigError(f"{path} is longer than 1 GiB.", mend="Split it.")
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _no_utf8(path, data, error.start) from None


def _no_utf8(path: Path, data: bytes, at: int) -> ConfigError:
    """Return the error for a file in another encoding, at its first byte that shows it."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        said, kind = f"{path} is UTF-16", "UTF-16"
    else:
        line, kind = data.count(b"\n", 0, at) + 1, "LATIN1"
        column = at - data.rfind(b"\n", 0, at)
        said = f"{path}, line {line}: byte {column} (0x{data[at]:02x}) is no UTF-8"
    return ConfigError(
        f"{said}.",
        mend=f"Write the file as UTF-8, such as by: iconv -f {kind} -t UTF-8 {path}",
    )


def _listed(text: str, path: Path) -> Iterator[Entry]:
    decoder = json.JSONDecoder()
    at, line, counted = text.index("[") + 1, 1, 0
    while True:
        at = _skip(text, at, " \t\r\n")
        line, counted = line + text.count("\n", counted, at), at
        place = f"{path}, line {line}"
        if text[at : at + 1] == "]":
            if text[at + 1 :].strip():
                raise ConfigError(f"{place}: something follows the list.")
            return
        try:
            _, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            raise ConfigError(f"{path}, line {error.lineno}: {error.msg}.") from None
        except RecursionError:
            raise ConfigError(f"{place}: it is nested too deeply.") from None
        yield _bounded(Entry(text[at:end], place))
        at = _skip(text, end, " \t\r\n")
        if text[at : at + 1] == ",":
            at += 1
        elif text[at : at + 1] != "]":
            line += text.count("\n", counted, at)
            raise ConfigError(f"{path}, line {line}: a comma or the end of the list is missing.")


def _skip(text: str, at: int, letters: str) -> int:
    while at < len(text) and text[at] in letters:
        at += 1
    return at


def _bounded(entry: Entry) -> Entry:
    if len(entry.text) > MOST_LINE:
        raise ConfigError(f"{entry.place} is longer than 16 MiB.")
    return entry
