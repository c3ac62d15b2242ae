"""How a sandbox that was asked for comes to be: settings, driver, base layer, egress."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from secrets import token_hex

from turnout.core.ids import RunId
from turnout.errors import ConfigError, SandboxError, UsageError
from turnout.sandbox.base import BaseRef, BaseSpec, Egress, HostRule, Limits, Sandbox, SandboxDriver
from turnout.sandbox.egress.rules import parse_rule
from turnout.sandbox.repository import is_tracked, resolve
from turnout.sdk.options import Creation
from turnout.settings import DriverName, Settings, find_config, load_settings
from turnout.wiring.sandboxes import run_egress, sandbox_driver

__all__ = ["Drivers", "Opened", "Source", "new_sandbox_id"]


@dataclass(frozen=True, slots=True)
class Opened:
    """A sandbox that was made, and what it was made with."""

    sandbox: Sandbox
    limits: Limits
    egress: Egress
    warnings: tuple[str, ...]


def new_sandbox_id() -> RunId:
    """Return an id that was not used before."""
    return RunId(f"sandbox-{token_hex(6)}")


class Source:
    """A driver, and what need not be found out again for each sandbox that it makes."""

    def __init__(self, driver: SandboxDriver, settings: Settings) -> None:
        self.driver = driver
        self._settings = settings
        self._bases: dict[BaseSpec, BaseRef] = {}
        self._granted: Egress | None = None

    async def start(
        self, spec: BaseSpec, allow: Sequence[str], warnings: tuple[str, ...]
    ) -> Opened:
        """Start a sandbox."""
        rules = tuple(map(parse_rule, allow))
        if (base := self._bases.pop(spec, None)) is not None:
            # Whoever cleared the state folder meanwhile has taken it away.
            with suppress(SandboxError):
                return await self._start(spec, base, rules, warnings)
        base = await self.driver.prepare(spec)
        # Which hosts an index keeps its files on may be known only now.
        self._granted = None
        return await self._start(spec, base, rules, warnings)

    async def _start(
        self,
        spec: BaseSpec,
        base: BaseRef,
        rules: tuple[HostRule, ...],
        warnings: tuple[str, ...],
    ) -> Opened:
        if self._granted is None:
            self._granted = (await run_egress(self._settings)).work
        egress = replace(self._granted, rules=(*self._granted.rules, *rules))
        limits = self._settings.limits
        sandbox = await self.driver.create(new_sandbox_id(), base, limits, egress=egress)
        if not base.warnings:
            self._bases[spec] = base
        return Opened(sandbox, limits, egress, (*warnings, *base.warnings))


class Drivers:
    """Makes sandboxes, by one driver for all that are asked for under the same settings."""

    def __init__(self) -> None:
        self._known: list[tuple[Settings, Source]] = []

    async def open(self, wanted: Creation) -> Opened:
        """Make a sandbox; what is raised where none can be made names the mend."""
        settings = await _settings(wanted)
        most = settings.limits.lifetime_seconds
        if wanted.timeout is not None and wanted.timeout > most:
            raise UsageError(
                f"A sandbox lives for {most:g} s at most, not {wanted.timeout:g} s.",
                mend="Give less, or raise `lifetime_hours` under `[sandbox]` in turnout.toml.",
            )
        spec, warnings = await _spec(settings, wanted)
        source = await self._source(settings, wanted.driver)
        return await source.start(spec, wanted.allow, warnings)

    async def close(self) -> None:
        """Give back what the drivers keep ready."""
        known, self._known = self._known, []
        for _, source in known:
            await source.driver.close()

    async def _source(self, settings: Settings, given: DriverName | SandboxDriver | None) -> Source:
        if given is not None and not isinstance(given, str):
            return Source(given, settings)
        for known, source in self._known:
            if known == settings:
                return source
        source = Source(sandbox_driver(settings), settings)
        self._known.append((settings, source))
        await source.driver.reap(frozenset())
        return source


async def _settings(wanted: Creation) -> Settings:
    """Return what was set; a file that came with a repository counts only where it is named."""
    if isinstance(wanted.config, Settings):
        settings = wanted.config
    else:
        found = find_config(config=wanted.config)
        if found is not None and not found.named and await is_tracked(found.path):
            raise ConfigError(
                f"{found.path} is part of a repository, which does not get to configure this "
                "machine.",
                mend=f'Read it first; to trust it, name it: config="{found.path.name}".',
            )
        settings = load_settings(config=wanted.config)
    return settings.with_driver(wanted.driver) if isinstance(wanted.driver, str) else settings


async def _spec(settings: Settings, wanted: Creation) -> tuple[BaseSpec, tuple[str, ...]]:
    if wanted.repository is None:
        return BaseSpec(repository=None, requirements=settings.requirements or ()), ()
    found = await resolve(wanted.repository, wanted.base)
    warnings = found.warnings
    if found.dirty:
        warnings = (*warnings, "Changes of the checkout that are not committed are left out.")
    setup = wanted.setup or settings.setup
    spec = BaseSpec(wanted.repository, found.commit, settings.requirements, setup=setup)
    return spec, warnings
