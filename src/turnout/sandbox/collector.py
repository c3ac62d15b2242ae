"""What a run has changed, found out by a sandbox that the run never touched.

What there is to look at leaves the run's sandbox as a stream, which the host passes on unread.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex
from typing import Literal

from pydantic import BaseModel, ValidationError

from turnout.core.ids import RunId
from turnout.core.runs import FileChange, Patch
from turnout.errors import SandboxDiedError, SandboxError
from turnout.sandbox.bare import BASE_GIT, BASE_MORE, BASE_TREE, BareStarter
from turnout.sandbox.base import BASE_ENV, REPO, Command, Limits, Mount, Sandbox
from turnout.sandbox.rooms.piping import Piped
from turnout.sandbox.rooms.room import inside_program
from turnout.sandbox.walls.arguments import FILES_INSIDE
from turnout.sandbox.walls.launch import CHANGES_INSIDE

__all__ = ["Collection", "collect_folder", "collect_patch", "read_collected"]

_TIMEOUT = 600.0
_MOST_TREE = 8 << 30
_MOST_OUTPUT = 256 << 20
_LIMITS = Limits(memory_bytes=4 << 30, disk_bytes=4 << 30, file_bytes=2 << 30)
_SCRATCH = f"{BASE_ENV['TMPDIR']}/collect"
_SNAPSHOT = f"{FILES_INSIDE}/snapshot.py"

_SEND_TREE = r"""
export LC_ALL=C PATH=/usr/bin:/bin
find . -type d ! -perm -u+rwx -execdir chmod u+rwx {} \; 2>/dev/null
find . -type f ! -perm -u+r -execdir chmod u+r {} \; 2>/dev/null
set -o pipefail
{
    find . -mindepth 1 -path ./.git -prune -o -regextype posix-extended -regex '.{3900,}' -prune \
        -o \( -type d -o -type f -o -type l \) -print0 &&
    if [ -f .git/index ] && ! [ -L .git ]; then
        find ./.git/index -type f -size -64M -print0
    fi
} |
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
    starter: BareStarter,
    sandbox: Sandbox,
    history: Path,
    commit: str,
    *,
    begun: Path | None = None,
    under: Sequence[Path] = (),
) -> Patch:
    """Compare the workspace of `sandbox` with `commit`, having ended every process inside.

    `history` is the bare git directory that the base layer was made from, `under` what lies under
    its tree. `begun` is that tree, where the workspace lies over it, nothing else between, and its
    changes are shown inside: then these alone are looked at, unless that fails. `SandboxError`
    where the workspace has become too large to be compared.
    """
    await sandbox.kill_all()
    collection = Collection(starter, sandbox, history, commit, tuple(under))
    if begun is not None:
        try:
            return await collection.of_changes(begun)
        except SandboxDiedError:
            raise
        except SandboxError:
            # Paths that are too long for one call are an example; the whole tree leaves them out.
            return await collection.of_tree()
    return await collection.of_tree()


async def collect_folder(starter: BareStarter, folder: Path, history: Path, commit: str) -> Patch:
    """Compare a checkout that a program on this machine has changed with `commit`.

    It is read by a sandbox that shows it read-only; whoever asks makes it readable by others, and
    sees to it that nothing writes to it meanwhile.
    """
    shown = [Mount(str(folder), BASE_TREE)]
    sandbox = await starter.start_bare(RunId(f"checkout-{token_hex(6)}"), shown, _LIMITS)
    try:
        return await Collection(starter, sandbox, history, commit).of_folder(BASE_TREE)
    finally:
        await sandbox.close()


@dataclass(frozen=True, slots=True)
class Collection:
    """One workspace that is compared with its base."""

    starter: BareStarter
    sandbox: Sandbox
    history: Path
    commit: str
    under: tuple[Path, ...] = ()

    async def of_changes(self, begun: Path) -> Patch:
        """Look at what has changed since the run began."""
        pack = (_SNAPSHOT, "pack", "repo", f"{CHANGES_INSIDE}/repo", BASE_TREE, REPO)
        send = Command(argv=(self.starter.python, "-ISE", *pack), cwd="/", raw=True)
        base = Mount(str(begun), BASE_TREE)
        return await self._compare(send, ("changes", BASE_TREE, _SNAPSHOT), [base])

    async def of_tree(self) -> Patch:
        """Look at every file."""
        send = Command(argv=("/bin/bash", "-c", _SEND_TREE), raw=True)
        return await self._compare(send, ("tree",), [])

    async def of_folder(self, place: str) -> Patch:
        """Look at every file of a folder that is shown inside."""
        send = Command(argv=("/bin/bash", "-c", _SEND_TREE), cwd=place, raw=True)
        return await self._compare(send, ("tree",), [])

    async def _compare(
        self, send: Command, arguments: Sequence[str], mounts: Sequence[Mount]
    ) -> Patch:
        """Send from one sandbox to another and read what that has found."""
        more = [Mount(str(path), f"{BASE_MORE}/{n}") for n, path in enumerate(self.under)]
        shown = [Mount(str(self.history), BASE_GIT), *more, *mounts]
        run_id = RunId(f"collect-{token_hex(6)}")
        collector = await self.starter.start_bare(run_id, shown, _LIMITS)
        try:
            program = (self.starter.python, "-ISE", "-c", inside_program("collect.py"))
            tree = Piped(self.sandbox, _MOST_TREE)
            compare = Command(
                argv=(*program, BASE_GIT, _SCRATCH, self.commit, BASE_MORE, *arguments),
                stdin=tree.output(replace(send, timeout=_TIMEOUT)),
                timeout=_TIMEOUT,
                raw=True,
            )
            result = Piped(collector, _MOST_OUTPUT)
            output = b"".join([data async for data in result.output(compare)])
        finally:
            await collector.close()
        tree.check("After the run the workspace could not be read")
        result.check("After the run the workspace could not be compared with its base")
        return read_collected(output)


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
