"""Where the repositories of a service are, looked at before anything is worked on."""

import asyncio
from dataclasses import dataclass
from typing import Final

from turnout.core.service.repositories import RepositoryBook
from turnout.errors import GatewayError, RepositoryError
from turnout.sandbox.repository import check_base
from turnout.sandbox.workspace.source import Source, locate

__all__ = ["Places"]

_LOOK: Final = 5.0
"""Seconds that an order waits for git at most; a slower one is left to the worker."""


@dataclass(frozen=True, slots=True)
class Places:
    """The repositories that callers name."""

    book: RepositoryBook

    async def check(self) -> None:
        """Refuse (`RepositoryError`) to begin where one of this machine is not there."""
        for name, place in self.book.named.items():
            try:
                await locate(place)
            except RepositoryError as error:
                raise RepositoryError(
                    f"The repository {name!r} cannot be served: {error.message}", mend=error.mend
                ) from error

    async def check_base(self, name: str, base: str) -> None:
        """Refuse (`RepositoryError`) a base that a repository of this machine does not have.

        `GatewayError` (503) where the repository itself is gone. Callers read its name, never
        where it is.
        """
        place = self.book.located(name)
        try:
            async with asyncio.timeout(_LOOK):
                await check_base(await self._source(name, place), base, shown=name)
        except TimeoutError:
            return

    async def _source(self, name: str, place: str) -> Source:
        try:
            return await locate(place)
        except RepositoryError as error:
            raise GatewayError(
                f"The service cannot read the repository {name!r} any more.",
                status=503,
                code="repository_unavailable",
                mend="Whoever runs it has to put it back, or name another place for it.",
                param="repo",
            ) from error
