"""Finding the engine that containers are made by, and asking what it is like."""

import re
import shutil
from collections.abc import Sequence
from pathlib import PurePath

from pydantic import BaseModel, Field, ValidationError

from turnout.errors import SandboxUnavailableError
from turnout.sandbox.container.engines.engine import Engine
from turnout.sandbox.container.options import ContainerOptions, EngineName
from turnout.sandbox.workspace.process import Finished, run_program

__all__ = ["find_engine"]

_ASK_SECONDS = 30.0
_OLDEST_PODMAN = (4, 0)
_NEEDED_CONTROLLERS = {"memory", "pids", "cpu"}
_INSTALL = {
    "podman": "Run `sudo apt-get install podman`.",
    "docker": "Install Docker Engine, or Podman: `sudo apt-get install podman`.",
    "auto": "Run `sudo apt-get install podman`.",
}


class _Runtime(BaseModel):
    name: str = ""


class _Security(BaseModel):
    rootless: bool = False
    seccomp_enabled: bool = Field(False, alias="seccompEnabled")
    selinux_enabled: bool = Field(False, alias="selinuxEnabled")


class _Host(BaseModel):
    runtime: _Runtime = Field(alias="ociRuntime")
    security: _Security
    cgroup_version: str = Field("", alias="cgroupVersion")
    controllers: list[str] = Field([], alias="cgroupControllers")
    remote: bool = Field(False, alias="serviceIsRemote")


class _PodmanVersion(BaseModel):
    version: str = Field("0", alias="Version")


class _PodmanInfo(BaseModel):
    host: _Host
    version: _PodmanVersion


class _DockerInfo(BaseModel):
    version: str = Field("", alias="ServerVersion")
    problems: list[str] = Field([], alias="ServerErrors")
    security: list[str] = Field([], alias="SecurityOptions")
    runtime: str = Field("", alias="DefaultRuntime")
    cgroup_version: str = Field("", alias="CgroupVersion")
    memory: bool = Field(False, alias="MemoryLimit")
    pids: bool = Field(False, alias="PidsLimit")
    cpu: bool = Field(False, alias="CpuCfsQuota")


async def find_engine(options: ContainerOptions) -> Engine:
    """Return the engine that the options name; `SandboxUnavailableError` where none can be used."""
    names: Sequence[EngineName] = ("podman", "docker")
    if options.engine != "auto":
        names = (options.engine,)
    failure = SandboxUnavailableError(
        f"{' or '.join(map(str.capitalize, names))} is not installed.",
        mend=_INSTALL[options.engine],
    )
    for name in names:
        program = shutil.which(options.program or name)
        if program is None:
            continue
        try:
            return await (_podman if name == "podman" else _docker)(program, options.runtime)
        except SandboxUnavailableError as error:
            failure = error
    raise failure


async def _podman(program: str, runtime: str) -> Engine:
    done = await run_program([program, "info", "--format=json"], timeout=_ASK_SECONDS)
    if not done.ok:
        raise _silent("Podman", done, "Run `podman info` to see why.")
    try:
        info = _PodmanInfo.model_validate_json(done.stdout)
    except ValidationError:
        raise _silent("Podman", done, "Install Podman 4.0 or newer.") from None
    version = info.version.version
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < _OLDEST_PODMAN:
        raise SandboxUnavailableError(
            f"Podman {version} is too old.", mend="Install Podman 4.0 or newer."
        )
    host = info.host
    if host.remote:
        raise SandboxUnavailableError(
            "Podman's containers are on another machine.",
            mend="Unset CONTAINER_HOST, so that Podman runs them on this one.",
        )
    if not host.security.seccomp_enabled:
        raise _unfiltered("Podman")
    grouped = not host.security.rootless or (
        host.cgroup_version == "v2" and set(host.controllers) >= _NEEDED_CONTROLLERS
    )
    return Engine(
        "podman",
        program,
        version,
        PurePath(runtime).name or host.runtime.name,
        rootless=host.security.rootless,
        limits=grouped,
        cgroups=host.cgroup_version,
        labels=host.security.selinux_enabled,
    )


async def _docker(program: str, runtime: str) -> Engine:
    done = await run_program([program, "info", "--format={{json .}}"], timeout=_ASK_SECONDS)
    try:
        info = _DockerInfo.model_validate_json(done.stdout)
    except ValidationError:
        info = _DockerInfo.model_construct()
    if not info.version:
        raise _silent(
            "Docker",
            done,
            "Start its service and see to it that this user may talk to it: `docker info`.",
            " ".join(info.problems or ()),
        )
    security = {word for line in info.security for word in line.split(",")}
    if "name=seccomp" not in security:
        raise _unfiltered("Docker")
    if "name=rootless" in security:
        raise SandboxUnavailableError(
            "Docker without root hands files over under other owners than its user.",
            mend='Use Podman without root instead: `engine = "podman"`.',
        )
    return Engine(
        "docker",
        program,
        info.version,
        runtime or info.runtime,
        limits=info.memory and info.pids and info.cpu,
        cgroups=f"v{info.cgroup_version}",
        labels="name=selinux" in security,
    )


def _silent(engine: str, done: Finished, mend: str, said: str = "") -> SandboxUnavailableError:
    lines = (said or done.stderr).strip().splitlines() or ["it did not answer"]
    return SandboxUnavailableError(f"{engine} cannot be used: {lines[-1][:300]}.", mend=mend)


def _unfiltered(engine: str) -> SandboxUnavailableError:
    return SandboxUnavailableError(
        f"{engine} cannot filter system calls here.",
        mend="Use a kernel with seccomp filters and an engine that was built with it.",
    )
