"""Checkpoints in a folder that all machines have mounted."""

import asyncio
import re
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Final

from turnout.core.ids import RunId
from turnout.core.service.checkpoints import Part
from turnout.errors import NotFoundError, StoreError

__all__ = ["FolderVault"]

_NAME: Final = re.compile(r"[A-Za-z0-9-]{1,100}")
_PIECE: Final = 1 << 18
_AT_ONCE: Final = 500
"""Runs that are asked about together."""


class FolderVault:
    """Parts as files `RUN/KEY.EPOCH.LIKENESS`; each is there whole from the moment of its name."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def likeness(self, run_id: RunId, key: str) -> str | None:
        """Return what a part lies on; None where it is not kept."""
        found = await asyncio.to_thread(self._find, run_id, key)
        return None if found is None else found.name.rpartition(".")[2]

    async def put(self, part: Part, stream: AsyncIterator[bytes]) -> None:
        """Keep a part, whole or not at all."""
        folder = self._folder(part.run_id)
        made = folder / f".{token_hex(8)}"
        try:
            await asyncio.to_thread(folder.mkdir, 0o700, True, True)
            with await asyncio.to_thread(made.open, "xb") as file:
                async for data in stream:
                    await asyncio.to_thread(file.write, data)
            name = f"{_checked(part.key)}.{part.epoch}.{_checked(part.likeness)}"
            await asyncio.to_thread(made.rename, folder / name)
        except OSError as error:
            raise _failed(self._root, error) from error
        finally:
            with suppress(OSError):
                await asyncio.to_thread(made.unlink)

    async def get(self, run_id: RunId, key: str) -> AsyncIterator[bytes]:
        """Yield a part; `NotFoundError` where it is not kept."""
        found = await asyncio.to_thread(self._find, run_id, key)
        if found is None:
            raise NotFoundError(f"No checkpoint {key[:12]} of {run_id} is kept.")
        try:
            with await asyncio.to_thread(found.open, "rb") as file:
                while data := await asyncio.to_thread(file.read, _PIECE):
                    yield data
        except FileNotFoundError as error:
            raise NotFoundError(f"No checkpoint {key[:12]} of {run_id} is kept.") from error
        except OSError as error:
            raise _failed(self._root, error) from error

    async def keep_only(self, run_id: RunId, epoch: int, keys: Collection[str]) -> None:
        """Drop the other parts that this segment of a run, or an earlier one, has put."""
        await asyncio.to_thread(self._drop, run_id, epoch, keys)

    async def forget(self, run_id: RunId) -> None:
        """Drop all parts of a run."""
        await asyncio.to_thread(shutil.rmtree, self._folder(run_id), True)

    async def sweep(self, ended: Callable[[Sequence[RunId]], Awaitable[Sequence[RunId]]]) -> int:
        """Drop what is kept of runs that have ended, of which `ended` knows; returns of how many.

        Runs that it does not know may be those of another service.
        """
        runs = await asyncio.to_thread(self._runs)
        over = 0
        for start in range(0, len(runs), _AT_ONCE):
            for run_id in await ended(runs[start : start + _AT_ONCE]):
                await self.forget(run_id)
                over += 1
        return over

    def _runs(self) -> Sequence[RunId]:
        try:
            return [RunId(path.name) for path in self._root.iterdir() if _NAME.fullmatch(path.name)]
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise _failed(self._root, error) from error

    def _find(self, run_id: RunId, key: str) -> Path | None:
        try:
            return next(self._folder(run_id).glob(f"{_checked(key)}.*.*"), None)
        except OSError as error:
            raise _failed(self._root, error) from error

    def _drop(self, run_id: RunId, epoch: int, keys: Collection[str]) -> None:
        try:
            for path in self._folder(run_id).glob("*.*.*"):
                key, made, _ = path.name.split(".")
                if key not in keys and int(made) <= epoch:
                    path.unlink(missing_ok=True)
        except OSError as error:
            raise _failed(self._root, error) from error

    def _folder(self, run_id: RunId) -> Path:
        return self._root / _checked(run_id)


def _checked(name: str) -> str:
    """Return a name that leads nowhere else."""
    if not _NAME.fullmatch(name):
        raise StoreError(f"{name[:100]!r} is no name of a checkpoint.")
    return name


def _failed(root: Path, error: OSError) -> StoreError:
    return StoreError(
        f"The folder of checkpoints {root} failed: {error.strerror}.",
        mend="Check that it is mounted and can be written, or set `checkpoints` under `[service]`.",
    )
