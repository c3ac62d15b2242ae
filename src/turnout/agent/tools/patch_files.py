"""Carry out a patch on the files of a sandbox: all of it, or nothing."""

from asyncio import CancelledError
from collections.abc import Sequence
from dataclasses import dataclass, replace

from turnout.agent.tools.base import ToolContext
from turnout.agent.tools.files import LARGEST, read_whole, refuse_tests, workspace_path
from turnout.agent.tools.patch_links import is_link, link_after, read_link, write_link
from turnout.agent.tools.patch_place import patched
from turnout.agent.tools.patch_text import FilePatch
from turnout.agent.tools.rewriting import note
from turnout.errors import ToolError
from turnout.sandbox.base import Blob, Command, Sandbox
from turnout.sandbox.patches import names_git

__all__ = ["FileEdit", "make_edits", "plan_edits"]

_MOST_FILES = 200
_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class FileEdit:
    """What one path is to hold."""

    path: str
    before: Blob | None
    """None where there is no file yet."""
    data: bytes | None
    """None where there is to be none."""
    mode: int | None = None
    """None keeps that of the file."""
    note: str = ""
    """What the model is to know of how its lines were found."""
    link: bool = False
    """Whether it is a link, whose content is where it leads."""


async def plan_edits(patches: Sequence[FilePatch], context: ToolContext) -> tuple[FileEdit, ...]:
    """Return what becomes of each file; `ToolError`, naming the file, where it is not certain."""
    if len(patches) > _MOST_FILES:
        raise ToolError(f"The patch changes more than {_MOST_FILES} files.", mend="Send less.")
    freed = frozenset(workspace_path(p.old) for p in patches if p.old and p.old != p.new)
    planned: dict[str, FileEdit] = {}
    for patch in patches:
        for edit in await _planned(patch, context, freed):
            planned[edit.path] = _joined(planned.get(edit.path), edit)
        if sum(len(e.before.data) for e in planned.values() if e.before) > 4 * LARGEST:
            raise ToolError("The files of the patch are too large together.", mend="Send less.")
    return tuple(planned.values())


async def make_edits(sandbox: Sandbox, edits: Sequence[FileEdit]) -> None:
    """Write and remove files; where one cannot be, or on the way is cancelled, none is changed."""
    done: list[FileEdit] = []
    try:
        for edit in sorted(edits, key=lambda edit: edit.data is None):
            expected = edit.before.sha256 if edit.before else None
            await _put(sandbox, edit, edit.data, edit.mode, expected)
            done.append(edit)
    except (ToolError, CancelledError):
        for edit in reversed(done):
            before = edit.before
            data, mode = (before.data, before.mode) if before else (None, None)
            await _put(sandbox, edit, data, mode)
        raise


def _joined(earlier: FileEdit | None, edit: FileEdit) -> FileEdit:
    """Return the edit of a path that one section frees and another fills."""
    if earlier is None:
        return edit
    gone, put = (earlier, edit) if earlier.data is None else (edit, earlier)
    filled = gone.data is None and put.data is not None and put.before is None
    if not filled or gone.link or put.link:
        raise ToolError(f"{edit.path}: two sections of the patch are about this file.")
    return replace(put, before=gone.before, mode=0o644 if put.mode is None else put.mode)


async def _put(
    sandbox: Sandbox,
    edit: FileEdit,
    data: bytes | None,
    mode: int | None,
    expected: str | None = None,
) -> None:
    path = edit.path
    if data is not None and edit.link:
        await write_link(sandbox, path, data)
        return
    if data is not None:
        await sandbox.write(path, data, mode=mode, expect_sha256=expected)
        return
    done = await sandbox.run(Command(("rm", "-f", "--", path), timeout=_SECONDS))
    if not done.ok:
        why = done.stderr.decode(errors="backslashreplace").strip()[-400:]
        raise ToolError(f"{path} cannot be removed: {why}")


async def _planned(patch: FilePatch, context: ToolContext, freed: frozenset[str]) -> list[FileEdit]:
    old = None if patch.old is None else workspace_path(patch.old)
    new = None if patch.new is None else workspace_path(patch.new)
    name = new or old or ""
    for path in (old, new):
        if path is not None:
            refuse_tests(path, context)
            if names_git(path.encode()):
                raise ToolError(f"{path}: files of .git are not changed by tools.")
    if is_link(patch):
        return [await _planned_link(replace(patch, old=old, new=new), name, context.sandbox)]
    try:
        before = None if old is None else await read_whole(context.sandbox, old)
        fills = new is not None and new != old and new not in freed
        replaced = await _replaced(context.sandbox, new) if new and fills else None
        after = patched(before.data if before else b"", patch)
    except ToolError as error:
        raise ToolError(f"{name}: {error.message}", mend=error.mend) from error
    told = "".join(dict.fromkeys(note(likeness) for likeness in after.likenesses))
    if old == new:
        return [FileEdit(name, before, after.data, _mode(patch, before), told)]
    edits = []
    if new is not None:
        edits.append(FileEdit(new, replaced, after.data, _mode(patch, before), told))
    if old is not None:
        await _check_no_link(context.sandbox, old, moved=new is not None)
        edits.append(FileEdit(old, before, None))
    return edits


async def _planned_link(patch: FilePatch, path: str, sandbox: Sandbox) -> FileEdit:
    before = await read_link(sandbox, path)
    if patch.old is None and before is None:
        await _replaced(sandbox, path)
    elif patch.old is None:
        raise ToolError(f"{path}: It exists already.", mend="Send a change of the link.")
    try:
        target = await link_after(sandbox, patch, before)
    except ToolError as error:
        raise ToolError(f"{path}: {error.message}", mend=error.mend) from error
    return FileEdit(path, before, target, link=True)


async def _replaced(sandbox: Sandbox, path: str) -> Blob | None:
    """Return the empty file that a new one takes the place of; `ToolError` for any other."""
    try:
        existing = await sandbox.read(path, limit=1)
    except ToolError:
        return None
    if existing.size:
        raise ToolError("It exists already.", mend="Send a change of the file that is there.")
    return existing


async def _check_no_link(sandbox: Sandbox, path: str, *, moved: bool) -> None:
    if moved and (await sandbox.run(Command(("readlink", "--", path), timeout=_SECONDS))).stdout:
        raise ToolError(f"{path}: it is a link, which a patch cannot move.")


def _mode(patch: FilePatch, before: Blob | None) -> int | None:
    wanted = [mode for mode in patch.modes if mode.startswith(("new mode", "new file mode"))]
    kept = None if before is None or patch.old == patch.new else before.mode
    if not wanted:
        return kept
    bits = wanted[-1].split()[-1]
    if bits not in ("100644", "100755"):
        raise ToolError(
            f"A patch cannot give a file the mode {bits}.", mend="Use 100644 or 100755."
        )
    if before is None:
        return 0o755 if bits == "100755" else 0o644
    return before.mode | (before.mode & 0o444) >> 2 if bits == "100755" else before.mode & ~0o111
