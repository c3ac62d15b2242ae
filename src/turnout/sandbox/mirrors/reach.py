"""What a set-up sandbox, or a run, may reach to get packages."""

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import quote

from pydantic import BaseModel, TypeAdapter, ValidationError

from turnout.core.network.addresses import admitted
from turnout.errors import ConfigError, SandboxError, UnfitError
from turnout.sandbox.bare import BareStarter
from turnout.sandbox.base import (
    NO_EGRESS,
    BoundSecret,
    Egress,
    HostRule,
    Mount,
)
from turnout.sandbox.egress.resolver import SystemResolver
from turnout.sandbox.egress.rules import check_rule
from turnout.sandbox.mirrors.local import can_be_shown, local_mounts
from turnout.sandbox.mirrors.pip_settings import PackagePlace, PipSettings
from turnout.sandbox.rooms.room import SCRATCH_TEXT, inside_program, opened_room
from turnout.sandbox.workspace.folders import private, short_hash
from turnout.sandbox.workspace.process import run_program

__all__ = ["Reach", "discovered", "find_reach", "rules_for", "rules_for_files", "to_public"]

_SEEN_TIMEOUT = 120.0
_RETRIES = "2"
_REACHED: Final = (200, 404)
"""An index that does not have the package which was asked for is one as well."""


@dataclass(frozen=True, slots=True)
class Reach:
    """How pip inside gets at what pip outside would."""

    egress: Egress
    folders: tuple[Mount, ...] = ()
    """Local indexes and folders of packages, at the paths that they have outside."""
    configuration: str = ""
    """Text of the `pip.conf` inside; `${NAME}` stands for a variable there."""
    constraints: str = ""
    """Text of the user's own constraints."""
    obstacle: str = ""
    """Why a sandbox cannot do it; empty where it can."""

    @property
    def files(self) -> dict[str, str]:
        """Texts for the scratch folder, by name."""
        return {"pip.conf": self.configuration, "constraints.txt": self.constraints}


class _Told(BaseModel):
    """What one index told."""

    status: int
    places: tuple[tuple[str, int], ...] = ()
    error: str = ""


_ALL_TOLD = TypeAdapter(tuple[_Told, ...])
_PLACES = TypeAdapter(tuple[tuple[str, int, bool], ...])

_Place = tuple[str, int, bool]
"""Host and port of files, and whether an index that is not public itself has named them."""


def find_reach(settings: PipSettings) -> Reach:
    """Say how a sandbox can use the user's settings, or why it cannot."""
    try:
        rules = rules_for(settings.places)
        constraints = "".join(_text(place) for place in map(PackagePlace, settings.constraints))
    except ConfigError as error:
        return Reach(Egress(), obstacle=error.message)
    secrets, urls = _hidden(settings.places)
    obstacle = _obstacle(settings)
    return Reach(
        egress=Egress(
            rules=rules,
            secrets=secrets,
            ca_files=(settings.certificates,) if settings.certificates else (),
            setting="pip's own configuration",
        ),
        folders=local_mounts(settings.indexes, settings.links),
        configuration=_configuration(settings, urls, constrained=bool(constraints)),
        constraints=constraints,
        obstacle=obstacle,
    )


def rules_for(places: Sequence[PackagePlace]) -> tuple[HostRule, ...]:
    """Return rules for the hosts of places; the user named them, so they may be private.

    `ConfigError` for one that has no name.
    """
    rules = [
        check_rule(HostRule(place.host, (place.port,), private=True))
        for place in places
        if place.host
    ]
    return tuple(dict.fromkeys(rules))


def _obstacle(settings: PipSettings) -> str:
    if settings.proxy or settings.client_certificate:
        return "pip is told to use a proxy or a client certificate"
    if any(any(place.credentials) and not place.encrypted for place in settings.places):
        return "an index wants credentials without encryption"
    if not all(can_be_shown(Path(place.folder)) for place in settings.places if place.folder):
        return "a folder of packages lies where a sandbox has its own"
    return "" if settings.places else "pip has no index"


def _hidden(places: Sequence[PackagePlace]) -> tuple[tuple[BoundSecret, ...], tuple[str, ...]]:
    """Return the credentials of places, and their URLs with variables instead."""
    secrets: list[BoundSecret] = []
    urls = []
    for place in places:
        user, password = place.credentials
        if not user and not password:
            urls.append(place.url)
            continue
        variable = f"TURNOUT_INDEX_{len(secrets) + 1}"
        secrets.append(BoundSecret(variable, place.host, password or user))
        shown = f"{quote(user, safe='')}:${{{variable}}}" if password else f"${{{variable}}}"
        urls.append(place.with_credentials(shown))
    return tuple(secrets), tuple(urls)


def _configuration(settings: PipSettings, urls: Sequence[str], *, constrained: bool) -> str:
    count = len(settings.indexes)
    lines = {"retries": _RETRIES, **dict(settings.others)}
    if count:
        lines |= {"index-url": urls[0], "extra-index-url": "\n".join(urls[1:count])}
    else:
        lines["no-index"] = "true"
    lines["find-links"] = "\n".join(urls[count:])
    lines["trusted-host"] = "\n".join(settings.trusted)
    lines["constraint"] = f"{SCRATCH_TEXT}/constraints.txt" if constrained else ""
    kept = {name: text.replace("\n", "\n    ") for name, text in lines.items() if text}
    return "[global]\n" + "".join(f"{name} = {text}\n" for name, text in kept.items())


