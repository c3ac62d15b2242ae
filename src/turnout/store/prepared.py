"""Statements that are compiled once and run on the driver itself."""

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Dialect, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.sql import ClauseElement
from sqlalchemy.sql.compiler import SQLCompiler

__all__ = ["Insert", "Prepared"]

Insert = Callable[[Table], sqlite.Insert | postgresql.Insert]
"""Begins an insert that knows `ON CONFLICT`, on the database that is used."""


class Prepared:
    """A statement for what every request at the gateway does.

    SQLAlchemy's share of such a small statement is many times what the database takes for it.
    """

    def __init__(self, build: Callable[[Insert], ClauseElement], dialect: Dialect) -> None:
        """Compile what `build` makes with the right kind of insert."""
        insert = postgresql.insert if dialect.name == "postgresql" else sqlite.insert
        compiled = build(insert).compile(dialect=dialect)
        if not isinstance(compiled, SQLCompiler):
            raise TypeError("only statements that take and give rows are prepared")
        binds = {name: bind for bind, name in compiled.bind_names.items()}
        self._sql = str(compiled)
        self._positional = compiled.positiontup is not None
        self._binds = [
            (name, binds[name].type.dialect_impl(dialect).bind_processor(dialect))
            for name in compiled.positiontup or binds
        ]
        self._constants = {
            name: bind.effective_value for name, bind in binds.items() if not bind.required
        }

    def run(self, cursor: DBAPICursor, values: Mapping[str, Any]) -> None:
        """Execute it with a value for each of its parameters."""
        known = {**self._constants, **values} if self._constants else values
        bound = [
            known[name] if process is None else process(known[name])
            for name, process in self._binds
        ]
        if self._positional:
            cursor.execute(self._sql, bound)
        else:
            names = (name for name, _ in self._binds)
            cursor.execute(self._sql, dict(zip(names, bound, strict=True)))
