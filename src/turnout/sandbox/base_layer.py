"""The base layer of a workspace: a commit's tree and the environment of its tests.

State folder, all of it made once and never changed:

    mirrors/       what was fetched of each repository, for the service alone
    histories/     per base: a git directory with the base and its ancestors
    trees/         per base: the work tree, with a `.git` whose objects stay in the history
    environments/  `/venv` folders
    projects/      per set of manifests: metadata of the project itself, and what its build made
    nodes/         per lock file: node modules
    setups/        per set-up command and what it goes by: what it made, with a `/venv` of its own
    layers/        one manifest per base layer, by the key of its `BaseRef`
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from pydantic import BaseModel, ValidationError

from turnout.errors import SandboxError
from turnout.sandbox.bare import (
    BASE_GIT,
    BASE_MORE,
    BASE_TREE,
    BareStarter,
    WorkspaceKind,
)
from turnout.sandbox.base import PROJECT, VENV, BaseRef, BaseSpec, Mount
from turnout.sandbox.declared.plain import explicit
from turnout.sandbox.declared.read import declared
from turnout.sandbox.setup.checkout import prepare_tree
from turnout.sandbox.setup.command import Beneath, prepare_setup
from turnout.sandbox.setup.environment import prepare_environment
from turnout.sandbox.setup.interpreter import Interpreter, ask_interpreter
from turnout.sandbox.setup.node import NodeModules, prepare_modules
from turnout.sandbox.setup.project import Project, Source, prepare_project
from turnout.sandbox.setup.tools import Mirrors, Tools
from turnout.sandbox.workspace.folders import short_hash, traversable
from turnout.sandbox.workspace.history import fetch_history
from turnout.sandbox.workspace.source import locate
from turnout.sandbox.workspace.use import touched

__all__ = ["BaseLayers", "Layer", "find_layer", "likeness_of", "prepare_base"]


class Layer(BaseModel):
    """Where the parts of a prepared base layer are on the host."""

    commit: str
    """Empty where there is no repository."""
    history: Path | None
    """Bare git directory; the collector compares with it."""
    tree: Path | None
    """None: the workspace begins empty, and there is nothing to compare it with."""
    environment: Path
    project: Path | None = None
    """Metadata and scripts of the project itself."""
    under: tuple[Path, ...] = ()
    """Folders that lie under the tree, uppermost first: further lowers of the workspace.

    What they hold was made, not committed (`node_modules`, say), and is no change of a run's.
    """
    likeness: str = ""
    """The same on every machine that has made the like of it; empty: made before that was noted."""

    @property
    def sent(self) -> tuple[Path, ...]:
        """Those of `under` that are worth sending to where a run is compared with its commit.

        Node modules are many, and left out by their name.
        """
        return tuple(folder for folder in self.under if folder.parent.parent.name != "nodes")

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """What a run's sandbox is shown, all of it read-only."""
        shown = [
            (self.tree, BASE_TREE),
            (self.history, BASE_GIT),
            (self.environment, VENV),
            (self.project, PROJECT),
        ]
        shown += [(folder, f"{BASE_MORE}/{n}") for n, folder in enumerate(self.under)]
        return tuple(Mount(str(folder), target) for folder, target in shown if folder is not None)

    @property
    def workspace(self) -> WorkspaceKind:
        """How a sandbox on this layer begins."""
        return "empty" if self.tree is None else "from_base"

    @property
    def parts(self) -> tuple[Path, ...]:
        """The folders of the state that it consists of."""
        within = (self.tree, self.environment, self.project, *self.under)
        parents = tuple(folder.parent for folder in within if folder is not None)
        return parents if self.history is None else (self.history, *parents)


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a repository gives to a base layer."""

    history: Path | None = None
    source: Source | None = None
    nodes: Mapping[str, str] | None = None
    warnings: tuple[str, ...] = ()


class BaseLayers:
    """Makes base layers with one driver, whose interpreter inside stays the same."""

    def __init__(self) -> None:
        self._asking = asyncio.Lock()
        self._interpreter: Interpreter | None = None

    async def prepare(self, starter: BareStarter, spec: BaseSpec) -> BaseRef:
        """Make the base layer of `spec`, or find it made; safe for concurrent callers.

        Explicit requirements replace those that the repository declares. `RepositoryError` where
        the commit cannot be had, `UnfitError` where the environment cannot be made.
        """
        async with self._asking:
            if self._interpreter is None:
                self._interpreter = await ask_interpreter(starter)
        return await _prepare(Tools(starter, self._interpreter, Mirrors(starter)), spec)


async def prepare_base(starter: BareStarter, spec: BaseSpec) -> BaseRef:
    """Make one base layer, as `BaseLayers` does, having asked for the interpreter."""
    return await BaseLayers().prepare(starter, spec)


async def _prepare(tools: Tools, spec: BaseSpec) -> BaseRef:
    starter = tools.starter
    wanted = None if spec.requirements is None else explicit(spec.requirements)
    parts = await _parts(starter, spec)
    texts = dict(spec.manifests) if parts.source is None else parts.source.texts
    project, modules = await _made(tools, parts, builds=declared(texts).builds)
    warnings = [*parts.warnings, *project.warnings]
    # A command that sets the workspace up sees to what it needs.
    warnings += modules.warnings if spec.setup is None else ()
    pins: tuple[str, ...] = ()
    if wanted is None:
        found = declared(texts, built=project.requirements)
        wanted, pins = found.requirements, found.pins
        warnings += found.warnings
    environment = await prepare_environment(tools, wanted, pins)
    warnings += environment.warnings
    layer = Layer(
        commit=spec.commit if parts.source else "",
        history=parts.history,
        tree=None if parts.source is None else parts.source.tree,
        environment=environment.folder,
        project=project.shown,
        under=tuple(folder for folder in (project.made, modules.folder) if folder is not None),
    )
    layer.likeness = _likeness(layer, environment.requirements, spec.setup)
    if spec.setup is not None and parts.source is not None:
        beneath = Beneath(layer.commit, layer.environment, layer.under)
        done = await prepare_setup(tools, parts.source, beneath, spec.setup)
        layer.environment, layer.under = done.environment, done.under
        warnings += done.warnings
    key = _keep(starter.state_dir, layer)
    return BaseRef(key, layer.commit, environment.requirements, tuple(warnings))


def find_layer(state_dir: Path, base: BaseRef) -> Layer:
    """Return the parts of a prepared base layer; `SandboxError` where they are gone."""
    path, layer = _noted(state_dir, base.key)
    there = [touched(state_dir, part) for part in (path, *layer.parts)]
    if not all(there):
        raise _gone(base.key)
    return layer


def likeness_of(state_dir: Path, key: str) -> str:
    """Return what alike bases of all machines share, by the key of one; empty: it is not known."""
    return _noted(state_dir, key)[1].likeness


def _noted(state_dir: Path, key: str) -> tuple[Path, Layer]:
    path = state_dir / "layers" / f"{key}.json"
    try:
        return path, Layer.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        raise _gone(key) from None


def _likeness(layer: Layer, installed: Sequence[str], setup: str | None) -> str:
    """Name what a layer is made of; folders are called by what went in, and a token."""
    made = [folder for folder in (layer.environment, layer.project, *layer.under) if folder]
    names = [folder.parent.name.rpartition("-")[0] for folder in made]
    return short_hash(json.dumps([layer.commit, names, sorted(installed), setup]))


def _gone(key: str) -> SandboxError:
    return SandboxError(f"The base layer {key[:12]} is no longer there.", mend="Prepare it again.")


async def _parts(starter: BareStarter, spec: BaseSpec) -> _Parts:
    """Lay the commit out, and read what it declares as far as `spec` does not say otherwise."""
    if spec.repository is None:
        return _Parts()
    history = await fetch_history(await locate(spec.repository), spec.commit, starter.state_dir)
    made = await prepare_tree(starter, history, spec.commit)
    changed = tuple(sorted(dict(spec.manifests).items()))
    source = Source(
        tree=made.folder / "tree",
        history=history,
        texts={**made.facts.texts, **dict(changed)},
        changed=changed,
        native=made.facts.native,
        preparing=made.facts.preparing,
    )
    return _Parts(history, source, made.facts.nodes, made.facts.warnings)


async def _made(tools: Tools, parts: _Parts, *, builds: bool) -> tuple[Project, NodeModules]:
    """Install the project itself and its node modules, where there are any."""
    if parts.source is None:
        return Project(), NodeModules()
    modules = await prepare_modules(tools, parts.source, parts.nodes or {})
    return await prepare_project(tools, parts.source) if builds else Project(), modules


def _keep(state_dir: Path, layer: Layer) -> str:
    """Write the manifest and return its key."""
    # The name says where the parts are, so that layers that others have made are still found.
    key = short_hash(layer.model_dump_json(exclude={"likeness"}))
    manifest = layer.model_dump_json()
    path = traversable(state_dir / "layers") / f"{key}.json"
    made = path.with_name(f".{path.name}-{token_hex(4)}")
    made.write_text(manifest, "utf-8")
    made.rename(path)
    return key
