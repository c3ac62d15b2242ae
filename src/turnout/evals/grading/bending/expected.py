"""Where in a test the value is written that it expects."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Sides", "Slot", "equality_of", "slots_of"]

_EQUAL_METHODS = frozenset(
    {
        *("assertEqual", "assertEquals", "assertListEqual", "assertDictEqual"),
        *("assertTupleEqual", "assertSetEqual", "assertSequenceEqual", "assertMultiLineEqual"),
        "assertAlmostEqual",
    }
)


@dataclass(frozen=True, slots=True)
class Sides:
    """The two sides of a comparison for equality."""

    node: ast.Compare | ast.Call

    def of(self, number: int) -> ast.expr:
        """Return one side, 0 or 1."""
        if isinstance(self.node, ast.Call):
            return self.node.args[number]
        return self.node.comparators[0] if number else self.node.left

    def put(self, number: int, new: ast.expr) -> None:
        """Put another expression in the place of one side."""
        if isinstance(self.node, ast.Call):
            self.node.args[number] = new
        elif number:
            self.node.comparators[0] = new
        else:
            self.node.left = new


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of an expression in a list of them, or of what is assigned."""

    owner: list[ast.expr] | ast.Assign
    at: int = 0

    @property
    def node(self) -> ast.expr:
        """What stands there."""
        return self.owner.value if isinstance(self.owner, ast.Assign) else self.owner[self.at]

    def put(self, new: ast.expr) -> None:
        """Put another expression there."""
        if isinstance(self.owner, ast.Assign):
            self.owner.value = new
        else:
            self.owner[self.at] = new


def equality_of(statement: ast.AST) -> Sides | None:
    """Return the sides of what a statement asserts to be equal; None where it does not."""
    match statement:
        case ast.Assert(test=ast.Compare(ops=[ast.Eq()]) as test):
            return Sides(test)
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name), args=[_, _, *_]) as call):
            starred = any(isinstance(each, ast.Starred) for each in call.args[:2])
            return Sides(call) if name in _EQUAL_METHODS and not starred else None
    return None


def slots_of(function: ast.FunctionDef, name: str) -> list[Slot]:
    """Return every place that says what a name holds in a test, be it in its parameters.

    None where the name is used for more than one thing, or one of the places is not plain.
    """
    named = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == name]
    if sum(isinstance(each.ctx, ast.Load) for each in named) != 1:
        return []
    if any(each.arg == name for each in function.args.args):
        tables = [table for each in function.decorator_list for table in _table_of(each, name)]
    else:
        tables = [table for each in function.body for table in _told(each, name)]
    if len(tables) != 1 or len(named) > 2:
        return []
    return tables[0]


def _table_of(decorator: ast.expr, name: str) -> Iterator[list[Slot]]:
    """Yield the places of a parameter, one for each case."""
    match decorator:
        case ast.Call(
            func=ast.Attribute(attr="parametrize"),
            args=[ast.Constant(value=str(names)), ast.List() | ast.Tuple() as rows, *_],
        ):
            columns = [each.strip() for each in names.split(",")]
            if name in columns:
                yield _column(rows.elts, columns.index(name), len(columns))


def _told(statement: ast.stmt, name: str) -> Iterator[list[Slot]]:
    """Yield the places of a variable that is assigned to, or goes through a list."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=target)]) if target == name:
            yield [Slot(statement)]
        case ast.For(target=ast.Name(id=target), iter=ast.List() | ast.Tuple() as rows):
            if target == name:
                yield _column(rows.elts, 0, 1)
        case ast.For(target=ast.Tuple(elts=targets), iter=ast.List() | ast.Tuple() as rows):
            names = [each.id if isinstance(each, ast.Name) else "" for each in targets]
            if name in names:
                yield _column(rows.elts, names.index(name), len(names))
    if isinstance(statement, ast.With):
        for each in statement.body:
            yield from _told(each, name)


def _column(rows: list[ast.expr], at: int, columns: int) -> list[Slot]:
    slots = []
    for number, row in enumerate(rows):
        cells = _cells(row) if columns > 1 or _is_param(row) else None
        if cells is not None and len(cells) == columns:
            slots.append(Slot(cells, at))
        elif columns == 1 and cells is None:
            slots.append(Slot(rows, number))
        else:
            return []
    return slots


def _cells(row: ast.expr) -> list[ast.expr] | None:
    match row:
        case ast.Tuple(elts=cells) | ast.List(elts=cells) | ast.Call(args=cells):
            return cells
    return None


def _is_param(row: ast.expr) -> bool:
    match row:
        case ast.Call(func=ast.Attribute(attr="param") | ast.Name(id="param")):
            return True
    return False
