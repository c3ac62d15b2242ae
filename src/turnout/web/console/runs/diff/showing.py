"""The diff of a run as a page shows it: as much of it as can be looked at, the rest on demand."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from markupsafe import Markup
from starlette.responses import Response

from turnout.core.ids import RunId
from turnout.errors import NotFoundError, UsageError
from turnout.web.console.runs.diff.colours import coloured, lexer_for
from turnout.web.console.runs.diff.keeping import Diffs
from turnout.web.console.runs.diff.reading import DiffFile, DiffLine, pairs_of
from turnout.web.console.runs.parts import RunPages
from turnout.web.console.visits import Visit

__all__ = ["Cell", "DiffView", "FileView", "HunkView", "opened", "show_diff"]

_AT_FIRST: Final = 800
"""Lines that are shown before anybody asks for more."""
_OF_ONE: Final = 3_000
"""Lines of a file that are shown at all."""
_FILES: Final = 300
_WIDTH: Final = 600

DiffShape = Literal["split", "unified"]


class Cell(NamedTuple):
    """A line as it is shown."""

    line: DiffLine
    code: Markup
    left_out: int
    """Characters of it that are not shown."""


@dataclass(frozen=True, slots=True)
class HunkView:
    """A changed place."""

    head: str
    cells: Sequence[Cell]

    @property
    def pairs(self) -> Iterator[tuple[Cell | None, Cell | None]]:
        """The same, side by side."""
        by_line = {id(cell.line): cell for cell in self.cells}
        for old, new in pairs_of([cell.line for cell in self.cells]):
            yield (
                None if old is None else by_line[id(old)],
                None if new is None else by_line[id(new)],
            )


@dataclass(frozen=True, slots=True)
class FileView:
    """A file of the diff."""

    number: int
    """Its place in the diff, from 0."""
    file: DiffFile
    hunks: Sequence[HunkView] | None
    """None: only shown when it is asked for."""
    left_out: int = 0
    """Lines that are not shown at all."""


@dataclass(frozen=True, slots=True)
class DiffView:
    """What the page shows."""

    run_id: RunId
    shape: DiffShape
    files: Sequence[FileView]
    more_files: int
    """How many there are beyond those."""
    whole: bool = True
    """Whether it is the diff, or one file of it."""

    @property
    def added(self) -> int:
        """Lines that are added, in all of them."""
        return sum(each.file.added for each in self.files)

    @property
    def deleted(self) -> int:
        """Lines that are deleted, in all of them."""
        return sum(each.file.deleted for each in self.files)


async def show_diff(pages: RunPages, diffs: Diffs, visit: Visit) -> Response:
    """Show the diff of a run, or one file of it; `NotFoundError` where it has none."""
    run_id = RunId(visit.path("run_id"))
    await pages.runs.desk.get(visit.project, run_id)
    story = await pages.stories.of(pages.runs.desk, visit.project, run_id)
    diff = story.result.patch.diff if story.result else b""
    shape: DiffShape = "unified" if visit.query("view") == "unified" else "split"
    asked = visit.query("file")
    if asked and not (asked.isascii() and asked.isdecimal() and len(asked) < 6):
        raise UsageError("`file` is the number of a file of the diff.")
    whole = "runs/diff.html" if visit.partial else "runs/diff_page.html"
    template, only = ("runs/file.html", int(asked)) if asked else (whole, None)

    def page(files: Sequence[DiffFile]) -> Response:
        # A page of so many lines takes a while to write, too.
        return visit.page(template, _view(run_id, files, shape, only))

    return await diffs.work(diff, page)


def _view(run_id: RunId, files: Sequence[DiffFile], shape: DiffShape, only: int | None) -> DiffView:
    if only is not None:
        if only >= len(files):
            raise NotFoundError("The diff has no such file.")
        return DiffView(run_id, shape, [opened(only, files[only])], 0, whole=False)
    shown: list[FileView] = []
    left = _AT_FIRST
    for number, file in enumerate(files[:_FILES]):
        fits = file.size <= left
        left -= file.size if fits else 0
        shown.append(opened(number, file) if fits else FileView(number, file, None))
    return DiffView(run_id, shape, shown, len(files) - len(shown))


def opened(number: int, file: DiffFile) -> FileView:
    """Return a file as it is shown, its code in colours."""
    lexer, left, hunks = lexer_for(file.path), _OF_ONE, list[HunkView]()
    for hunk in file.hunks:
        lines = hunk.lines[:left]
        left -= len(lines)
        # Each side by itself is code; both together are not.
        old = [line for line in lines if line.kind != "added"]
        new = [line for line in lines if line.kind == "added"]
        codes: dict[int, Markup] = {}
        for side in (old, new):
            texts = [line.text[:_WIDTH] for line in side]
            codes |= zip(map(id, side), coloured(texts, lexer), strict=True)
        cells = [Cell(x, codes[id(x)], max(0, len(x.text) - _WIDTH)) for x in lines]
        if cells:
            hunks.append(HunkView(hunk.head, cells))
    return FileView(number, file, hunks, max(0, file.size - _OF_ONE))
