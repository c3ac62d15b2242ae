"""Rewrite a block of lines that was found, in the file's own line ends, indent and characters."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from turnout.agent.tools.patch_text import HunkLine
from turnout.agent.tools.placing import Likeness, fold, indent_of
from turnout.agent.tools.texts import Line, common
from turnout.errors import ToolError

__all__ = ["note", "rewritten"]

_BY_LOOKS = ("look-alikes", "indentation")
_NOTES: Mapping[Likeness, str] = {
    "exact": "",
    "blanks": "",
    "look-alikes": " The old lines are written with other characters in the file; those were kept.",
    "indentation": " The old lines are indented otherwise in the file; the new ones follow it.",
}


def note(likeness: Likeness) -> str:
    """Return what a model is to know of how its lines were found."""
    return _NOTES[likeness]


@dataclass(frozen=True, slots=True)
class _Pair:
    """A line of the file, and the same line as the model wrote it."""

    own: Line
    stated: str


@dataclass(frozen=True, slots=True)
class _Run:
    """A line that stays, after lines that go and lines that come in their place."""

    gone: tuple[_Pair, ...]
    come: tuple[str, ...]
    kept: Line | None


def rewritten(
    block: Sequence[Line], change: Sequence[HunkLine], likeness: Likeness, end: str
) -> list[Line]:
    """Return what the lines of `block` become by a change that was found there.

    Lines that the change keeps stay as they are in the file. New ones end as those that they
    replace or follow, else by `end`. `ToolError` where, without an exact likeness, it is not
    certain how the new lines are to be written.
    """
    stated = [line.text for line in change if line.side != "+"]
    pairs = [_Pair(own, text) for own, text in zip(block, stated, strict=True)]
    runs = list(_runs(pairs, change))
    # The change was written with other line ends than the file has.
    stray_end = any(p.stated.endswith("\r") and not p.own.body.endswith("\r") for p in pairs)
    indents = _indents(pairs) if likeness == "indentation" else {}
    odd = {
        m
        for p in pairs
        for o, m in zip(p.own.body.strip(), p.stated.strip(), strict=False)
        if o != m
    }
    writer = _Writer(likeness, indents, frozenset(odd if likeness in _BY_LOOKS else ()))
    if likeness != "exact" and all(writer.same(run) for run in runs):
        raise _uncertain("the change is only in what differs from the file anyway")
    out: list[Line] = []
    for run in runs:
        kept = [run.kept] if run.kept is not None else []
        beside = [*(pair.own for pair in run.gone), *out[-1:], *kept, Line("", end)]
        neighbour = beside[0].end
        for at, text in enumerate(run.come):
            paired = run.gone[at] if at < len(run.gone) else None
            neighbour = (paired.own.end if paired else neighbour) or neighbour or end
            body = writer.body(text, paired)
            own_end = stray_end or "\r" in neighbour
            out.append(Line(body.removesuffix("\r") if own_end else body, neighbour))
        out += kept
    return out


def _runs(pairs: Sequence[_Pair], change: Sequence[HunkLine]) -> Iterator[_Run]:
    rest = iter(pairs)
    gone: list[_Pair] = []
    come: list[str] = []
    for line in change:
        if line.side == "+":
            come.append(line.text)
        elif line.side == "-":
            gone.append(next(rest))
        else:
            yield _Run(tuple(gone), tuple(come), next(rest).own)
            gone, come = [], []
    if gone or come:
        yield _Run(tuple(gone), tuple(come), None)


@dataclass(frozen=True, slots=True)
class _Writer:
    likeness: Likeness
    indents: Mapping[str, str]
    """Indents of the file by those that the model wrote for them."""
    odd: frozenset[str]
    """Characters that the model wrote where the file has others that look alike."""

    def same(self, run: _Run) -> bool:
        """Whether nothing changes but what was not compared."""
        return [self._key(pair.stated) for pair in run.gone] == [self._key(t) for t in run.come]

    def body(self, text: str, pair: _Pair | None) -> str:
        """Return a new line as the file would have it."""
        match self.likeness:
            case "exact" | "blanks":
                return text
            case "look-alikes":
                return self._in_looks(text, pair)
            case "indentation":
                content = text.lstrip()
                if not content:
                    return ""
                alike = pair and _Pair(
                    Line(pair.own.body.lstrip(), pair.own.end), pair.stated.lstrip()
                )
                return self._indent(indent_of(text)) + self._in_looks(content, alike)

    def _in_looks(self, text: str, pair: _Pair | None) -> str:
        """Return a line with the file's own characters where the change leaves them."""
        head = tail = ""
        if pair is not None:
            own, stated = pair.own.body.rstrip(), pair.stated.rstrip()
            text = text.rstrip()
            begin = common(stated, text)
            end = common(stated[begin:][::-1], text[begin:][::-1])
            head, tail = own[:begin], own[len(own) - end :]
            text = text[begin : len(text) - end]
        if self.odd.intersection(text):
            raise _uncertain(
                f"`{text.strip()[:80]}` holds characters that the file writes otherwise"
            )
        return f"{head}{text}{tail}"

    def _indent(self, written: str) -> str:
        if written in self.indents:
            return self.indents[written]
        stated, own = next(iter(self.indents.items()))
        deeper, flatter = own.removesuffix(stated), stated.removesuffix(own)
        indent = deeper + written
        if flatter and written.startswith(flatter):
            indent = written.removeprefix(flatter)
        shifted = all(
            deeper + m == o or (flatter and m == flatter + o) for m, o in self.indents.items()
        )
        if not shifted or (flatter and deeper) or {" ", "\t"} <= set(indent):
            raise _uncertain("the new lines are indented as none of the old ones is")
        return indent

    def _key(self, text: str) -> str:
        if self.likeness == "blanks":
            return text.rstrip()
        return fold(text).strip() if self.likeness == "indentation" else fold(text).rstrip()


def _indents(pairs: Sequence[_Pair]) -> Mapping[str, str]:
    """Return the file's indent for each that the model wrote; deeper is deeper in both."""
    indents: dict[str, str] = {}
    for pair in pairs:
        own = indent_of(pair.own.body)
        if pair.stated.strip() and indents.setdefault(indent_of(pair.stated), own) != own:
            raise _uncertain("its lines are not indented alike")
    widths = [len(indents[stated]) for stated in sorted(indents, key=len)]
    if any(deeper <= flatter for flatter, deeper in pairwise(widths)):
        raise _uncertain("its lines are not indented alike")
    return indents


def _uncertain(why: str) -> ToolError:
    return ToolError(
        f"The old lines are in the file only with other blanks or other characters, and {why}; "
        "nothing was changed.",
        mend="Read the file again and copy its lines exactly.",
    )
