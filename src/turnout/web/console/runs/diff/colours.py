"""Lines of code with the colours of their language, as markup that holds nothing else."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from markupsafe import Markup, escape
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_for_filename
from pygments.token import Comment, Keyword, Name, Number, Operator, String, _TokenType
from pygments.util import ClassNotFound

from turnout.web.console.hostile import visible

__all__ = ["coloured", "lexer_for"]

_LONGEST: Final = 40_000
"""Characters above which code stays plain: lexers are not made for hostile text."""
_WIDEST: Final = 1_000

_Style = Literal["comment", "keyword", "name", "number", "string"]
_STYLES: Final[Mapping[_Style, Sequence[_TokenType]]] = {
    "comment": (Comment,),
    "string": (String,),
    "number": (Number,),
    "keyword": (Keyword, Operator.Word),
    "name": (Name.Function, Name.Class, Name.Decorator, Name.Tag, Name.Attribute, Name.Builtin),
}
_OPEN: Final[Mapping[_Style, Markup]] = {
    style: Markup('<span class="c-{}">').format(style) for style in _STYLES
}
_CLOSE: Final = Markup("</span>")


def lexer_for(path: str) -> Lexer | None:
    """Return what reads the code of a file, by its name alone; None where nothing does."""
    name = path.rpartition("/")[2]
    try:
        found: Lexer = get_lexer_for_filename(
            name[-100:], stripnl=False, stripall=False, ensurenl=False
        )
    except ClassNotFound:
        return None
    return found


def coloured(lines: Sequence[str], lexer: Lexer | None) -> list[Markup]:
    """Return each line escaped, every character of it to be seen, in colours where they fit."""
    shown = [visible(line) for line in lines]
    whole = "\n".join(shown)
    plain = lexer is None or len(whole) > _LONGEST or any(len(line) > _WIDEST for line in shown)
    if lexer is None or plain:
        return [escape(line) for line in shown]
    styles: dict[_TokenType, _Style | None] = {}
    found: list[list[Markup]] = [[]]
    for kind, text in lexer.get_tokens(whole):
        if kind not in styles:
            styles[kind] = _style_of(kind)
        first, *others = text.split("\n")
        found[-1].append(_marked(styles[kind], first))
        found += [[_marked(styles[kind], each)] for each in others]
    # A lexer that drops or adds lines is not believed.
    if len(found) - len(shown) not in {0, 1}:
        return [escape(line) for line in shown]
    return [Markup().join(parts) for parts in found[: len(shown)]]


def _marked(style: _Style | None, text: str) -> Markup:
    if style is None or not text.strip():
        return escape(text)
    return _OPEN[style] + escape(text) + _CLOSE


def _style_of(kind: _TokenType) -> _Style | None:
    """Return what a kind of token looks like; None: like any other text."""
    for style, kinds in _STYLES.items():
        if any(kind[: len(each)] == each for each in kinds):
            return style
    return None
