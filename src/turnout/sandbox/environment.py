"""The environment of the tests: `/venv` with pytest and what the repository declares.

Wheels are fetched by the host and installed by a sandbox without a network; no code of a package is
run on the host, and none is built from source.
"""

import asyncio
import json
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from secrets import token_hex

from pydantic import BaseModel, ValidationError

from turnout.core.ids import RunId
from turnout.errors import UnfitError
from turnout.sandbox.bare import BareStarter
from turnout.sandbox.base import REPO, VENV, Command, Limits, Mount, Sandbox
from turnout.sandbox.workspace.fitting import most_that_fit
from turnout.sandbox.workspace.folders import readable, remove_folder, short_hash, traversable
from turnout.sandbox.workspace.locks import locked
from turnout.sandbox.workspace.process import run_program
from turnout.sandbox.workspace.requirements import applicable, package_name

__all__ = ["Environment", "prepare_environment"]

_WHEELS = "/wheels"
_LOCK_TIMEOUT = 900.0
_DOWNLOAD_TIMEOUT = 600.0
_INSTALL_TIMEOUT = 600.0
_RETRY_AFTER = 3600.0
_LIMITS = Limits(memory_bytes=2 << 30)
_NOT_FOUND = re.compile(r"No matching distribution found for ([A-Za-z0-9][\w.-]*)")

_ASK_INTERPRETER = """
import json, os, platform, sys
print(json.dumps({
    "libc": list(platform.libc_ver()),
    "environment": {
        "implementation_name": sys.implementation.name,
        "os_name": os.name,
        "platform_machine": platform.machine(),
        "platform_python_implementation": platform.python_implementation(),
        "platform_system": platform.system(),
        "python_full_version": platform.python_version(),
        "python_version": "%d.%d" % sys.version_info[:2],
        "sys_platform": sys.platform,
    },
}))
"""


@dataclass(frozen=True, slots=True)
class Environment:
    """A `/venv` that was made."""

    folder: Path
    """On the host; mounted read-only at `/venv`."""
    requirements: tuple[str, ...]
    """What it holds beside pytest."""
    warnings: tuple[str, ...]
    """What could not be had."""


class _Interpreter(BaseModel):
    libc: tuple[str, str]
    environment: dict[str, str]

    @property
    def pip_options(self) -> list[str]:
        """How pip is told which wheels the sandbox's interpreter takes."""
        version = self.environment["python_version"]
        machine = self.environment["platform_machine"]
        tag = f"cp{version.replace('.', '')}"
        platforms = [f"linux_{machine}"]
        name, _, number = self.libc[1].partition(".")
        if self.libc[0] == "glibc" and name == "2" and number.isdigit():
            platforms += [f"manylinux_2_{minor}_{machine}" for minor in range(int(number), 4, -1)]
            platforms += [f"manylinux{year}_{machine}" for year in ("2014", "2010", "1")]
        options = ["--python-version", version, "--implementation", "cp"]
        for abi in (tag, "abi3", "none"):
            options += ["--abi", abi]
        for platform in platforms:
            options += ["--platform", platform]
        return options


class _Manifest(BaseModel):
    folder: str
    requirements: tuple[str, ...]
    missing: tuple[str, ...]


async def prepare_environment(starter: BareStarter, requirements: Sequence[str]) -> Environment:
    """Make the environment, or find it made; it never changes again.

    `requirements` are plain specifiers. What cannot be had is left out and named in a warning;
    `UnfitError` where not even pytest can be had.
    """
    root = traversable(starter.state_dir / "environments")
    setup = _Setup(starter, root)
    interpreter = await setup.interpreter()
    wanted = applicable(requirements, interpreter.environment)
    name = _name(interpreter, wanted)
    async with locked(starter.state_dir / "locks" / f"env-{name}", timeout=_LOCK_TIMEOUT):
        manifest = _read_manifest(root, name)
        if manifest is None:
            manifest = await setup.make(interpreter, wanted)
            (root / f"{name}.json").write_text(manifest.model_dump_json(), "utf-8")
    warnings = [
        f"The requirement `{missing}` could not be installed from wheels; left out."
        for missing in manifest.missing
    ]
    return Environment(root / manifest.folder, manifest.requirements, tuple(warnings))


def _inside(name: str) -> str:
    return files("turnout.sandbox.inside").joinpath(name).read_text("utf-8")


def _name(interpreter: _Interpreter, requirements: Sequence[str]) -> str:
    programs = [_inside("furnish.py"), _inside("pytest_report.py")]
    facts = [interpreter.model_dump(), sorted(requirements), programs]
    return short_hash(json.dumps(facts, sort_keys=True))


def _read_manifest(root: Path, name: str) -> _Manifest | None:
    path = root / f"{name}.json"
    try:
        manifest = _Manifest.model_validate_json(path.read_bytes())
        age = time.time() - path.stat().st_mtime
    except (FileNotFoundError, ValidationError):
        return None
    stale = bool(manifest.missing) and age > _RETRY_AFTER
    return None if stale or not (root / manifest.folder).is_dir() else manifest


