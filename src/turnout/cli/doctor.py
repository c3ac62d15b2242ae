"""`turnout doctor`: what this machine can do, and what it lacks."""

import asyncio
import os
import platform
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from turnout.cli.options import config_option, json_option, read_settings, say_json
from turnout.cli.terminal import safe, takes_colour
from turnout.core.json import JsonObject
from turnout.errors import StoreError, TurnoutError
from turnout.sandbox.base import Capabilities
from turnout.settings import Settings
from turnout.wiring.rooms import ModelSource, examine_models
from turnout.wiring.sandboxes import check_egress, examine_sandboxes
from turnout.wiring.serving.outlets import examine_forges

__all__ = ["command"]


@dataclass(frozen=True, slots=True)
class _Check:
    name: str
    ok: bool
    detail: str
    mend: str = ""
    needed: bool = True
    """Whether `turnout run` cannot work without it."""


@click.command(
    "doctor",
    epilog="\b\nExit codes:\n  0  `turnout run` can work here\n  4  something it needs is missing",
)
@json_option
@config_option
def command(*, as_json: bool, config: Path | None) -> int:
    """Say what this machine can do, and how to mend what it lacks."""
    settings = read_settings(config)
    checks = asyncio.run(_examine(settings))
    fit = all(check.ok for check in checks if check.needed)
    if as_json:
        say_json({"fit": fit, "checks": [_to_json(check) for check in checks]})
    else:
        _print(checks, colour=takes_colour(sys.stdout, allowed=settings.colour))
        click.echo(f"\n{'Fit: turnout run can work here' if fit else 'Not fit: see Required'}.")
    return 0 if fit else 4


async def _examine(settings: Settings) -> Sequence[_Check]:
    walls, models, forges = await asyncio.gather(
        _sandboxes(settings), _models(settings), _forges(settings)
    )
    return [_python(), _git(), *walls, *models, *forges, _reach(settings), _state(settings)]


def _python() -> _Check:
    return _Check("python", True, f"{platform.python_version()} at {sys.executable}")


def _git() -> _Check:
    found = shutil.which("git")
    return _Check("git", found is not None, found or "not found", "Run `sudo apt-get install git`.")


async def _sandboxes(settings: Settings) -> list[_Check]:
    try:
        chosen, *others = await examine_sandboxes(settings)
    except TurnoutError as error:
        return [_Check("sandbox", False, error.message, error.mend)]
    return [*_walls(chosen), *map(_other, others)]


def _other(walls: Capabilities) -> _Check:
    """Return what another driver could do here, in one line."""
    lacking = next(
        ((f"{name}: {text}") for name, holds, text in walls.facts if not holds), "it is not usable"
    )
    return _Check(
        f"sandbox: {walls.driver}",
        walls.usable,
        walls.isolation if walls.usable else lacking,
        f"Needed only for `--sandbox {walls.driver}`.",
        needed=False,
    )


def _walls(walls: Capabilities) -> list[_Check]:
    if not walls.usable:
        why = " ".join(f"{name}: {text}." for name, holds, text in walls.facts if not holds)
        return [_Check("sandbox", False, "no sandbox can be made", why)]
    facts = (
        _Check(f"wall: {name}", holds, text, needed=False) for name, holds, text in walls.facts
    )
    return [_Check("sandbox", True, walls.isolation), *facts]


async def _models(settings: Settings) -> list[_Check]:
    try:
        sources: Sequence[ModelSource] = await examine_models(settings)
    except TurnoutError as error:
        return [_Check("model", False, error.message, error.mend)]
    return [_Check(f"model: {s.name}", s.ok, s.detail, s.mend, s.needed) for s in sources]


async def _forges(settings: Settings) -> list[_Check]:
    try:
        seen = await examine_forges(settings)
    except StoreError as error:
        return [_Check("forges", False, error.message, error.mend, needed=False)]
    return [_Check(f"forge: {f.name}", f.ok, f.detail, f.mend, needed=False) for f in seen]


def _reach(settings: Settings) -> _Check:
    policy = settings.policy.egress
    named = [*policy.allow, *policy.private, *(["package mirrors"] if policy.packages else [])]
    try:
        check_egress(settings)
    except TurnoutError as error:
        return _Check("egress", False, error.message, error.mend)
    return _Check("egress", True, f"runs may reach {', '.join(named) or 'nothing'}")


def _state(settings: Settings) -> _Check:
    config = settings.config_file or "none read"
    home = settings.home
    there = next(folder for folder in (home, *home.parents) if folder.exists())
    return _Check(
        "state folder",
        there.is_dir() and os.access(there, os.W_OK | os.X_OK),
        f"{home} (configuration: {config})",
        "It cannot be written: set TURNOUT_HOME to a folder that can.",
    )


def _to_json(check: _Check) -> JsonObject:
    return {
        "name": check.name,
        "ok": check.ok,
        "detail": check.detail,
        "mend": "" if check.ok else check.mend,
        "needed": check.needed,
    }


def _print(checks: Sequence[_Check], *, colour: bool) -> None:
    width = max(len(check.name) for check in checks)
    for title, needed in (("Required", True), ("Optional", False)):
        if shown := [check for check in checks if check.needed == needed]:
            click.echo(f"{title}:")
        for check in shown:
            _print_one(check, width, colour=colour)


def _print_one(check: _Check, width: int, *, colour: bool) -> None:
    word = f"{'ok' if check.ok else 'missing':7}"
    shade = "green" if check.ok else "red" if check.needed else "yellow"
    mark = click.style(word, fg=shade) if colour else word
    click.echo(f"  {mark}  {check.name:{width}}  {safe(check.detail)}")
    if not check.ok and check.mend:
        click.echo(f"  {'':7}  {'':{width}}  {safe(check.mend)}")