def _text(place: PackagePlace) -> str:
    if place.host:
        raise ConfigError("pip's constraints are at a URL")
    try:
        return Path(place.folder).read_text("utf-8", errors="replace") + "\n"
    except OSError:
        raise ConfigError("pip's constraints cannot be read") from None


async def discovered(starter: BareStarter, reach: Reach, settings: PipSettings) -> Reach:
    """Return a reach to the hosts of files as well, which the indexes name.

    It has an obstacle where no index answers a sandbox.
    """
    if reach.obstacle or not reach.egress.rules:
        return reach
    _, urls = _hidden(settings.places)
    pages = _pages(settings, urls)
    try:
        told, inner = await _ask(starter, to_public(reach.egress), pages)
        if inner:
            told, _ = await _ask(starter, reach.egress, pages)
    except (UnfitError, SandboxError, ConfigError, ValidationError) as error:
        return replace(reach, obstacle=str(error).splitlines()[0])
    if not any(one.status in _REACHED for one in told):
        why = next((one.error for one in told if one.error), f"HTTP status {told[0].status}")
        return replace(reach, obstacle=f"no index answers a sandbox: {why}")
    places = _named(settings, told, inner)
    _remember(starter.state_dir, settings, places)
    return replace(reach, egress=_further(reach.egress, places))


async def _ask(
    starter: BareStarter, egress: Egress, pages: Sequence[Mapping[str, object]]
) -> tuple[tuple[_Told, ...], frozenset[tuple[str, int]]]:
    """Look at pages from a sandbox; returns which hosts the gate refused it as well."""
    async with opened_room(starter, [], egress=egress) as room:
        result = await room.run(
            "indexes.py", stdin=json.dumps(pages).encode(), timeout=_SEEN_TIMEOUT
        )
        asked = room.sandbox.connections()
    refused = frozenset((each.host, each.port) for each in asked if not each.allowed)
    return _ALL_TOLD.validate_json(result.stdout), refused


def to_public(egress: Egress) -> Egress:
    """Return the same without what is not public: who answers then is not one of our own."""
    return replace(egress, rules=tuple(replace(rule, private=False) for rule in egress.rules))


def _named(
    settings: PipSettings, told: Sequence[_Told], inner: Collection[tuple[str, int]]
) -> list[_Place]:
    """Return what the indexes name; a public one opens no way to what is not."""
    hosts = [place for place in settings.places if place.host]
    return [
        (host, port, (place.host, place.port) in inner)
        for place, one in zip(hosts, told, strict=True)
        if one.status in _REACHED
        for host, port in one.places
    ]


def _pages(settings: PipSettings, urls: Sequence[str]) -> list[dict[str, object]]:
    """Return what `indexes.py` is to look at, under other URLs for the same places."""
    return [
        {"url": _page(place, url, settings), "trusted": _is_trusted(place, settings.trusted)}
        for place, url in zip(settings.places, urls, strict=True)
        if place.host
    ]


def _page(place: PackagePlace, url: str, settings: PipSettings) -> str:
    return url if place in settings.links else f"{url.rstrip('/')}/pip/"


def _is_trusted(place: PackagePlace, trusted: Sequence[str]) -> bool:
    return place.host in trusted or f"{place.host}:{place.port}" in trusted


def _further(egress: Egress, places: Sequence[_Place]) -> Egress:
    rules = dict.fromkeys(egress.rules)
    for host, port, private_too in places:
        try:
            rules[check_rule(HostRule(host, (port,), private_too))] = None
        except ConfigError:
            continue
    return replace(egress, rules=tuple(rules))


def _note(state_dir: Path, settings: PipSettings) -> Path:
    name = short_hash(json.dumps([place.bare for place in settings.places]))
    return private(state_dir / "indexes") / f"{name}.json"


def _remember(state_dir: Path, settings: PipSettings, places: Sequence[_Place]) -> None:
    _note(state_dir, settings).write_bytes(_PLACES.dump_json(tuple(dict.fromkeys(places))))


async def rules_for_files(state_dir: Path, settings: PipSettings) -> tuple[HostRule, ...]:
    """Return rules for the hosts of files, as they were discovered before or are now, by us."""
    try:
        places = _PLACES.validate_json(_note(state_dir, settings).read_bytes())
    except (FileNotFoundError, ValidationError):
        places = await _look(settings)
        if places:
            _remember(state_dir, settings, places)
    return _further(NO_EGRESS, places).rules


async def _look(settings: PipSettings) -> tuple[_Place, ...]:
    """Ask the indexes from the host, without credentials."""
    pages = _pages(settings, [place.bare for place in settings.places])
    argv = [sys.executable, "-ISE", "-c", inside_program("indexes.py"), json.dumps(pages)]
    argv += [settings.certificates] if settings.certificates else []
    done = await run_program(argv, timeout=_SEEN_TIMEOUT)
    try:
        told = _ALL_TOLD.validate_json(done.stdout)
    except ValidationError:
        return ()
    asked = {(place.host, place.port) for place in settings.places if place.host}
    return tuple(_named(settings, told, {one for one in asked if await _is_inner(*one)}))


async def _is_inner(host: str, port: int) -> bool:
    """Whether a host has addresses, none of which is public."""
    try:
        found = await SystemResolver().resolve(host, port)
    except OSError:
        return False
    return not admitted(found, private=False)
