"""HTML and SVG put together from parts; text becomes markup only by being escaped."""

from collections.abc import Iterable
from html import escape
from typing import Final, NewType

from turnout.evals.report.plain import plain

__all__ = ["Html", "element", "join", "text"]

Html = NewType("Html", str)
"""Markup, in which all text is escaped."""

_EMPTY: Final = frozenset({"meta", "br", "hr", "line", "rect", "circle", "path"})
"""Elements that hold nothing."""

Value = str | int | float | bool | None


def text(words: str) -> Html:
    """Return words as markup that shows them, characters that would hide something included."""
    return Html(escape(plain(words), quote=True))


def join(parts: Iterable[Html]) -> Html:
    """Return parts one after the other."""
    return Html("".join(parts))


def element(name: str, /, *children: Html, **attributes: Value) -> Html:
    """Return an element; `aria_label` names the attribute `aria-label`, `class_` names `class`.

    True stands for an attribute without a value, None and False for none at all.
    """
    said = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _EMPTY and not children:
        return Html(f"<{name}{said}/>")
    return Html(f"<{name}{said}>{join(children)}</{name}>")


def _attribute(key: str, value: Value) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    told = f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    return f' {name}="{text(told)}"'
