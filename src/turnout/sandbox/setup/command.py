"""A command of the user's that sets the workspace up, run once for what it goes by.

It runs on the files of the commit, never on those that a run has changed: what a model has written
must not run where the environment of the tests can be changed. It reaches the package mirrors and
nothing else. What it leaves in the workspace and in `/venv` is kept, but no file of the commit.
"""

import json
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ValidationError

from turnout.errors import SandboxUnavailableError, UnfitError
from turnout.sandbox.bare import BASE_GIT, BASE_MORE, BASE_TREE, BASE_VENV
from turnout.sandbox.base import PROJECT, REPO, VENV, Command, CommandResult, Mount
from turnout.sandbox.mirrors.packages import packages_egress
from turnout.sandbox.mirrors.reach import to_public
from turnout.sandbox.rooms.disk import within_disk
from turnout.sandbox.rooms.room import SCRATCH, Room, inside_program, last_words, opened_room
from turnout.sandbox.setup.keeping import Keeping, Listed
from turnout.sandbox.setup.project import Source
from turnout.sandbox.setup.tools import Tools
from turnout.sandbox.workspace.folders import readable, short_hash
from turnout.sandbox.workspace.shelf import Facts, Shelf

__all__ = ["Beneath", "Done", "prepare_setup"]

_SECONDS: Final = 1_800.0
_LOOK_SECONDS = 300.0
_MOST_MADE = 4 << 30
_LAST_LINES = 12
_LONGEST_LINE = 300
_COPY: Final = ("cp", "-a", "--reflink=auto", f"{BASE_VENV}/.", VENV)
_MADE_PY: Final = "setup/made.py"
_MEMORY: Final = f"{SCRATCH}/memory"
_LISTING: Final = f"{SCRATCH}/listing"
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Beneath:
    """What the command starts from, beside the tree."""

    commit: str
    environment: Path
    under: tuple[Path, ...]
    """As in `Layer.under`."""


@dataclass(frozen=True, slots=True)
class Done:
    """The same after the command."""

    environment: Path
    under: tuple[Path, ...]
    warnings: tuple[str, ...]


class _Facts(Facts):
    made: bool = False
    warnings: tuple[str, ...] = ()


class _Told(BaseModel):
    """What a sandbox tells of what was made."""

    paths: int
    rules: str
    changed: tuple[str, ...]
    unreadable: tuple[str, ...]
    all: bool


async def prepare_setup(tools: Tools, source: Source, beneath: Beneath, command: str) -> Done:
    """Run the command, or find it done; `UnfitError` where it fails, with its last words.

    Commits of one repository share the result where dependencies, lock files and programs are the
    same.
    """
    setup = _Setup(tools, source, beneath, command)
    found = await Shelf(tools.state_dir, "setups", _Facts).get(setup.key, setup.make)
    made = (found.folder / "made",) if found.facts.made else ()
    return Done(found.folder / "venv", (*made, *beneath.under), found.facts.warnings)


