"""What of a Markdown text a reader of its page does not see.

Where in doubt it is taken out: a text that shows too little is asked about again, one that says to
a model what nobody has seen is not.
"""

import html
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from turnout.core.text import is_unseen

__all__ = ["as_read", "without_unseen"]

_GONE: Final = "\0"
"""Stands where something was until the end, so that what is left makes up nothing new."""
_BREAKS: Final = re.compile("\r\n?|[\v\f\x85\u2028\u2029]")
_ENTITY: Final = re.compile(r"&#?\w{1,40};")
_COMMENT: Final = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)

_FENCE: Final = re.compile(r"(`{3,})[^`\0]*|(~{3,})[^\0]*")
_RAW: Final = re.compile(r"<(?:pre|script|style|textarea)\b|<\?|<!", re.IGNORECASE)

# All are possessive: what has failed once is not tried in another way.
_PREFIX: Final = r"^(?:[ \t]*+(?:>|[-+*]|\d{1,9}[.)]))*+[ \t]*+"
_TITLE: Final = (
    r"""(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"|'[^'\\]*+(?:\\.[^'\\]*+)*+'"""
    r"""|\([^()\\]*+(?:\\.[^()\\]*+)*+\))"""
)
_PLACE: Final = r"(<[^<>\n]*+>|[^\s<]\S*+)"
_UNRENDERED: Final = re.compile(
    r"<(script|style|template|title)\b.*?(?:</\1\s*+>|\Z)"
    r"|<\?.*?(?:\?>|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<![A-Z].*?(?:>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_TAG: Final = re.compile(
    r"""<([A-Z][A-Z0-9-]*+)[\s/][^<>"']*+(?:(?:"[^"]*+"|'[^']*+')[^<>"']*+)*+>""", re.IGNORECASE
)
_DEFINITION: Final = re.compile(
    rf"{_PREFIX}\[(?!\^)(?:[^\[\]\\]|\\.){{1,999}}+\]:[ \t]*+\n?+[ \t>]*+{_PLACE}"
    rf"(?:[\s>]++{_TITLE})?[ \t]*+$",
    re.MULTILINE | re.DOTALL,
)
_REFERENCE: Final = re.compile(r"\[\^[^\[\]\s]++\]")
_FOOTNOTE: Final = re.compile(
    rf"{_PREFIX}({_REFERENCE.pattern}):.*+"
    r"(?:\n[ \t]*+\S.*+|(?:\n[ \t]*+(?=\n))++\n(?: {4}|\t).*+)*+",
    re.MULTILINE,
)
_TITLED: Final = re.compile(rf"\]\(\s*+{_PLACE}\s++{_TITLE}\s*+\)", re.DOTALL)
_SPACED: Final = re.compile(r"\]\(\s*+<[^<>\n]*[ \t][^<>\n]*+>\s*+\)")
_BRACKET: Final = re.compile(r"\\.|!?\[|\]", re.DOTALL)
_OPENING: Final = re.compile(r"<[A-Z!?]|\][(:]", re.IGNORECASE)
_MOST: Final = 1_000
"""Of what can hide something; each is looked for up to the end."""


def without_unseen(text: str) -> str:
    """Return a text as plain lines without characters that have no look, and without comments."""
    return _marked(text).replace(_GONE, "")


def as_read(text: str) -> str | None:
    """Return what a reader sees of Markdown; None where too many of its parts can hide something.

    Beside `without_unseen`: no definitions of links, titles, alternative texts of images,
    attributes of tags, nor footnotes that nothing refers to. Fenced code stays as it is.
    """
    parts = list(_parts(_marked(text)))
    if sum(len(_OPENING.findall(part)) for code, part in parts if not code) > _MOST:
        return None
    shown = "".join([part if code else _rendered(part) for code, part in parts])
    # Whoever takes unseen characters out before Markdown is read sees another comment.
    return _COMMENT.sub("", shown.replace(_GONE, ""))


def _marked(text: str) -> str:
    plain = "".join(_GONE if _is_unseen(c) else c for c in _BREAKS.sub("\n", text))
    return _ENTITY.sub(_entity, _COMMENT.sub(_GONE, plain))


def _is_unseen(character: str) -> bool:
    return character not in "\n\t" and is_unseen(character)


def _entity(match: re.Match[str]) -> str:
    named = html.unescape(match[0])
    return _GONE if all(map(_is_unseen, named)) else match[0]


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """Yield the text in parts, and of each whether it is surely a block of fenced code."""
    lines: list[str] = []
    fence, raw, tagged = "", False, False
    for line in text.splitlines(keepends=True):
        bare = line.rstrip("\n \t")
        if fence:
            lines.append(line)
            if bare.startswith(fence) and not bare.strip(fence[0]):
                yield True, "".join(lines)
                lines, fence = [], ""
            continue
        opening = None if raw or tagged else _FENCE.fullmatch(bare)
        if opening is not None:
            yield False, "".join(lines)
            lines, fence = [], opening[1] or opening[2]
        # Within HTML a fence is none: up to an empty line, or up to nobody knows where.
        raw = raw or (opening is None and _RAW.search(line) is not None)
        tagged = bool(bare) and (tagged or (opening is None and "<" in line))
        lines.append(line)
    yield bool(fence), "".join(lines)


def _rendered(text: str) -> str:
    text = _UNRENDERED.sub(_GONE, text)
    defined = _DEFINITION.search(text) is not None
    text = _DEFINITION.sub(_GONE, text)
    named = Counter(name.lower() for name in _REFERENCE.findall(text))
    text = _FOOTNOTE.sub(lambda m: m[0] if named[m[1].lower()] > 1 else _GONE, text)
    text = _SPACED.sub("]()", _TITLED.sub(_untitled, _without_alts(text, defined=defined)))
    return _TAG.sub(r"<\1>", text)


def _untitled(match: re.Match[str]) -> str:
    return f"]({match[1]})"


def _without_alts(text: str, *, defined: bool) -> str:
    """Return the text with `![image]` for what stands in place of pictures."""
    opened: list[tuple[int, bool]] = []
    images: list[tuple[int, int]] = []
    for match in _BRACKET.finditer(text):
        if match[0] in ("[", "!["):
            opened.append((match.start(), match[0] == "!["))
        elif match[0] == "]" and opened:
            start, image = opened.pop()
            if image and (defined or text[match.end() : match.end() + 1] in ("(", "[")):
                images.append((start, match.end()))
    shown: list[str] = []
    at = 0
    for start, end in sorted(images):
        if start >= at:
            shown += [text[at:start], "![image]"]
            at = end
    return "".join([*shown, text[at:]])
