"""Node modules, installed once for each lock file.

They lie under the tree of the commit, so that a workspace has them without a copy, and a module
that the commit holds itself is the one that counts.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ValidationError

from turnout.errors import ConfigError, SandboxError, SandboxUnavailableError
from turnout.sandbox.bare import BASE_TREE
from turnout.sandbox.base import Egress, Mount
from turnout.sandbox.inside.checkout import NODE
from turnout.sandbox.mirrors.npm_settings import NpmSettings, ask_npm
from turnout.sandbox.mirrors.reach import rules_for
from turnout.sandbox.rooms.disk import within_disk
from turnout.sandbox.rooms.room import SCRATCH, inside_program, last_words, opened_room
from turnout.sandbox.setup.project import Source
from turnout.sandbox.setup.tools import Tools
from turnout.sandbox.workspace.folders import readable, short_hash
from turnout.sandbox.workspace.shelf import Facts, Shelf

__all__ = ["NodeModules", "prepare_modules"]

_LOCKS: Final = ("npm-shrinkwrap.json", "package-lock.json")
_TARGET = f"{SCRATCH}/modules"
_TIMEOUT = 600.0


@dataclass(frozen=True, slots=True)
class NodeModules:
    """What was installed."""

    folder: Path | None = None
    """Laid out as the workspace is, with the `node_modules` folders alone; None: there are none."""
    warnings: tuple[str, ...] = ()


class _Facts(Facts):
    warnings: tuple[str, ...] = ()


class _Told(BaseModel):
    npm: bool
    complete: bool


async def prepare_modules(tools: Tools, source: Source, nodes: Mapping[str, str]) -> NodeModules:
    """Install what a lock file at the top of the tree names, or find it installed.

    `nodes` are names of the contents of the files that npm looks at. What cannot be had is told.
    """
    changed = {path: text for path, text in source.changed if NODE.fullmatch(path)}
    if not _has_dependencies(source.texts.get("package.json", "")):
        return NodeModules()
    if not any(lock in nodes or changed.get(lock) for lock in _LOCKS):
        why = "there is no package-lock.json; a set-up command can install them"
        return NodeModules(None, (f"Node modules are missing: {why}.",))
    key = short_hash(
        json.dumps([tools.interpreter.key, dict(nodes), changed, inside_program("node.py")])
    )

    async def make(folder: Path) -> _Facts:
        modules = readable(folder / "modules")
        work = _install(tools, source.tree, modules, changed)
        try:
            why = await within_disk(tools.state_dir, work)
        except (SandboxError, SandboxUnavailableError) as error:
            why = error.message.rstrip(".")
        told = (f"Node modules are missing: {why}.",) if why else ()
        return _Facts(lacking=bool(why), warnings=told)

    made = await Shelf(tools.state_dir, "nodes", _Facts).get(key, make)
    folder = None if made.facts.lacking else made.folder / "modules"
    return NodeModules(folder, made.facts.warnings)


def _has_dependencies(text: str) -> bool:
    try:
        package = json.loads(text)
    except (ValueError, RecursionError):
        return False
    kinds = ("dependencies", "devDependencies", "optionalDependencies", "workspaces")
    return isinstance(package, dict) and any(package.get(kind) for kind in kinds)


async def _install(tools: Tools, tree: Path, modules: Path, changed: Mapping[str, str]) -> str:
    """Install into a folder and return why that failed, or nothing."""
    npm = await ask_npm()
    if npm is None:
        return "npm is not installed, run `apt install npm`"
    if npm.proxy:
        return "npm is told to use a proxy"
    try:
        egress = Egress(
            rules_for(npm.places),
            ca_files=(npm.certificates,) if npm.certificates else (),
            setting="npm's own configuration",
        )
    except ConfigError as error:
        return error.message.rstrip(".")
    mounts = [Mount(str(tree), BASE_TREE), Mount(str(modules), _TARGET, writable=True)]
    given = json.dumps({"changed": dict(changed), "npmrc": _npmrc(npm)}).encode()
    async with opened_room(tools.starter, mounts, egress=egress) as room:
        arguments = (BASE_TREE, _TARGET, f"{SCRATCH}/npm")
        result = await room.run("node.py", *arguments, stdin=given, timeout=_TIMEOUT)
    try:
        told = _Told.model_validate_json(result.stdout)
    except ValidationError:
        return last_words(result)
    if not told.npm:
        return "npm is not among the programs that a sandbox has, run `apt install npm`"
    return "" if told.complete else f"npm says: {last_words(result)}"


def _npmrc(npm: NpmSettings) -> str:
    scoped = "".join(f"{scope}:registry={place.bare}\n" for scope, place in npm.scoped)
    return f"registry={npm.registry.bare}\nfetch-retries=1\n{scoped}"
