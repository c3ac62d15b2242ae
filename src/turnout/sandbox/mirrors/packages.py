"""What a run may reach where its policy lets it install packages."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from turnout.errors import ConfigError
from turnout.sandbox.base import Egress, HostRule
from turnout.sandbox.mirrors.npm_settings import NpmSettings, ask_npm
from turnout.sandbox.mirrors.pip_settings import PackagePlace, PipSettings, ask_pip
from turnout.sandbox.mirrors.reach import rules_for, rules_for_files

__all__ = ["egress_for", "packages_egress"]

_SETTING: Final = "`[policy.egress] packages`"


async def packages_egress(state_dir: Path) -> Egress:
    """Return the way to the package mirrors that the user's own pip and npm are told to use.

    Without credentials: an index that wants some does not answer. One that is a folder, or whose
    host has no name, cannot be reached from within. In `state_dir` it is kept which hosts the files
    of an index come from.
    """
    pip, npm = await asyncio.gather(ask_pip(), ask_npm())
    return egress_for(pip, npm, await rules_for_files(state_dir, pip))


def egress_for(pip: PipSettings, npm: NpmSettings | None, files: Sequence[HostRule]) -> Egress:
    """Return the way to what the settings name, and to the hosts of the indexes' files."""
    rules = [*_rules(pip.places), *files]
    variables = _pip_variables(pip)
    certificates = [pip.certificates]
    if npm is not None:
        rules += _rules(npm.places)
        variables += _npm_variables(npm)
        certificates.append(npm.certificates)
    return Egress(
        rules=tuple(dict.fromkeys(rules)),
        variables=tuple(variables),
        ca_files=tuple(dict.fromkeys(filter(None, certificates))),
        setting=_SETTING,
    )


def _rules(places: Sequence[PackagePlace]) -> list[HostRule]:
    return [rule for place in places if _has_name(place) for rule in rules_for([place])]


def _has_name(place: PackagePlace) -> bool:
    """Whether a place is on a host that can be allowed."""
    try:
        return bool(rules_for([place]))
    except ConfigError:
        return False


def _pip_variables(pip: PipSettings) -> list[tuple[str, str]]:
    index = [place.bare for place in pip.indexes[:1] if _has_name(place)]
    more = [place.bare for place in pip.indexes[1:] if _has_name(place)]
    links = [place.bare for place in pip.links if _has_name(place)]
    told = {
        "PIP_INDEX_URL": index,
        "PIP_EXTRA_INDEX_URL": more,
        "PIP_FIND_LINKS": links,
        "PIP_TRUSTED_HOST": pip.trusted,
    }
    variables = [(name, " ".join(words)) for name, words in told.items() if words]
    return [*variables, ("PIP_DISABLE_PIP_VERSION_CHECK", "1"), ("PIP_NO_INPUT", "1")]


def _npm_variables(npm: NpmSettings) -> list[tuple[str, str]]:
    variables = [("NPM_CONFIG_REGISTRY", npm.registry.bare)] if _has_name(npm.registry) else []
    quiet = ("AUDIT", "FUND", "UPDATE_NOTIFIER")
    return [*variables, *((f"NPM_CONFIG_{name}", "false") for name in quiet)]
