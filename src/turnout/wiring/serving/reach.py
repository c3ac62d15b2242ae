"""How the repositories of a service are reached: their tokens are read when they are used."""

from dataclasses import dataclass

from turnout.core.ids import RunId
from turnout.core.service.repositories import RepositoryAccess
from turnout.errors import ConfigError, DeliveryError, RepositoryError
from turnout.runs.publish.push import Change, push_branch
from turnout.sandbox.repository import Resolved, resolve
from turnout.sandbox.workspace.git import Access
from turnout.sandbox.workspace.history import Compared, compare, fetch_history
from turnout.sandbox.workspace.source import locate
from turnout.settings import REACH_VARIABLES, Settings, secret_value
from turnout.wiring.state import state_folder_of

__all__ = ["Reach"]


@dataclass(frozen=True, slots=True)
class Reach:
    """Reads repositories by place, and pushes to them by name."""

    settings: Settings

    async def resolve(self, place: str, base: str) -> Resolved:
        """Find the public commit that `base` names; `RepositoryError` where that cannot be."""
        return await resolve(place, base, self._access_at(place), public=True)

    async def fetch(self, place: str, commit: str) -> None:
        """Have a commit here, and its ancestors, before something without a token asks for it.

        Nothing is done where no token is needed. `RepositoryError` where it cannot be had.
        """
        access = self._access_at(place)
        if access is not None:
            source = await locate(place, access)
            await fetch_history(source, commit, state_folder_of(self.settings))

    async def compare(self, place: str, base: str, head: str) -> Compared:
        """Return what a commit changes since it has left another one."""
        for commit in (base, head):
            await self.fetch(place, commit)
        return await compare(place, base, head, state_folder_of(self.settings))

    async def push(self, name: str, run_id: RunId, change: Change) -> str:
        """Push a run's change as a new branch; `DeliveryError` where that fails."""
        book = self.settings.service.repositories
        if name not in book.named or not book.may_push(name):
            raise DeliveryError(f"This service pushes no branches to {name!r} any more.")
        place = book.located(name)
        try:
            source = await locate(place, self._access(place, book.access_of(name)))
        except RepositoryError as error:
            raise DeliveryError(error.message, mend=error.mend, passing=True) from error
        return await push_branch(source, run_id, change, state_folder_of(self.settings))

    def _access_at(self, place: str) -> Access | None:
        """Return the token of a place, under whichever name it has one."""
        book = self.settings.service.repositories
        tokens = [
            access
            for name, access in book.access.items()
            if access.credential_variable and book.named.get(name) == place
        ]
        return self._access(place, tokens[0]) if tokens else None

    def _access(self, place: str, access: RepositoryAccess) -> Access | None:
        """Return the token of a place; `RepositoryError` where it is named and not set."""
        variable = access.credential_variable
        if not variable:
            return None
        try:
            token = secret_value(variable)
        except ConfigError as error:
            raise RepositoryError(error.message, mend=error.mend) from error
        if token is None:
            raise RepositoryError(
                f"The variable {variable} is not set, with which the repository is reached.",
                mend=f"Set {variable} for the process of the service.",
            )
        around = self.settings.host_environment
        told = {name: value for name, value in around.items() if name in REACH_VARIABLES}
        return Access(place, token, told)
