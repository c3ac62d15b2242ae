"""A workspace in memory."""

import hashlib
import posixpath
import re
from collections.abc import Mapping

from turnout.core.runs import Patch
from turnout.errors import ToolError
from turnout.sandbox.base import REPO, WORKSPACE, Blob, Listing, PatchResult, SearchHit
from turnout.sandbox.inside.find import glob_expression, matching_lines
from turnout.sandbox.patches import check_patch, names_git
from turnout.testing.sandbox.patching import FakeFile, apply_to, difference

__all__ = ["ScriptedFiles", "fake_file"]


def fake_file(content: str | bytes | FakeFile) -> FakeFile:
    """Return a file with this content."""
    if isinstance(content, FakeFile):
        return content
    return FakeFile(content.encode() if isinstance(content, str) else content)


def _inside(path: str, verb: str) -> str:
    """Return a path relative to the workspace; `ToolError` where it leaves it."""
    if "\0" in path or not path:
        raise ToolError(f"{path!r} is no path.")
    if path == WORKSPACE or path.startswith(f"{WORKSPACE}/"):
        path = REPO + path[len(WORKSPACE) :]
    full = posixpath.normpath(posixpath.join(REPO, path))
    if full != REPO and not full.startswith(f"{REPO}/"):
        raise ToolError(f"{path} cannot be {verb}: the path leaves the workspace.")
    return full[len(REPO) + 1 :]


class ScriptedFiles:
    """The calls of a `Sandbox` that are about its files."""

    def __init__(self, files: Mapping[str, str | bytes | FakeFile]) -> None:
        self.files: dict[str, FakeFile] = {
            path: fake_file(content) for path, content in files.items()
        }
        """The workspace, by path; tests may change it."""
        self.base: dict[str, FakeFile] = dict(self.files)
        """What `diff` compares with."""

    def note(self, name: str, subject: str) -> None:
        """Be told of each call before it is done."""

    async def read(self, path: str, *, offset: int = 0, limit: int = 1 << 20) -> Blob:
        """Read a file; `ToolError` where there is none."""
        self.note("read", path)
        if offset < 0 or limit < 0:
            raise ToolError("Offset and limit of a read are not negative.")
        name = _inside(path, "read")
        file = self.files.get(name)
        if file is None:
            is_folder = not name or any(each.startswith(f"{name}/") for each in self.files)
            reason = "it is a folder, not a file" if is_folder else "No such file or directory"
            raise ToolError(f"{path} cannot be read: {reason}.")
        digest = hashlib.sha256(file.data).hexdigest()
        return Blob(file.data[offset : offset + limit], len(file.data), file.mode, digest)

    async def write(
        self, path: str, data: bytes, *, mode: int | None = None, expect_sha256: str | None = None
    ) -> None:
        """Write a file."""
        self.note("write", path)
        name = _inside(path, "written")
        if names_git(name.encode(errors="surrogateescape")):
            raise ToolError(f"{path} cannot be written: files of .git are not written by tools.")
        if not name or any(each.startswith(f"{name}/") for each in self.files):
            raise ToolError(f"{path} cannot be written: it exists and is not a regular file.")
        before = self.files.get(name)
        if expect_sha256 is not None:
            if before is None:
                raise ToolError(f"{path} cannot be read: No such file or directory.")
            if hashlib.sha256(before.data).hexdigest() != expect_sha256:
                raise ToolError(
                    f"{path} is not the file that was read.", mend="Read it again before writing."
                )
        kept = before.mode if before else 0o644
        self.files[name] = FakeFile(data, kept if mode is None else mode & 0o777)

    async def list(self, pattern: str = "**/*", *, limit: int = 200) -> Listing:
        """Return the files that match a glob."""
        self.note("list", pattern)
        paths = self._matching(pattern)
        return Listing(tuple(paths[: max(0, limit)]), len(paths))

    async def search(
        self, pattern: str, *, glob: str = "**/*", limit: int = 100
    ) -> tuple[SearchHit, ...]:
        """Return lines that match a regular expression."""
        self.note("search", pattern)
        try:
            expression = re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise ToolError(f"This is no regular expression: {error}.") from None
        hits = [
            SearchHit(path, number, line)
            for path in self._matching(glob)
            if b"\0" not in self.files[path].data
            for number, line in matching_lines(
                expression, self.files[path].data.decode(errors="backslashreplace")
            )
        ]
        return tuple(hits[: max(0, limit)])

    async def apply_patch(self, patch: bytes) -> PatchResult:
        """Apply a unified diff, all of it or nothing."""
        self.note("apply_patch", "")
        try:
            paths = check_patch(patch)
        except ToolError as error:
            return PatchResult(False, (), str(error))
        try:
            self.files = apply_to(self.files, patch)
        except ValueError as error:
            return PatchResult(
                False,
                (),
                f"The patch was not applied, nothing was changed: {error} "
                "Read the files again and send a patch whose context lines match them exactly.",
            )
        return PatchResult(True, paths, f"Changed {', '.join(paths)}.")

    async def diff(self) -> Patch:
        """Compare the files with what they were at first."""
        self.note("diff", "")
        return difference(self.base, self.files)

    def _matching(self, pattern: str) -> tuple[str, ...]:
        expression = re.compile(glob_expression(pattern))
        return tuple(
            path
            for path in sorted(self.files)
            if expression.match(path) and ".git" not in path.split("/")
        )
