"""What a test expects, written as another value of the same kind that nobody can know before."""

import ast
import random
import string
from copy import deepcopy

__all__ = ["Changer"]

_WRAPPERS = frozenset(
    {"approx", "bytes", "date", "datetime", "dedent", "dict", "frozenset", "list", "set", "tuple"}
)
"""Calls that stand for what they are given."""

_TRIES = 20
_MOST_DIGITS = 30


class Changer:
    """Makes other values out of written ones."""

    def __init__(self, source: random.Random) -> None:
        self._source = source

    def other(self, node: ast.expr) -> ast.expr | None:
        """Return an expression with another value; None where this one is not plainly written."""
        if not _written(node):
            return None
        before = _value(node)
        for _ in range(_TRIES):
            new = self._changed(deepcopy(node))
            if new is None:
                return None
            after = _value(new)
            if before is None or after is None or after != before:
                return new
        return None

    def several(self) -> ast.expr:
        """Return a list of values of many kinds, none of them known before."""
        number = self._source.randrange(10**8, 10**9)
        word = self._letters(12)
        values: list[object] = [
            *(number, -number, number / 7, word, word.encode(), [number], [word], (number, word)),
            *({word: number}, {number}),
        ]
        self._source.shuffle(values)
        text = ", ".join(repr(value) for value in values)
        return ast.parse(f"[{text}, object()]", mode="eval").body

    def _changed(self, node: ast.expr) -> ast.expr | None:
        """Change every constant in place; None where there is none to be changed."""
        match node:
            case ast.Constant(value=value):
                new = self._constant(value)
                return None if new is None else ast.Constant(new)
            case ast.UnaryOp(operand=operand):
                new_operand = self._changed(operand)
                return None if new_operand is None else ast.UnaryOp(node.op, new_operand)
            case ast.BinOp(left=left):
                new_left = self._changed(left)
                return None if new_left is None else ast.BinOp(new_left, node.op, node.right)
            case ast.Dict():
                if self._each(node.values) or self._each(node.keys):
                    return node
                return None if node.keys else self._pair()
            case ast.List() | ast.Tuple() | ast.Set():
                if not node.elts:
                    node.elts.append(ast.Constant(self._source.randrange(10**6)))
                    return node
                return node if self._each(node.elts) else None
            case ast.JoinedStr():
                return node if self._each(node.values) else None
            case ast.Call():
                return node if self._each(node.args) else None
        return None

    def _each(self, nodes: list[ast.expr] | list[ast.expr | None]) -> bool:
        """Change each that can be changed; say whether any was."""
        found = False
        for number, node in enumerate([*nodes]):
            new = None if node is None or not _written(node) else self._changed(node)
            if new is not None:
                nodes[number] = new
                found = True
        return found

    def _pair(self) -> ast.expr:
        return ast.Dict([ast.Constant(self._letters(6))], [ast.Constant(self._letters(6))])

    def _constant(self, value: object) -> bool | int | float | complex | str | bytes | None:
        match value:
            case bool():
                return not value
            case int():
                return self._number(value)
            case float() | complex():
                return value + (abs(value) + 1) * self._source.uniform(3, 9)
            case str():
                return self._text(value)
            case bytes():
                return self._text(value.decode("latin-1")).encode("latin-1")
        return None

    def _number(self, value: int) -> int:
        digits = min(max(3, len(str(abs(value))) + 1), _MOST_DIGITS)
        new = self._source.randrange(10**digits)
        return new + 1 if new >= value else new

    def _text(self, text: str) -> str:
        """Keep what is neither letter nor digit, so that it looks like what it was."""
        new = "".join(self._like(each) for each in text)
        return new if new != text else text + self._letters(6)

    def _like(self, letter: str) -> str:
        for kind in (string.ascii_lowercase, string.ascii_uppercase, string.digits):
            if letter in kind:
                return self._source.choice(kind)
        return letter

    def _letters(self, count: int) -> str:
        return "".join(self._source.choices(string.ascii_lowercase, k=count))


def _written(node: ast.expr) -> bool:
    """Say whether a value is written down, rather than asked of some code."""
    match node:
        case ast.Constant() | ast.JoinedStr() | ast.List() | ast.Tuple() | ast.Set() | ast.Dict():
            return True
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            return _written(operand)
        case ast.BinOp(left=left, right=right):
            return _written(left) and _written(right)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in _WRAPPERS and bool(node.args) and all(map(_written, node.args))
    return False


def _value(node: ast.expr) -> object:
    try:
        return ast.literal_eval(ast.unparse(node))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
