"""How policies change: every change is a revision that follows the newest."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from turnout.core.clock import Clock
from turnout.core.govern.revisions import PolicyRevision, default_among
from turnout.core.policies import Policy
from turnout.errors import ConflictError, NotFoundError, StoreError
from turnout.gateway.catalog import Catalog
from turnout.gateway.config.policy_file import check_models
from turnout.gateway.policy.diff import FieldChange, differences
from turnout.gateway.policy.findings import Finding, findings
from turnout.gateway.policy.ports import PolicyStore

__all__ = ["Changed", "Outcome", "PolicyDesk", "PolicyDiff", "Signature"]

Changed = Callable[[], Awaitable[None]]
"""Called after a change, so that whoever serves here need not find out by itself."""


@dataclass(frozen=True, slots=True)
class Signature:
    """Who changes a policy, and why."""

    author: str
    note: str = ""
    expected: int | None = None
    """Number of the revision that the author has seen, 0 for none; None: whichever is newest."""


@dataclass(frozen=True, slots=True)
class PolicyDiff:
    """What differs between two revisions of a policy."""

    policy: str
    before: int | None
    """0 where the configuration file's was compared with; None where there was none at all."""
    after: int | None
    """None where it is a draft."""
    changes: tuple[FieldChange, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a policy that was to be applied."""

    revision: PolicyRevision
    """The new one; the newest where nothing differed."""
    diff: PolicyDiff

    @property
    def changed(self) -> bool:
        """Whether a revision was written."""
        return self.diff.before != self.diff.after


async def _nobody() -> None:
    """Nobody serves in this process."""


class PolicyDesk:
    """Reads, compares and changes the policies of the store."""

    def __init__(
        self,
        store: PolicyStore,
        catalog: Catalog,
        clock: Clock,
        *,
        own: Sequence[Policy] = (),
        changed: Changed = _nobody,
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._clock = clock
        self._own = own
        self._changed = changed

    async def newest(self) -> Sequence[PolicyRevision]:
        """Return the newest revision of every policy of the store, by name."""
        return await self._store.newest()

    def of_file(self) -> Sequence[Policy]:
        """Return the policies of the configuration file, which count where the store has none."""
        return self._own

    async def default(self) -> str:
        """Return the name of the policy of keys that have none of their own."""
        filed = [policy.name for policy in self._own]
        kept = [revision.policy.name for revision in await self._store.newest()]
        return default_among([*filed, *kept], filed)

    async def newest_of(self, name: str) -> PolicyRevision | None:
        """Return a policy's newest revision; None where it was never applied."""
        found = await self._store.history(name, limit=1)
        return found[0] if found else None

    async def in_force(self, name: str) -> Policy:
        """Return the policy of that name that counts; `NotFoundError` where there is none."""
        newest = await self.newest_of(name)
        if newest is not None:
            return newest.policy
        for policy in self._own:
            if policy.name == name:
                return policy
        raise self._no_policy(name)

    async def history(self, name: str, *, limit: int = 100) -> Sequence[PolicyRevision]:
        """Return a policy's revisions, newest first; `NotFoundError` where there is none."""
        found = await self._store.history(name, limit=limit)
        if not found:
            raise self._no_policy(name)
        return found

    async def get(self, name: str, number: int | None = None) -> PolicyRevision:
        """Return one revision, the newest by default; `NotFoundError` where there is none."""
        if number is None:
            return (await self.history(name, limit=1))[0]
        found = await self._store.get(name, number)
        if found is None:
            newest = (await self.history(name, limit=1))[0].policy.revision
            raise NotFoundError(
                f"The policy {name!r} has no revision {number}.",
                mend=f"Its revisions are 1 to {newest}.",
            )
        return found

    async def diff(
        self, name: str, before: int | None = None, after: int | None = None
    ) -> PolicyDiff:
        """Compare two revisions: by default the newest with the one before it.

        `NotFoundError` where there is none of that number. `before` 0: a policy that says nothing.
        """
        newer = await self.get(name, after)
        number = newer.policy.revision - 1 if before is None else before
        older = (await self.get(name, number)).policy if number else Policy(name=name)
        changes = differences(older, newer.policy)
        return PolicyDiff(name, number or None, newer.policy.revision, changes)

    async def since(self, name: str, seen: int) -> PolicyDiff:
        """Return what has changed since a revision that somebody has seen.

        0: before the first. `NotFoundError` where there is none of that number, or none at all.
        """
        newest = await self.get(name)
        if seen:
            return await self.diff(name, seen, newest.policy.revision)
        return self._diff(None, newest.policy, newest.policy.revision)

    async def compare(self, draft: Policy) -> PolicyDiff:
        """Compare a draft with what counts under its name now."""
        newest = await self.newest_of(draft.name)
        return self._diff(newest, draft, None)

    def check(self, policy: Policy, where: str = "policy") -> tuple[Finding, ...]:
        """Return what stands out in a policy; `ConfigError` where it names what is not there."""
        if self._catalog.deployments:
            check_models(policy, self._catalog, where)
        return findings(policy, self._catalog)

    async def apply(self, policies: Sequence[Policy], signed: Signature) -> Sequence[Outcome]:
        """Make each policy that differs from its newest revision a new one, all or none.

        `ConfigError` where one names what is not there; `ConflictError` where a policy is not at
        the revision that the author expects, or is changed at the same time.
        """
        for policy in policies:
            self.check(policy, f"policies.{policy.name}")
        before = {policy.name: await self.newest_of(policy.name) for policy in policies}
        outcomes = [self._outcome(policy, before[policy.name], signed) for policy in policies]
        await self._write([outcome.revision for outcome in outcomes if outcome.changed])
        return outcomes

    async def rollback(self, name: str, number: int, signed: Signature) -> Outcome:
        """Make the content of an earlier revision a new revision.

        `NotFoundError` where there is none of that number; the conflicts of `apply`.
        """
        old = await self.get(name, number)
        newest = await self.newest_of(name)
        outcome = self._outcome(old.policy, newest, signed, restores=number)
        if outcome.changed:
            await self._write([outcome.revision])
        return outcome

    async def _write(self, revisions: Sequence[PolicyRevision]) -> None:
        if not revisions:
            return
        await self._store.add(revisions)
        # It is written; whoever could not be told looks for himself before long.
        with suppress(StoreError):
            await self._changed()

    def _outcome(
        self,
        policy: Policy,
        newest: PolicyRevision | None,
        signed: Signature,
        restores: int | None = None,
    ) -> Outcome:
        number = newest.policy.revision if newest else 0
        if signed.expected is not None and signed.expected != number:
            raise ConflictError(
                f"The policy {policy.name!r} is at revision {number}, not {signed.expected}.",
                mend="Look at what changed, then try again with that number.",
            )
        if newest is not None and not differences(newest.policy, policy):
            return Outcome(newest, PolicyDiff(policy.name, number, number, ()))
        made = PolicyRevision(
            replace(policy, revision=number + 1),
            signed.author,
            self._clock.now(),
            signed.note,
            restores,
        )
        return Outcome(made, self._diff(newest, made.policy, number + 1))

    def _diff(
        self, newest: PolicyRevision | None, policy: Policy, number: int | None
    ) -> PolicyDiff:
        own = next((one for one in self._own if one.name == policy.name), None)
        older = newest.policy if newest is not None else own or Policy(name=policy.name)
        before = older.revision if newest is not None or own is not None else None
        return PolicyDiff(policy.name, before, number, differences(older, policy))

    def _no_policy(self, name: str) -> NotFoundError:
        if any(policy.name == name for policy in self._own):
            return NotFoundError(
                f"The policy {name!r} is in the configuration file and was never applied.",
                mend="Apply it with `turnout policy apply FILE`; from then on it has revisions.",
            )
        return NotFoundError(
            f"There is no policy {name!r}.", mend="`turnout policy history` lists them."
        )
