"""The base layer of a workspace: a commit's tree and the environment of its tests.

State folder, all of it made once and never changed:

    mirrors/       what was fetched of each repository, for the service alone
    histories/     per base: a git directory with the base and its ancestors
    trees/         per base: the work tree, with a `.git` whose objects stay in the history
    environments/  `/venv` folders
    layers/        one manifest per base and environment, by the key of its `BaseRef`
"""

import json
from importlib.resources import files
from pathlib import Path
from secrets import token_hex

from pydantic import BaseModel, ValidationError

from turnout.core.ids import RunId
from turnout.errors import RepositoryError, SandboxError, UnfitError
from turnout.sandbox.bare import BASE_GIT, BASE_TREE, BareStarter
from turnout.sandbox.base import VENV, BaseRef, BaseSpec, Command, CommandResult, Limits, Mount
from turnout.sandbox.environment import prepare_environment
from turnout.sandbox.workspace.folders import readable, remove_folder, short_hash, traversable
from turnout.sandbox.workspace.history import fetch_history
from turnout.sandbox.workspace.locks import locked
from turnout.sandbox.workspace.requirements import declared, explicit
from turnout.sandbox.workspace.source import locate

__all__ = ["Layer", "find_layer", "prepare_base"]

_LOCK_TIMEOUT = 900.0
_CHECKOUT_TIMEOUT = 600.0
_LIMITS = Limits(memory_bytes=4 << 30)


class Layer(BaseModel):
    """Where the parts of a prepared base layer are on the host."""

    commit: str
    history: Path
    """Bare git directory; the collector compares with it."""
    tree: Path
    environment: Path

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """What a run's sandbox is shown, all of it read-only."""
        return (
            Mount(str(self.tree), BASE_TREE),
            Mount(str(self.history), BASE_GIT),
            Mount(str(self.environment), VENV),
        )


class _Facts(BaseModel):
    """What the checkout told of the commit."""

    too_large: bool = False
    files: int = 0
    submodules: tuple[str, ...] = ()
    large_files: bool = False
    texts: dict[str, str] = {}


async def prepare_base(starter: BareStarter, spec: BaseSpec) -> BaseRef:
    """Make the base layer of `spec`, or find it made; safe for concurrent callers.

    Explicit requirements replace those that the repository declares. `RepositoryError` where the
    commit cannot be had, `UnfitError` where the environment cannot be made.
    """
    wanted = None if spec.requirements is None else explicit(spec.requirements)
    history = await fetch_history(await locate(spec.repository), spec.commit, starter.state_dir)
    tree, facts = await _prepare_tree(starter, history, spec.commit)
    warnings = _warnings(facts)
    if wanted is None:
        found = declared(facts.texts)
        wanted = found.requirements
        warnings += found.warnings
    environment = await prepare_environment(starter, wanted)
    layer = Layer(commit=spec.commit, history=history, tree=tree, environment=environment.folder)
    manifest = layer.model_dump_json()
    key = short_hash(manifest)
    folder = traversable(starter.state_dir / "layers")
    _write_whole(folder / f"{key}.json", manifest)
    return BaseRef(key, spec.commit, environment.requirements, (*warnings, *environment.warnings))


def find_layer(state_dir: Path, base: BaseRef) -> Layer:
    """Return the parts of a prepared base layer; `SandboxError` where they are gone."""
    path = state_dir / "layers" / f"{base.key}.json"
    try:
        layer = Layer.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        raise _gone(base) from None
    if not (layer.history.is_dir() and layer.tree.is_dir() and layer.environment.is_dir()):
        raise _gone(base)
    return layer


def _gone(base: BaseRef) -> SandboxError:
    return SandboxError(
        f"The base layer {base.key[:12]} is no longer there.", mend="Prepare it again."
    )


def _warnings(facts: _Facts) -> tuple[str, ...]:
    found = []
    if facts.submodules:
        names = ", ".join(facts.submodules[:5])
        found.append(f"Submodules are empty in the workspace: {names}.")
    if facts.large_files:
        found.append("Files kept by Git LFS are pointers in the workspace, not their contents.")
    return tuple(found)


async def _prepare_tree(starter: BareStarter, history: Path, commit: str) -> tuple[Path, _Facts]:
    program = files("turnout.sandbox.inside").joinpath("checkout.py").read_text("utf-8")
    key = short_hash(json.dumps([history.name, program]))
    folder = traversable(starter.state_dir / "trees") / key
    facts = folder / "facts.json"
    async with locked(starter.state_dir / "locks" / f"tree-{key}", timeout=_LOCK_TIMEOUT):
        if not folder.is_dir():
            building = traversable(folder.with_name(f".{key}-{token_hex(4)}"))
            try:
                told = await _check_out(
                    starter, history, readable(building / "tree"), program, commit
                )
                (building / facts.name).write_bytes(told)
                building.rename(folder)
            finally:
                await remove_folder(building)
    return folder / "tree", _Facts.model_validate_json(facts.read_bytes())


async def _check_out(
    starter: BareStarter, history: Path, tree: Path, program: str, commit: str
) -> bytes:
    """Lay the commit out by a sandbox and return what it told, checked."""
    mounts = [Mount(str(history), BASE_GIT), Mount(str(tree), BASE_TREE, writable=True)]
    run_id = RunId(f"setup-{token_hex(6)}")
    sandbox = await starter.start_bare(run_id, mounts, _LIMITS)
    try:
        argv = (starter.python, "-ISE", "-c", program, BASE_GIT, BASE_TREE, commit)
        result = await sandbox.run(
            Command(argv=argv, timeout=_CHECKOUT_TIMEOUT, head=16 << 20, kill_after_bytes=32 << 20)
        )
    finally:
        await sandbox.close()
    return _checked(result)


def _checked(result: CommandResult) -> bytes:
    if not result.ok:
        said = result.stderr.decode(errors="backslashreplace").strip().splitlines()
        if "No space left" in " ".join(said):
            raise UnfitError(
                "The disk of the state folder is full.", mend="Free some space, then try again."
            )
        raise RepositoryError(
            f"The commit cannot be checked out: {(said or [result.exit.reason])[-1][:300]}",
            mend="Check the repository with: git fsck.",
        )
    try:
        facts = _Facts.model_validate_json(result.stdout)
    except ValidationError as error:
        raise SandboxError("What the checkout told cannot be read.") from error
    if facts.too_large:
        raise RepositoryError(
            "The commit has more files or bytes than a workspace may: 400,000 files, 4 GiB.",
            mend="Split the repository, or remove generated files from it.",
        )
    return result.stdout


def _write_whole(path: Path, text: str) -> None:
    made = path.with_name(f".{path.name}-{token_hex(4)}")
    made.write_text(text, "utf-8")
    made.rename(path)
