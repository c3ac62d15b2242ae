"""Removing what was made for workspaces and has not been used for some time."""

import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Final

from turnout.sandbox.workspace.building import discard, remove_abandoned
from turnout.sandbox.workspace.folders import private
from turnout.sandbox.workspace.process import run_program
from turnout.sandbox.workspace.use import give_up

__all__ = ["Pruned", "prune"]

_DAY: Final = 86_400.0
_IN_USE: Final = 26 * 3_600.0
"""A sandbox may live for a day on what it was started with, without a sign of use."""
_SIZE_TIMEOUT: Final = 300.0
_MIRRORS: Final = "mirrors"
_KINDS: Final = (
    *("histories", "trees", "environments", "projects", "nodes", "setups", "kept"),
    *("places", "checkouts"),
)
_NOTES: Final = ("layers", "indexes", "befores")
"""Kinds that are single small files."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was removed."""

    names: tuple[str, ...]
    """Relative to the state folder, in the order of their last use."""
    size_bytes: int
    """What it took of the disk."""


@dataclass(frozen=True, slots=True)
class _Item:
    root: Path
    """State folder of the driver that it belongs to."""
    path: Path
    used: float
    """When, in seconds since 1970."""
    size: int


async def prune(state_dir: Path, *, keep_days: float = 30, keep_bytes: int | None = None) -> Pruned:
    """Remove what was not used for `keep_days`, and what was so longest above `keep_bytes` in all.

    What was used within the last 26 hours stays, whatever it takes: a sandbox may stand on it. Safe
    beside services that use the folder; what cannot be removed now stays until the next time.
    """
    roots = _roots(state_dir)
    for root in roots:
        for kind in (*_KINDS, _MIRRORS):
            await remove_abandoned(root / kind)
    items = await _items(roots)
    removed = [item for item in _doomed(items, keep_days, keep_bytes) if await _remove(item)]
    names = (item.path.relative_to(state_dir).as_posix() for item in removed)
    return Pruned(tuple(names), sum(item.size for item in removed))


def _roots(state_dir: Path) -> list[Path]:
    """Return the folder itself and those within it that other drivers keep for themselves."""
    own = (*_KINDS, *_NOTES, _MIRRORS)
    within = [
        *_entries(state_dir),
        *(path for one in _entries(state_dir) for path in _entries(one)),
    ]
    others = (path for path in within if path.relative_to(state_dir).parts[0] not in own)
    return [state_dir, *(path for path in others if (path / "layers").is_dir())]


async def _items(roots: Sequence[Path]) -> list[_Item]:
    """Return all that may be removed, the longest unused first."""
    kinds = (*_KINDS, *_NOTES, _MIRRORS)
    paths = {path: root for root in roots for kind in kinds for path in _entries(root / kind)}
    sizes = await _sizes(list(paths))
    found = []
    for path, root in paths.items():
        try:
            found.append(_Item(root, path, path.stat().st_mtime, sizes.get(path, 0)))
        except FileNotFoundError:
            continue
    return sorted(found, key=lambda item: item.used)


def _entries(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if not path.name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


async def _sizes(paths: Sequence[Path]) -> dict[Path, int]:
    """Return what each takes; what cannot be read is left out."""
    if not paths:
        return {}
    argv = ["du", "--summarize", "--block-size=1", "--null", "--", *map(str, paths)]
    done = await run_program(argv, timeout=_SIZE_TIMEOUT, cap=64 << 20)
    records = [record.partition(b"\t") for record in done.stdout.split(b"\0") if record]
    return {Path(os.fsdecode(path)): int(size) for size, _, path in records if size.isdigit()}


def _doomed(items: Sequence[_Item], keep_days: float, keep_bytes: int | None) -> Iterator[_Item]:
    now = time.time()
    total = sum(item.size for item in items)
    for item in items:
        if item.used > now - _IN_USE:
            return
        too_much = keep_bytes is not None and total > keep_bytes
        if too_much or item.used < now - keep_days * _DAY:
            total -= item.size
            yield item


async def _remove(item: _Item) -> bool:
    """Remove it unless it is used meanwhile."""
    doomed = item.path.with_name(f".gone-{token_hex(6)}")
    with _alone(item) as alone:
        if not alone or not give_up(item.root, item.path, doomed, unused_since=item.used):
            return False
    await discard(doomed)
    return True


@contextmanager
def _alone(item: _Item) -> Iterator[bool]:
    """Hold the lock of a mirror while it is taken away; whether nobody else holds it."""
    if item.path.parent.name != _MIRRORS:
        yield True
        return
    lock = private(item.root / "locks") / f"mirror-{item.path.name.removesuffix('.git')}"
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(descriptor)
