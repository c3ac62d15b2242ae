"""The project under test itself, installed editable: its metadata, entry points and what it builds.

The build runs in a sandbox that has nothing of `/venv` and reaches the package mirrors alone. Of
what it leaves, descriptions are taken as text, paths within the workspace, and files that it has
made in the tree. So nothing that a build has written runs before the tests do, and whatever it does
costs no more than its time.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from packaging.requirements import InvalidRequirement
from pydantic import BaseModel, Field, ValidationError

from turnout.errors import SandboxError, ToolError
from turnout.sandbox.bare import BASE_GIT, BASE_TREE
from turnout.sandbox.base import REPO, Mount
from turnout.sandbox.declared.plain import plain
from turnout.sandbox.declared.pyproject import build_requirements
from turnout.sandbox.mirrors.reach import Reach
from turnout.sandbox.rooms.disk import within_disk
from turnout.sandbox.rooms.room import SCRATCH, Room, inside_program, opened_room
from turnout.sandbox.setup.keeping import Keeping, Listed
from turnout.sandbox.setup.metadata import lay_out
from turnout.sandbox.setup.pip import OUR_PIP, WHEELS, Pip, our_pip
from turnout.sandbox.setup.tools import Tools, offline_reach
from turnout.sandbox.setup.wheels import Download
from turnout.sandbox.workspace.folders import readable, remove_folder, short_hash
from turnout.sandbox.workspace.shelf import Facts, Shelf

__all__ = ["Project", "Source", "prepare_project"]

_BUILD_FILES: Final = ("pyproject.toml", "setup.cfg", "setup.py")
_BUILD_SECONDS = 300.0
_DESCRIBE_SECONDS = 60.0
_MOST_MADE = 512 << 20
_END_OF_BUILD = "[end of output]"
_VENV = f"{SCRATCH}/venv"
_END_OF_TIME = "did not end in time"
_FETCHES = "pip subprocess to install"
_SPECIAL = re.compile(r"[\\*?\[\]# !]")
_ESCAPED = r"\\\g<0>"
_USUAL_BACKEND: Final = ("setuptools", "wheel", "editables")


@dataclass(frozen=True, slots=True)
class Source:
    """What a project is installed from."""

    tree: Path
    history: Path
    texts: Mapping[str, str]
    """Files that declare dependencies, by path, as they are to be."""
    changed: tuple[tuple[str, str], ...] = ()
    """Those of them that are not the commit's."""
    native: str = ""
    """Another one where compiled sources differ."""
    preparing: str = ""
    """Another one where what a set-up command goes by differs."""

    @property
    def repository(self) -> str:
        """Another one for another repository: a build runs more of its code than is declared."""
        return self.history.name.partition("-")[0]


@dataclass(frozen=True, slots=True)
class Project:
    """A project as it was installed."""

    shown: Path | None = None
    """Folder with metadata and scripts; None where it could not be installed."""
    made: Path | None = None
    """Folder with files of the workspace that the build has made; None where it made none."""
    requirements: tuple[str, ...] = ()
    """Plain lines of its metadata, or those that its `setup.py` states."""
    warnings: tuple[str, ...] = ()


class _Facts(Facts):
    installed: bool = False
    made: bool = False
    requirements: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class _Told(BaseModel):
    """What a sandbox tells of an installation."""

    files: dict[str, str] = Field(default_factory=dict)
    paths: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    stated: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    made_all: bool = True


async def prepare_project(tools: Tools, source: Source) -> Project:
    """Install a project, or find it installed; one that cannot be is told in a warning.

    Commits of one repository whose manifests are the same share the result: the workspace is at
    the same path for all of them.
    """
    build = _Build(tools, source)
    found = await Shelf(tools.state_dir, "projects", _Facts).get(build.key, build.make)
    facts = found.facts
    return Project(
        shown=found.folder / "shown" if facts.installed else None,
        made=found.folder / "made" if facts.made else None,
        requirements=facts.requirements,
        warnings=facts.warnings,
    )


