"""Keeping the live evidence between processes, and sharing it among them."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Self

from turnout.core.govern.evidence import Observation
from turnout.core.ids import DeploymentId
from turnout.errors import StoreError
from turnout.gateway.measure.live import LiveEvidence
from turnout.gateway.measure.settle import decode_result
from turnout.gateway.ports import EvidenceStore, ProbeStore

__all__ = ["EvidenceKeeper"]

_EVERY = 5.0


class EvidenceKeeper:
    """Loads evidence at the start, then saves and reloads it every few seconds, and at the end."""

    def __init__(
        self,
        evidence: LiveEvidence,
        store: EvidenceStore,
        keys: Mapping[DeploymentId, str],
        probes: ProbeStore,
        *,
        every: float = _EVERY,
    ) -> None:
        """`keys`: what each deployment's evidence is kept under; `every`: seconds."""
        self._evidence = evidence
        self._store = store
        self._keys = keys
        self._probes = probes
        self._every = every
        self._keeping: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Load what earlier processes saw, and begin to save what this one sees."""
        await self._load()
        self._keeping = asyncio.create_task(self._keep())

    async def close(self) -> None:
        """Save what was seen last, if that can be: nobody's work depends on it."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
            self._keeping = None
        with suppress(StoreError):
            await self._save()

    async def exchange(self) -> None:
        """Save what was seen here, and take in what others saw; `StoreError` where that failed."""
        await self._save()
        await self._load()

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            # The next round tries again with what `_save` has put back.
            with suppress(StoreError):
                await self.exchange()

    async def _save(self) -> None:
        unsaved = self._evidence.take_unsaved()
        seen: dict[str, list[Observation]] = {}
        for id_, observations in unsaved.items():
            if id_ in self._keys:
                seen.setdefault(self._keys[id_], []).extend(observations)
        if not seen:
            return
        try:
            await self._store.merge_rates(seen)
        except StoreError:
            self._evidence.put_back(unsaved)
            raise

    async def _load(self) -> None:
        """Take in what the store has, from this process and from others."""
        kept = await self._store.rates(set(self._keys.values()))
        found = {id_: kept[key] for id_, key in self._keys.items() if key in kept}
        self._evidence.replace_rates(found)
        self._evidence.know_qualities(await self._store.qualities())
        for id_, key in self._keys.items():
            result = decode_result(await self._probes.get(key))
            if result is not None:
                self._evidence.learn(replace(result, deployment=id_))
