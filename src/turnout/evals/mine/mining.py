"""Mining itself: candidates are proven several at a time, newest first, a quota for each size."""

import asyncio
import math
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Final, Protocol

from turnout.core.json import JsonObject, ascii_json
from turnout.errors import RepositoryError, SandboxError
from turnout.evals.instances.entries import MOST_LINE
from turnout.evals.instances.mined import whole_suite
from turnout.evals.mine.candidates import Candidate, Looked
from turnout.evals.mine.output import MinedFile
from turnout.evals.mine.parents import Parents
from turnout.evals.mine.prove import Prover
from turnout.evals.mine.reasons import Dropped
from turnout.evals.mine.record import About, draft, mined_row

__all__ = ["Miner", "Told", "Watch", "Wish"]

_SIZES: Final = 4
_WAITING: Final = 5
_FAILURES: Final = 5
"""In a row: then it is the machine that is not fit."""


@dataclass(frozen=True, slots=True)
class Wish:
    """How much is wanted."""

    limit: int | None = None
    """Rows in the file, those of before included; None: all that can be found."""
    jobs: int = 1
    """Candidates that are proven at the same time."""
    self_contained: bool = False
    """Whether fixes are left out of which only their tests say what is wanted."""

    @property
    def quota(self) -> float:
        """Rows of one class of size, until nothing else is left."""
        return math.inf if self.limit is None else math.ceil(self.limit / _SIZES)

    @property
    def most_waiting(self) -> float:
        """Candidates beyond a quota after which no rarer size is looked for."""
        return math.inf if self.limit is None else _WAITING * self.limit


@dataclass(frozen=True, slots=True)
class Told:
    """One commit that was decided."""

    commit: str
    title: str
    verdict: Dropped | str
    """Or the class of its size, where it was kept."""


class Watch(Protocol):
    """Is told of what happens, and must not wait."""

    def began(self, candidate: Candidate) -> None:
        """Take note that a candidate is being proven."""
        ...

    def ended(self) -> None:
        """Take note that one is no more."""
        ...

    def tell(self, told: Told) -> None:
        """Take note of a commit that was decided."""
        ...


class Miner:
    """Fills a file with the fixes of one repository."""

    def __init__(
        self,
        prover: Prover,
        about: About,
        out: MinedFile,
        wish: Wish,
        watch: Watch,
        *,
        parents: Parents | None = None,
    ) -> None:
        """With `parents` each fix is proven on its parent alone, without a history."""
        self._parents = parents
        self._prover = prover
        self._about = about
        self._out = out
        self._wish = wish
        self._watch = watch
        self._running: dict[asyncio.Task[None], Candidate] = {}
        self._failures: list[str] = []
        self._in_a_row = 0

    @property
    def failures(self) -> tuple[str, ...]:
        """What kept candidates from being decided: they are tried again another time."""
        return tuple(self._failures)

    async def mine(self, looked: AsyncIterator[Looked]) -> None:
        """Decide commits until enough are kept; those beyond the quota of their size come last.

        Whatever ends it, what was decided is on disk and nothing runs any more.
        """
        later: list[Candidate] = []
        try:
            async for each in looked:
                if isinstance(each.found, Dropped):
                    self._drop(each.commit.name, each.title, each.found)
                elif not await self._turn(each.found, self._wish.quota):
                    later.append(each.found)
                if self._full or len(later) >= self._wish.most_waiting:
                    break
            await self._settled()
            for candidate in later:
                if not await self._turn(candidate, math.inf):
                    break
            await self._settled()
        finally:
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)

    @property
    def _full(self) -> bool:
        return self._wish.limit is not None and self._out.kept >= self._wish.limit

    async def _turn(self, candidate: Candidate, quota: float) -> bool:
        """Begin to prove a candidate once there is room; False where its kind is not wanted now."""
        limit = math.inf if self._wish.limit is None else self._wish.limit
        size = candidate.difficulty
        while True:
            if self._full or self._out.sizes.get(size, 0) >= quota:
                return False
            running = Counter(each.difficulty for each in self._running.values())
            if (
                len(self._running) < self._wish.jobs
                and self._out.kept + len(self._running) < limit
                and self._out.sizes.get(size, 0) + running[size] < quota
            ):
                self._running[asyncio.create_task(self._decide(candidate))] = candidate
                return True
            await self._one_ended()

    async def _one_ended(self) -> None:
        done, _ = await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            del self._running[task]
            task.result()

    async def _settled(self) -> None:
        while self._running:
            await self._one_ended()

    async def _decide(self, candidate: Candidate) -> None:
        self._watch.began(candidate)
        try:
            found = await self._proven(candidate)
        except (RepositoryError, SandboxError) as error:
            self._failures.append(f"{candidate.commit.name[:10]}: {error}")
            self._in_a_row += 1
            if self._in_a_row >= _FAILURES:
                raise
            return
        finally:
            self._watch.ended()
        self._in_a_row = 0
        if isinstance(found, Dropped):
            self._drop(candidate.commit.name, candidate.title, found)
            return
        self._out.keep(found)
        self._watch.tell(Told(candidate.commit.name, candidate.title, candidate.difficulty))

    async def _proven(self, candidate: Candidate) -> Dropped | JsonObject:
        fix = draft(candidate, self._about)
        if self._parents is not None:
            alone = await self._parents.alone(candidate.base)
            fix = replace(fix, repository=self._parents.repository, base_commit=alone)
        changed = self._about.test_command or whole_suite(candidate.test_files or candidate.suite)
        glance = await self._prover.glance(fix, changed)
        if isinstance(glance, Dropped):
            return glance
        if glance.asks_for_names and self._wish.self_contained:
            return Dropped("needs_tests")
        proof = await self._prover.prove(fix)
        if isinstance(proof, Dropped):
            return proof
        row = mined_row(candidate, self._about, glance, proof)
        return row if len(ascii_json(row)) <= MOST_LINE else Dropped("odd_files", "too long a row")

    def _drop(self, commit: str, title: str, dropped: Dropped) -> None:
        self._out.drop(commit, title, dropped)
        self._watch.tell(Told(commit, title, dropped))