class _Setup:
    """Sets one workspace up."""

    def __init__(self, tools: Tools, source: Source, beneath: Beneath, command: str) -> None:
        self._tools = tools
        self._source = source
        self._beneath = beneath
        self._command = command

    @property
    def key(self) -> str:
        """Another one for whatever may come out otherwise."""
        source, beneath = self._source, self._beneath
        folders = [folder.parent.name for folder in (beneath.environment, *beneath.under)]
        facts = [source.repository, source.preparing, dict(source.texts), folders, self._command]
        programs = [inside_program(_MADE_PY), inside_program("venv.py")]
        return short_hash(json.dumps([*facts, *programs], sort_keys=True))

    async def make(self, folder: Path) -> _Facts:
        """Run it, and keep what it leaves below an empty folder."""
        return await within_disk(self._tools.state_dir, self._run(folder))

    async def _run(self, folder: Path) -> _Facts:
        shown = [
            (self._source.tree, BASE_TREE),
            (self._source.history, BASE_GIT),
            (self._beneath.environment, BASE_VENV),
            *((each, f"{BASE_MORE}/{n}") for n, each in enumerate(self._beneath.under)),
        ]
        mounts = [Mount(str(source), target) for source, target in shown]
        mounts.append(Mount(str(readable(folder / "venv")), VENV, writable=True))
        async with AsyncExitStack() as stack:
            room = await self._room(stack, mounts)
            _check(await room.sandbox.run(Command(_COPY, cwd="/", timeout=_LOOK_SECONDS)))
            _check(await room.run("relocate.py", VENV, PROJECT, REPO))
            _check(await room.run(_MADE_PY, "remember", REPO, _MEMORY, timeout=_LOOK_SECONDS))
            result = await room.sandbox.run(Command(shell=self._command, timeout=_SECONDS))
            if not result.ok:
                raise _failed(self._command, result)
            await room.sandbox.kill_all()
            plugin = inside_program("pytest_report.py").encode()
            finished = await room.run("venv.py", "finish", VENV, PROJECT, stdin=plugin)
            _check(finished, f"The set-up command leaves {VENV} unfit for use")
            told = await self._told(room)
            return await self._kept(room, folder, told)

    async def _room(self, stack: AsyncExitStack, mounts: Sequence[Mount]) -> Room:
        """Open a sandbox that reaches as much of the mirrors as one of its kind can."""
        starter = self._tools.starter
        mirrors = await packages_egress(self._tools.state_dir)
        for egress in (mirrors, to_public(mirrors)):
            room = opened_room(starter, mounts, workspace="from_base", egress=egress)
            with suppress(SandboxUnavailableError):
                return await stack.enter_async_context(room)
        return await stack.enter_async_context(opened_room(starter, mounts, workspace="from_base"))

    async def _told(self, room: Room) -> _Told:
        arguments = ("tell", REPO, BASE_GIT, self._beneath.commit, _MEMORY, _LISTING)
        result = await room.run(_MADE_PY, *arguments, timeout=_LOOK_SECONDS)
        _check(result, "What the set-up command made cannot be looked at")
        try:
            told = _Told.model_validate_json(result.stdout)
        except ValidationError:
            raise UnfitError("What the set-up command made cannot be read.") from None
        if told.unreadable:
            raise UnfitError(
                f"The set-up command leaves what cannot be read: {_some(told.unreadable)}.",
                mend="Let it end with the right of the owner to read what it makes: "
                "chmod -R u+rX PATH.",
            )
        if not told.all:
            raise UnfitError(
                "The set-up command makes too much in the workspace.",
                mend="Let it make less than 300,000 files and 4 GiB, in folders of their own.",
            )
        return told

    async def _kept(self, room: Room, folder: Path, told: _Told) -> _Facts:
        warnings = _left_out(told.changed)
        if not told.paths:
            return _Facts(warnings=warnings)
        keeping = Keeping(self._tools.starter, _MOST_MADE, "What the set-up command has made")
        made = readable(folder / "made")
        if not await keeping.keep(room.sandbox, Listed(_LISTING), told.rules, made):
            raise UnfitError("What the set-up command has made could not be kept.")
        return _Facts(made=True, warnings=warnings)


def _left_out(changed: Sequence[str]) -> tuple[str, ...]:
    if not changed:
        return ()
    told = "The set-up command changes files of the commit; a run sees them unchanged"
    return (f"{told}: {_some(changed)}.",)


def _some(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    names = ["".join(c if c.isprintable() else "?" for c in path) for path in paths[:_SHOWN]]
    return f"{', '.join(names)}{more}"


def _check(result: CommandResult, what: str = "The set-up command could not be run") -> None:
    if not result.ok:
        raise UnfitError(f"{what}: {last_words(result)}.")


def _failed(command: str, result: CommandResult) -> UnfitError:
    """Return the error for a command that failed, with the end of what it printed."""
    ended = result.exit
    if ended.reason == "timeout":
        how = f"did not end within {_SECONDS / 60:.0f} minutes"
    elif ended.reason == "exited":
        how = f"failed with exit status {ended.code}"
    else:
        how = f"was ended: {ended.error or ended.reason.replace('_', ' ')}"
    said = _last_lines(result.stderr) or _last_lines(result.stdout)
    shown = command if len(command) <= _LONGEST_LINE else f"{command[:_LONGEST_LINE]}…"
    lines = "".join(f"\n  {line}" for line in said) + "\n" if said else ""
    return UnfitError(
        f"The set-up command `{shown}` {how}.{lines}",
        mend="It runs on a fresh checkout and reaches the mirrors of pip and npm alone; "
        "see `[tests] setup`.",
    )


def _last_lines(output: bytes) -> Sequence[str]:
    lines = output.decode(errors="backslashreplace").strip().splitlines()
    return ["".join(c if c.isprintable() else " " for c in line)[:_LONGEST_LINE] for line in lines][
        -_LAST_LINES:
    ]
