"""What makes the sandboxes, and what those of a run may reach."""

import importlib
import importlib.util
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from turnout.errors import ConfigError, MissingExtraError
from turnout.runs.worker import RunEgress
from turnout.sandbox.base import Capabilities, Egress, SandboxDriver
from turnout.sandbox.bubblewrap import BubblewrapDriver
from turnout.sandbox.container.driver import ContainerDriver
from turnout.sandbox.egress.gate import EgressServices, open_gate
from turnout.sandbox.egress.service import Authority
from turnout.sandbox.hosted.driver import HostedDriver
from turnout.sandbox.hosted.hosts.e2b import E2bProvider
from turnout.sandbox.hosted.hosts.novita import NovitaProvider
from turnout.sandbox.hosted.hosts.withruntime import RuntimeProvider
from turnout.sandbox.hosted.machine import HostedProvider
from turnout.sandbox.mirrors.packages import packages_egress
from turnout.sandbox.unconfined.driver import UnconfinedDriver
from turnout.settings import HOSTED_KEYS, DriverName, Settings
from turnout.wiring.state import state_folder_of

__all__ = ["check_egress", "examine_sandboxes", "open_sandboxes", "run_egress", "sandbox_driver"]

_HERE: Final[tuple[DriverName, ...]] = ("bubblewrap", "container")
"""Drivers that work on any machine which has their program, looked at whatever is chosen."""


def sandbox_driver(settings: Settings, *, streams: bool = False) -> SandboxDriver:
    """Return what makes sandboxes, as the settings choose; `MissingExtraError` names an extra.

    With `streams` its layers can be handed on to other machines.
    """
    home = state_folder_of(settings)
    services = _services()
    match settings.driver:
        case "bubblewrap":
            return BubblewrapDriver(home, egress=services, streams=streams)
        case "container":
            options = settings.container
            return ContainerDriver(home, options=options, egress=services, streams=streams)
        case "none":
            return UnconfinedDriver(home)
        case "kubernetes":
            kind = _extra("turnout.sandbox.kubernetes.driver", "kubernetes").KubernetesDriver
            driver: SandboxDriver = kind(home, settings.kubernetes, egress=services)
            return driver
        case "e2b" | "withruntime" | "novita":
            return _hosted(settings, home)


def _hosted(settings: Settings, home: Path) -> SandboxDriver:
    name = settings.driver
    key = settings.hosted_keys.get(name, "")
    if not key:
        variable = HOSTED_KEYS[name]
        raise ConfigError(f"{variable} is not set.", mend=f"Export the key of {name} as that.")
    provider: HostedProvider
    match name:
        case "withruntime":
            provider = RuntimeProvider(_extra("withruntime", name), key)
        case "novita":
            package = _extra("novita_sandbox.core", name)
            provider = NovitaProvider(package, key, faults=_http_faults(name))
        case _:
            provider = E2bProvider(_extra("e2b", name), key, faults=_http_faults(name))
    return HostedDriver(home, provider, settings.hosted)


def _http_faults(extra: str) -> tuple[type[Exception], ...]:
    """Return what their packages let through of their HTTP client."""
    return (_extra("httpx", extra).HTTPError,)


@asynccontextmanager
async def open_sandboxes(
    settings: Settings, *, streams: bool = False
) -> AsyncIterator[SandboxDriver]:
    """Open what makes sandboxes; at the end whatever it kept ready is gone.

    What services that died have left behind is cleared away first; living ones are not touched.
    With `streams` layers can be handed on to other machines.
    """
    driver = sandbox_driver(settings, streams=streams)
    try:
        await driver.reap(frozenset())
        yield driver
    finally:
        await driver.close()


def check_egress(settings: Settings) -> None:
    """Raise where what the policy lets runs reach cannot be had, before anything is begun.

    `ConfigError` for a secret that is not set, cannot be kept or has a host that may not be
    reached; `MissingExtraError` where secrets take a package.
    """
    for secret in settings.policy.egress.secrets:
        if not any(s.value for s in settings.egress.secrets if s.variable == secret.variable):
            raise ConfigError(
                f"The secret {secret.variable} is the value of {secret.source}, which is not set.",
                mend=f"Export {secret.source}, or remove `[policy.egress.secrets]` of that name.",
            )
    open_gate(_services(), settings.egress)


async def run_egress(settings: Settings) -> RunEgress:
    """Return what the sandboxes of a run may reach, the mirrors of packages if they are allowed."""
    check_egress(settings)
    tests = replace(settings.egress, secrets=())
    if not settings.policy.egress.packages:
        return RunEgress(settings.egress, tests)
    return RunEgress(_joined(settings.egress, await packages_egress(settings.home)), tests)


def _joined(named: Egress, packages: Egress) -> Egress:
    return replace(
        named,
        rules=(*named.rules, *packages.rules),
        secrets=(*named.secrets, *packages.secrets),
        variables=(*named.variables, *packages.variables),
        ca_files=(*named.ca_files, *packages.ca_files),
    )


async def examine_sandboxes(settings: Settings) -> Sequence[Capabilities]:
    """Find out which walls hold on this machine: first those that are chosen, then others."""
    names: list[DriverName] = [
        settings.driver,
        *(name for name in _HERE if name != settings.driver),
    ]
    found = []
    for name in names:
        driver = sandbox_driver(settings.with_driver(name))
        try:
            found.append(await driver.probe())
        finally:
            await driver.close()
    return found


def _services() -> EgressServices:
    extra = importlib.util.find_spec("cryptography") is not None
    return EgressServices(make_authority=_authority if extra else None)


def _authority(hosts: Sequence[str]) -> Authority:
    """Return what makes certificates for bound secrets: slow to load, and few runs have any."""
    module = importlib.import_module("turnout.sandbox.egress.authority")
    made: Authority = module.RunAuthority(hosts)
    return made


def _extra(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"The driver needs the package {error.name}, which is not installed.",
            mend=f"Run `pip install 'turnout[{extra}]'`.",
        ) from None
