"""Whether instances can be begun at all: their clones are there and hold the commits they name."""

from collections.abc import Sequence
from typing import Final

from turnout.errors import ConfigError, RepositoryError
from turnout.evals.instances.clone import Clone
from turnout.evals.instances.model import Instance
from turnout.runs.intake import without_credentials
from turnout.sandbox.workspace.source import locate

__all__ = ["check_sources"]

_SHOWN: Final = 3


async def check_sources(instances: Sequence[Instance]) -> None:
    """Raise `ConfigError` where instances cannot be begun, with the line and the field of each.

    Nothing is fetched: of a repository at a URL only the address is looked at.
    """
    known: dict[tuple[str, str], ConfigError | None] = {}
    found: list[ConfigError] = []
    for each in instances:
        if not each.repository:
            continue
        key = (each.repository, each.base_commit)
        if key not in known:
            known[key] = await _fault(each)
            if (fault := known[key]) is not None:
                found.append(fault)
    if not found:
        return
    told = " ".join(error.message for error in found[:_SHOWN])
    more = f" And {len(found) - _SHOWN} more." if len(found) > _SHOWN else ""
    raise ConfigError(f"{told}{more}", mend=found[0].mend)


async def _fault(instance: Instance) -> ConfigError | None:
    """Return what keeps an instance from being begun; None where nothing does."""
    place = instance.place or instance.instance_id
    if without_credentials(instance.repository) != instance.repository:
        return ConfigError(
            f"{place}: repo: its address holds a password.",
            mend="Clone it, and name the folder that holds the clone: --repos DIR.",
        )
    try:
        source = await locate(instance.repository)
    except RepositoryError as error:
        return ConfigError(
            f"{place}: repo: {error.message}",
            mend=f"{error.mend} Or name the folder that holds clones: --repos DIR.",
        )
    if not source.local:
        return None
    try:
        await Clone(instance.repository, source.url).commit_of(instance.base_commit)
    except RepositoryError as error:
        return ConfigError(f"{place}: base_commit: {error.message}", mend=error.mend)
    return None
