"""What a run has changed, found out by a sandbox that the run never touched.

The tree leaves the run's sandbox as a tar stream, which the host passes on without looking at it.
"""

from collections.abc import AsyncIterator
from importlib.resources import files
from pathlib import Path
from secrets import token_hex
from typing import Literal

from pydantic import BaseModel, ValidationError

from turnout.core.ids import RunId
from turnout.core.runs import FileChange, Patch
from turnout.errors import SandboxError
from turnout.sandbox.bare import BASE_GIT, BareStarter
from turnout.sandbox.base import BASE_ENV, REPO, Command, Exit, Limits, Mount, Sandbox

__all__ = ["collect_patch", "read_collected"]

_TIMEOUT = 600.0
_MOST_TREE = 8 << 30
_MOST_OUTPUT = 256 << 20
_MOST_COMPLAINT = 4_000
_LIMITS = Limits(memory_bytes=4 << 30, disk_bytes=4 << 30, file_bytes=2 << 30)
_SCRATCH = f"{BASE_ENV['TMPDIR']}/collect"

_SEND_TREE = r"""
export LC_ALL=C PATH=/usr/bin:/bin
find . -type d ! -perm -u+rwx -execdir chmod u+rwx {} \; 2>/dev/null
find . -type f ! -perm -u+r -execdir chmod u+r {} \; 2>/dev/null
set -o pipefail
find . -mindepth 1 -path ./.git -prune -o -regextype posix-extended -regex '.{3900,}' -prune \
    -o \( -type d -o -type f -o -type l \) -print0 |
tar --create --file=- --format=gnu --sparse --no-recursion --null --files-from=-
"""


class _Change(BaseModel):
    path: str
    status: Literal["A", "M", "D", "T"]
    lines: tuple[str, str]


class _Collected(BaseModel):
    changes: tuple[_Change, ...]
    excluded: tuple[str, ...]
    excluded_total: int
    unrecorded: tuple[str, ...]


async def collect_patch(
    starter: BareStarter, sandbox: Sandbox, history: Path, commit: str
) -> Patch:
    """Compare the workspace of `sandbox` with `commit`, having ended every process inside.

    `history` is the bare git directory that the base layer was made from. `SandboxError` where the
    workspace has become too large to be compared.
    """
    await sandbox.kill_all()
    mounts = [Mount(str(history), BASE_GIT)]
    collector = await starter.start_bare(RunId(f"collect-{token_hex(6)}"), mounts, _LIMITS)
    try:
        source = files("turnout.sandbox.inside").joinpath("collect.py").read_text("utf-8")
        tree = _Program(sandbox, _MOST_TREE)
        arguments = (BASE_GIT, REPO, _SCRATCH, commit)
        compare = Command(
            argv=(starter.python, "-ISE", "-c", source, *arguments),
            stdin=tree.output(Command(argv=("/bin/bash", "-c", _SEND_TREE), raw=True)),
            timeout=_TIMEOUT,
            raw=True,
        )
        result = _Program(collector, _MOST_OUTPUT)
        output = b"".join([data async for data in result.output(compare)])
    finally:
        await collector.close()
    tree.check("the workspace could not be read")
    result.check("the workspace could not be compared with its base")
    return read_collected(output)


class _Program:
    """A command whose standard output is passed on as it comes, up to a limit."""

    def __init__(self, sandbox: Sandbox, limit: int) -> None:
        self._sandbox = sandbox
        self._limit = limit
        self._exit: Exit | None = None
        self._passed = 0
        self._complaint = bytearray()

    async def output(self, command: Command) -> AsyncIterator[bytes]:
        """Yield what the command prints; over the limit, end it and yield no more."""
        async for item in self._sandbox.exec(command):
            if isinstance(item, Exit):
                self._exit = item
            elif item.stream == "stderr":
                self._complaint += item.data[: _MOST_COMPLAINT - len(self._complaint)]
            elif self._passed <= self._limit:
                self._passed += len(item.data)
                if self._passed > self._limit:
                    await self._sandbox.kill_all()
                else:
                    yield item.data

    def check(self, what: str) -> None:
        """Raise where the command did not come to a good end."""
        if self._passed > self._limit:
            raise SandboxError(
                f"After the run {what}: more than {self._limit >> 20} MiB.",
                mend="Let the task leave less behind.",
            )
        if self._exit is None:
            raise SandboxError(f"After the run {what}: the command was not heard of again.")
        if self._exit.reason != "exited" or self._exit.code != 0:
            said = self._complaint.decode(errors="backslashreplace").strip()
            raise SandboxError(
                f"After the run {what}: {self._exit.reason}, {said[-500:] or self._exit.error}"
            )


def read_collected(output: bytes) -> Patch:
    """Read what the collector printed: a line of JSON, then the patch."""
    head, _, diff = output.partition(b"\n")
    try:
        collected = _Collected.model_validate_json(head)
    except ValidationError as error:
        raise SandboxError("The collector's answer cannot be read.") from error
    if collected.unrecorded:
        raise SandboxError(f"Changes of {', '.join(collected.unrecorded[:5])} were not recorded.")
    excluded = collected.excluded
    if collected.excluded_total > len(excluded):
        excluded += (f"… and {collected.excluded_total - len(excluded)} more",)
    return Patch(diff, tuple(_change(change) for change in collected.changes), excluded)


def _change(change: _Change) -> FileChange:
    added, deleted = (int(count) if count.isdigit() else None for count in change.lines)
    match change.status:
        case "A":
            return FileChange(change.path, "added", added, deleted)
        case "M":
            return FileChange(change.path, "modified", added, deleted)
        case "D":
            return FileChange(change.path, "deleted", added, deleted)
        case "T":
            return FileChange(change.path, "type_changed", added, deleted)
