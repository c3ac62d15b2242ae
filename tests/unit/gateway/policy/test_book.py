"""Which policy a request is under."""

import asyncio

import pytest
from tests.samples import NOON

from turnout.core.govern.revisions import PolicyRevision
from turnout.core.inference import RoutingAsk
from turnout.core.policies import Policy
from turnout.errors import GatewayError, StoreError
from turnout.gateway.exchange import Caller
from turnout.gateway.policy.book import PolicyBook
from turnout.testing.clock import FrozenClock
from turnout.testing.stores import MemoryPoliciesStore

BOOK = PolicyBook([Policy(), Policy(name="team"), Policy(name="other")])
NOBODY = Caller("k")


def named(book: PolicyBook, caller: Caller, policy: str | None = None) -> str:
    """Return the name of the policy that a request is under."""
    return book.resolve(caller, RoutingAsk(policy=policy)).name


def refused(book: PolicyBook, caller: Caller, policy: str | None = None) -> tuple[int, str]:
    """Return status and code of the refusal."""
    with pytest.raises(GatewayError) as caught:
        named(book, caller, policy)
    return caught.value.status, caught.value.code


def revision(number: int, **changes) -> PolicyRevision:
    """Return a revision of the policy `team`."""
    return PolicyRevision(Policy(**{"name": "team", "revision": number, **changes}), "ann", NOON)


def test_a_key_has_its_own_policy_and_may_choose_among_those_it_is_granted() -> None:
    """Its own is the first; a key without one has the default."""
    granted = Caller("k", policies=("team", "other"))
    assert named(BOOK, NOBODY) == "default"
    assert named(BOOK, granted) == "team"
    assert named(BOOK, granted, "team") == "team"
    assert named(BOOK, granted, "other") == "other"


def test_a_policy_that_is_not_granted_is_refused() -> None:
    """403: also the default, for a key that has another."""
    assert refused(BOOK, NOBODY, "team") == (403, "policy_not_granted")
    assert refused(BOOK, Caller("k", policies=("team",)), "other") == (403, "policy_not_granted")
    assert refused(BOOK, Caller("k", policies=("team",)), "default") == (403, "policy_not_granted")


def test_an_admin_key_may_try_any_policy() -> None:
    """It could change its own anyway."""
    assert named(BOOK, Caller("k", admin=True), "other") == "other"


def test_a_policy_that_does_not_exist_is_never_replaced_by_another() -> None:
    """404, whether the request or the key names it: the default might allow more."""
    assert refused(BOOK, NOBODY, "tem") == (404, "policy_not_found")
    assert refused(BOOK, Caller("k", policies=("gone",))) == (404, "policy_not_found")


def test_the_refusal_names_no_policy_of_other_keys() -> None:
    """What other teams have is not for this key to learn."""
    with pytest.raises(GatewayError) as caught:
        named(BOOK, Caller("k", policies=("team",)), "othe")
    assert "other" not in str(caught.value)


def test_the_only_policy_of_a_file_is_the_default() -> None:
    """A name must not make it go unused."""
    assert named(PolicyBook([Policy(name="ours")]), NOBODY) == "ours"
    assert named(PolicyBook([]), NOBODY) == "default"
    several = PolicyBook([Policy(name="a"), Policy(name="b")])
    assert refused(several, NOBODY) == (404, "policy_not_found")


async def test_the_store_wins_over_the_file() -> None:
    """Policies that only the file has stay in force."""
    store = MemoryPoliciesStore()
    book = PolicyBook([Policy(name="team", objective="cost"), Policy(name="mine")], store)
    await book.refresh()
    assert book.policy("team") == Policy(name="team", objective="cost")
    await store.add([revision(1, objective="latency")])
    await book.refresh()
    assert book.policy("team") == revision(1, objective="latency").policy
    assert book.policy("mine") == Policy(name="mine")


class UnreadableStore(MemoryPoliciesStore):
    """Cannot be read until it is mended."""

    broken = True

    async def count(self) -> int:
        """Return how many revisions there are, or fail."""
        if self.broken:
            raise StoreError("The database is gone.")
        return await super().count()


class ChangingClock(FrozenClock):
    """Has something happen whenever somebody sleeps."""

    def __init__(self, happens) -> None:
        super().__init__()
        self._happens = happens

    async def sleep(self, seconds: float) -> None:
        """Move the clock, and the world."""
        await super().sleep(seconds)
        await self._happens(len(self.slept))


async def test_a_change_by_another_process_is_seen_within_a_second(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A store that cannot be read for a while leaves all as it was, and is said once."""
    store = UnreadableStore()
    book = PolicyBook([Policy(name="team")], store)
    seen: list[Policy | None] = []

    async def happens(times: int) -> None:
        seen.append(book.policy("team"))
        if times == 1:
            await store.add([revision(1, objective="latency")])
        store.broken = times < 3
        if times == 4:
            raise asyncio.CancelledError

    clock = ChangingClock(happens)
    with pytest.raises(asyncio.CancelledError):
        await book.keep_fresh(clock)
    assert seen[:3] == [Policy(name="team")] * 3
    assert seen[3] == revision(1, objective="latency").policy
    assert max(clock.slept) <= 1
    assert [record.getMessage() for record in caplog.records] == [
        "The policies in force stay as they are: The database is gone."
    ]
