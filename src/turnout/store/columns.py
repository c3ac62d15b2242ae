r"""Column types that keep any value exactly, on every database.

PostgreSQL refuses NUL in text, and no UTF-8 text can hold a lone surrogate, as a file name or a
command-line argument may: `EscapedText` writes these as a backslash and four hexadecimal digits.
The escape is one to one, so that comparing stored texts compares the values.
"""

import re
import zlib
from datetime import UTC, datetime

from sqlalchemy import BigInteger, DateTime, Dialect, Integer, LargeBinary, Text
from sqlalchemy.types import TypeDecorator

__all__ = ["EscapedText", "PackedText", "Serial", "UtcDateTime"]

_UNSAFE = re.compile(r"[\\\x00\ud800-\udfff]")
_FAST = 1
_ESCAPE = re.compile(r"\\([0-9a-f]{4})")

Serial = BigInteger().with_variant(Integer(), "sqlite")
"""A key that counts up; only `INTEGER` does so in SQLite."""


class EscapedText(TypeDecorator[str]):
    """Text from outside, whatever it holds."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, _dialect: Dialect) -> str | None:
        """Return what is stored."""
        return value and _UNSAFE.sub(lambda found: f"\\{ord(found[0]):04x}", value)

    def process_result_value(self, value: str | None, _dialect: Dialect) -> str | None:
        """Return what was stored."""
        return value and _ESCAPE.sub(lambda found: chr(int(found[1], 16)), value)


class PackedText(TypeDecorator[str]):
    """Long text that repeats itself, such as a whole conversation, compressed."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: str | None, _dialect: Dialect) -> bytes | None:
        """Return what is stored."""
        return None if value is None else zlib.compress(value.encode(), _FAST)

    def process_result_value(self, value: bytes | None, _dialect: Dialect) -> str | None:
        """Return what was stored."""
        return None if value is None else zlib.decompress(value).decode()


class UtcDateTime(TypeDecorator[datetime]):
    """An aware moment, in UTC; SQLite keeps none of the zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        """Return the moment in UTC."""
        return value and value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        """Return the moment, aware again."""
        if value is None:
            return None
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