class _Build:
    """Installs one project."""

    def __init__(self, tools: Tools, source: Source) -> None:
        self._tools = tools
        self._source = source

    @property
    def key(self) -> str:
        """Another one for whatever may be installed otherwise."""
        texts = {path: text for path, text in self._source.texts.items() if _is_read(path)}
        programs = [inside_program("venv.py"), inside_program("project.py")]
        source = [self._source.repository, self._source.native]
        facts = [self._tools.interpreter.key, texts, source, programs]
        return short_hash(json.dumps(facts, sort_keys=True))

    async def make(self, folder: Path) -> _Facts:
        """Build below an empty folder."""
        reach = await self._tools.mirrors.reach()
        if reach.obstacle:
            wheels = Download(readable(folder / "wheels"), self._tools.interpreter)
            backend = [*build_requirements(self._source.texts), *_USUAL_BACKEND]
            if not await wheels.fetch(["pip", *backend]):
                await wheels.fetch(["pip", *_USUAL_BACKEND])
            reach = offline_reach(await wheels.opened())
        try:
            return await within_disk(self._tools.state_dir, self._build(folder, reach))
        except SandboxError as error:
            return _failed(f"its sandbox failed: {error.message}")
        finally:
            await remove_folder(folder / "wheels")

    async def _build(self, folder: Path, reach: Reach) -> _Facts:
        pip_folders = our_pip()
        base = [
            Mount(str(self._source.tree), BASE_TREE),
            Mount(str(self._source.history), BASE_GIT),
        ]
        mounts = [*base, *pip_folders, *reach.folders]
        async with opened_room(
            self._tools.starter, mounts, workspace="from_base", egress=reach.egress
        ) as room:
            for path, text in self._source.changed:
                await _change(room, path, text)
            pip = Pip(room, _VENV, seconds=_BUILD_SECONDS)
            await pip.begin(OUR_PIP if pip_folders else WHEELS, reach.files)
            await pip.install("--no-deps", "--use-pep517", "--editable", REPO)
            await room.sandbox.kill_all()
            told = await _describe(room)
            made = await self._keep_made(room, folder, told.made)
        installed = lay_out(readable(folder / "shown"), told.files, told.paths)
        return _facts(told, pip.said, installed=installed, made=made)

    async def _keep_made(self, room: Room, folder: Path, paths: Sequence[str]) -> bool:
        """Keep files that the build has made in the tree; whether there are any."""
        if not paths:
            return False
        listed = Listed("-", b"\0".join(path.encode() for path in paths))
        rules = "".join(["node_modules/\n", *map(_ignored, paths)])
        keeping = Keeping(self._tools.starter, _MOST_MADE, "What the build has made")
        return await keeping.keep(room.sandbox, listed, rules, readable(folder / "made"))


def _is_read(path: str) -> bool:
    """Say whether a build may look into a manifest; lists of requirements are often read by it."""
    return path in _BUILD_FILES or path.endswith(".txt")


async def _change(room: Room, path: str, text: str) -> None:
    """Write a changed manifest; where it cannot be, the build goes on with what is there."""
    try:
        await room.sandbox.write(path, text.encode())
    except ToolError:
        return


async def _describe(room: Room) -> _Told:
    result = await room.run("project.py", _VENV, REPO, BASE_TREE, timeout=_DESCRIBE_SECONDS)
    try:
        return _Told.model_validate_json(result.stdout)
    except ValidationError:
        return _Told()


def _ignored(path: str) -> str:
    """Return the rule by which git ignores this path alone."""
    return "" if "\n" in path else f"/{_SPECIAL.sub(_ESCAPED, path)}\n"


def _failed(why: str, *, lacking: bool = True) -> _Facts:
    said = f"The project could not be installed, so it has no metadata and no entry points: {why}."
    return _Facts(lacking=lacking, warnings=(said,))


def _is_final(complaint: str) -> bool:
    """Say whether the project's own build has failed, rather than something that may pass."""
    built = _END_OF_BUILD in complaint and _FETCHES not in complaint
    return built or _END_OF_TIME in complaint


def _facts(told: _Told, complaint: str, *, installed: bool, made: bool) -> _Facts:
    facts = _Facts(installed=True)
    if not installed:
        facts = _failed(_last_error(complaint), lacking=not _is_final(complaint))
    warnings = list(facts.warnings)
    if not told.made_all:
        warnings.append("What the project's build makes in the tree is too much; left out.")
    lines = told.requires if installed else told.stated
    update = {"made": made, "warnings": tuple(warnings), "requirements": tuple(_plain(lines))}
    return facts.model_copy(update=update)


def _plain(lines: Iterable[str]) -> Iterable[str]:
    for line in lines:
        try:
            yield plain(line)
        except InvalidRequirement:
            continue


def _last_error(complaint: str) -> str:
    """Return what pip said about it, for people: of a build the last line that it printed."""
    lines = [line.strip(" ×╰─>│") for line in complaint.splitlines()]
    if _END_OF_BUILD in lines:
        lines = lines[: lines.index(_END_OF_BUILD)]
    told = [line for line in lines if line and not line.startswith("note:")]
    said = told[-1] if told else "pip did not say why"
    return "".join(letter if letter.isprintable() else " " for letter in said)[:200].rstrip(".")
