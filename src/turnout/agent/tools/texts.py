"""The text in a file's bytes, such that what is not changed comes back byte for byte."""

import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from turnout.errors import ToolError

__all__ = ["Line", "Text", "common", "decoded", "ended", "readable", "unescaped", "usual_end"]

_MOST_LINES = 500_000
_ESCAPE = re.compile(r"\\x[89a-f][0-9a-f]")
_BEYOND_ASCII = re.compile("[^\x00-\x7f\udc80-\udcff]")
_UTF16: Final = {BOM_UTF16_LE: "utf-16-le", BOM_UTF16_BE: "utf-16-be"}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file."""

    body: str
    end: str
    r"""`\n`, `\r\n`, `\r` in files without any other, or nothing for a last line without one."""


@dataclass(frozen=True, slots=True)
class Text:
    """What a file says. Bytes that are no text are lone surrogates in it."""

    text: str
    mark: bytes = b""
    """The byte order mark, which is no part of `text`."""
    codec: str = "utf-8"
    strays: bool = False
    """Whether there are bytes that are no text."""

    def encoded(self, text: str) -> bytes:
        """Return the bytes of the file with this text instead."""
        return self.mark + text.encode(self.codec, self._errors)

    def check_added(self, added: str) -> None:
        """Raise `ToolError` where `added` cannot be written in the encoding of the file."""
        if self.strays and _has_text(added) and not _has_text(self.text):
            raise ToolError(
                "The file is not UTF-8 and its encoding is not known, so that nothing but ASCII "
                "can be added; nothing was changed.",
                mend="Write other characters as escapes, where the language has them.",
            )

    def escapes(self, stated: Sequence[str]) -> frozenset[str]:
        r"""Return the `\xe9` in lines of the file that stand for bytes, as when it is read."""
        if not self.strays:
            return frozenset()
        unknown = (line for line in stated if line not in self.text)
        return frozenset(found for line in unknown for found in _ESCAPE.findall(line))

    def lines(self) -> list[Line]:
        r"""Return every line. Only `\n` ends a line, as in diffs, but where there is none."""
        if self.text.count("\n") > _MOST_LINES:
            raise ToolError(f"The file has more than the {_MOST_LINES} lines that are looked at.")
        break_ = "\n" if "\n" in self.text or "\r" not in self.text else "\r"
        *whole, last = self.text.split(break_)
        found = [_line(body, break_) for body in whole]
        return [*found, Line(last, "")] if last else found

    @property
    def _errors(self) -> str:
        return "surrogateescape" if self.codec == "utf-8" else "strict"


def decoded(data: bytes) -> Text:
    """Return the text of a file: UTF-16 where a mark says so, else UTF-8 with any stray bytes."""
    codec = _UTF16.get(data[:2])
    mark = data[:2] if codec else BOM_UTF8 if data.startswith(BOM_UTF8) else b""
    try:
        return Text(data[len(mark) :].decode(codec or "utf-8"), mark, codec or "utf-8")
    except UnicodeDecodeError:
        if codec:
            raise ToolError("The file begins as UTF-16 but is not, so it is no text.") from None
    return Text(data[len(mark) :].decode(errors="surrogateescape"), mark, strays=True)


def readable(text: str) -> str:
    r"""Return text with bytes that are none shown as `\xe9`."""
    return text.encode(errors="surrogateescape").decode(errors="backslashreplace")


def unescaped(text: str, escapes: frozenset[str]) -> str:
    """Return text with the bytes that these escapes stand for."""
    if not escapes:
        return text
    return _ESCAPE.sub(lambda m: _byte(m[0]) if m[0] in escapes else m[0], text)


def common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many items both begin with."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def ended(lines: Sequence[Line], usual: str, *, open_end: bool) -> str:
    """Return the text of lines, each with its break or `usual`; the last without, if it is open."""
    *above, last = [Line(line.body, line.end or usual) for line in lines] or [Line("", "")]
    whole = [*above, Line(last.body, "") if open_end else last]
    return "".join(f"{line.body}{line.end}" for line in whole)


def usual_end(lines: Sequence[Line]) -> str:
    """Return how most lines end."""
    ends = [line.end for line in lines if line.end]
    return max(sorted(set(ends)), key=ends.count) if ends else "\n"


def _line(body: str, break_: str) -> Line:
    if break_ == "\n" and body.endswith("\r"):
        return Line(body[:-1], "\r\n")
    return Line(body, break_)


def _byte(escape: str) -> str:
    return chr(0xDC00 + bytes.fromhex(escape[-2:])[0])


def _has_text(text: str) -> bool:
    """Whether there are other characters than ASCII."""
    return not text.isascii() and _BEYOND_ASCII.search(text) is not None