def _move(made: Path, folder: Path) -> None:
    """Rename `made` to `folder`, unless another process had the same done before."""
    try:
        made.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise


class _Setup:
    """Makes environments in sandboxes."""

    def __init__(self, starter: BareStarter, root: Path) -> None:
        self._starter = starter
        self._root = root

    async def interpreter(self) -> _Interpreter:
        """Ask a sandbox for its interpreter."""
        sandbox = await self._start([])
        try:
            argv = (self._starter.python, "-ISE", "-c", _ASK_INTERPRETER)
            result = await sandbox.run(Command(argv=argv, cwd=REPO, timeout=30))
        finally:
            await sandbox.close()
        try:
            return _Interpreter.model_validate_json(result.stdout)
        except ValidationError:
            raise UnfitError(
                f"The sandbox's interpreter {self._starter.python} does not answer.",
                mend="Install Python 3.8 or newer with its venv module: apt install python3-venv.",
            ) from None

    async def make(self, interpreter: _Interpreter, wanted: Sequence[str]) -> _Manifest:
        """Fetch and install `wanted`, or as much of it as can be had."""
        token = token_hex(6)
        wheels = readable(self._root / f".wheels-{token}")
        venv = readable(self._root / f".venv-{token}")
        try:
            kept = await _Download(wheels, interpreter.pip_options).obtain(wanted)
            await run_program(["chmod", "-R", "a+rX,go-w", str(wheels)], timeout=60)
            installed = kept if await self._install(wheels, venv, kept) else []
            folder = self._root / _name(interpreter, installed)
            _move(venv, folder)
        finally:
            await remove_folder(wheels)
            await remove_folder(venv)
        missing = [requirement for requirement in wanted if requirement not in installed]
        return _Manifest(folder=folder.name, requirements=tuple(installed), missing=tuple(missing))

    async def _install(self, wheels: Path, venv: Path, requirements: Sequence[str]) -> bool:
        """Install into `venv` and say whether all of it could be."""
        mounts = [Mount(str(wheels), _WHEELS), Mount(str(venv), VENV, writable=True)]
        sandbox = await self._start(mounts)
        try:
            program = (self._starter.python, "-ISE", "-c", _inside("furnish.py"))
            result = await sandbox.run(
                Command(
                    argv=(*program, _WHEELS, VENV, *requirements),
                    stdin=_inside("pytest_report.py").encode(),
                    timeout=_INSTALL_TIMEOUT,
                )
            )
        finally:
            await sandbox.close()
        if not result.ok:
            said = result.stderr.decode(errors="backslashreplace").strip()[-500:]
            raise UnfitError(
                f"The environment of the tests could not be made: {said or result.exit.reason}",
                mend="Check that Python's venv module is installed: apt install python3-venv.",
            )
        return result.stdout == b'{"complete": true}'

    async def _start(self, mounts: Sequence[Mount]) -> Sandbox:
        return await self._starter.start_bare(RunId(f"setup-{token_hex(6)}"), mounts, _LIMITS)


class _Download:
    """Wheels of one environment, fetched by pip with the user's own configuration."""

    def __init__(self, wheels: Path, options: Sequence[str]) -> None:
        self._wheels = wheels
        self._options = options
        self._deadline = asyncio.get_running_loop().time() + _DOWNLOAD_TIMEOUT
        self._said = ""

    async def obtain(self, wanted: Sequence[str]) -> list[str]:
        """Fetch pytest and as much of `wanted` as can be had together; return what that is."""
        if await self._fetch(wanted):
            return list(wanted)
        unknown = {name.lower() for name in _NOT_FOUND.findall(self._said)}
        if not await self._fetch([]):
            raise self._hopeless()
        known = [text for text in wanted if package_name(text) not in unknown]
        return await most_that_fit(known, self._fetch)

    async def _fetch(self, requirements: Sequence[str]) -> bool:
        left = self._deadline - asyncio.get_running_loop().time()
        if left <= 0:
            return False
        argv = [sys.executable, "-m", "pip", "download", "--only-binary", ":all:", "--no-input"]
        argv += ["--disable-pip-version-check", "--progress-bar", "off", "--quiet"]
        argv += ["--dest", str(self._wheels), *self._options, "--", "pip", "pytest"]
        done = await run_program([*argv, *requirements], timeout=left)
        self._said = done.stderr if done.code is not None else "pip did not end in time"
        return done.ok

    def _hopeless(self) -> UnfitError:
        if "No module named pip" in self._said:
            return UnfitError(
                "Turnout's own Python has no pip, which fetches the packages of the tests.",
                mend=f"Install it: {sys.executable} -m ensurepip.",
            )
        lines = [line for line in self._said.splitlines() if line.startswith("ERROR")]
        said = (lines or self._said.splitlines() or ["pip said nothing"])[-1]
        return UnfitError(
            f"pytest cannot be fetched: {said[:300]}",
            mend=f"Check pip's index and the network: {sys.executable} -m pip download pytest.",
        )
