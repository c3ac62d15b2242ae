from dataclasses import replace
from datetime import timedelta

import pytest
from tests.samples import NOON, receipt

from turnout.core.govern.closing import Closing, KeptReply
from turnout.core.govern.replies import Standing
from turnout.store.books import BooksStore
from turnout.store.replies import RepliesStore
from turnout.testing.books import MemoryBooks

LATER = NOON + timedelta(seconds=30)
MINE = KeptReply("k", "once", "digest", "", LATER, "req-1")
YOURS = replace(MINE, holder="req-2")


@pytest.fixture(params=["memory", "sql"])
def replies(request, database):
    """Return an empty one of each kind."""
    return MemoryBooks().replies if request.param == "memory" else RepliesStore(database)


@pytest.fixture(params=["memory", "sql"])
def both(request, database):
    """Return books and what reads them back."""
    if request.param == "memory":
        books = MemoryBooks()
        return books, books.replies
    return BooksStore(database), RepliesStore(database)


async def test_the_first_claims_and_the_second_waits(replies):
    """The second learns what the key stands for."""
    assert await replies.claim(MINE, NOON) == Standing("claimed", "digest")
    other = replace(YOURS, digest="other")
    assert await replies.claim(other, NOON) == Standing("running", "digest")


async def test_a_claim_without_a_sign_of_life_lapses(replies):
    """Its process has died; whoever asks then takes its place."""
    await replies.claim(MINE, NOON)
    taken = replace(YOURS, digest="new", until=LATER + timedelta(seconds=30))
    assert await replies.claim(taken, LATER) == Standing("claimed", "new", lapsed="req-1")
    await replies.renew([replace(MINE, until=LATER + timedelta(hours=1))])
    await replies.free(MINE)
    assert await replies.claim(MINE, LATER) == Standing("running", "new")


async def test_a_sign_of_life_holds_a_claim(replies):
    """For as long as it says."""
    await replies.claim(MINE, NOON)
    await replies.renew([replace(MINE, until=LATER + timedelta(seconds=1))])
    assert (await replies.claim(YOURS, LATER)).state == "running"


async def test_a_claim_that_is_given_up_is_free_at_once(replies):
    """The next one is served."""
    await replies.claim(MINE, NOON)
    await replies.free(MINE)
    assert (await replies.claim(YOURS, NOON)).state == "claimed"


async def test_keys_of_two_callers_are_two_keys(replies):
    """Nobody is given somebody else's answer."""
    await replies.claim(MINE, NOON)
    assert (await replies.claim(replace(YOURS, scope="other"), NOON)).state == "claimed"


async def test_an_answer_is_kept_with_its_receipt(both):
    """Until its time is over; then the key is free."""
    books, replies = both
    await replies.claim(MINE, NOON)
    kept = replace(MINE, payload='{"said": "é"}', until=NOON + timedelta(hours=1))
    await books.close(Closing(receipt("req-1"), kept=kept))
    assert await replies.claim(YOURS, LATER) == Standing("kept", "digest", kept.payload)
    await replies.free(MINE)
    assert (await replies.claim(YOURS, LATER)).state == "kept"
    assert await replies.claim(YOURS, kept.until) == Standing("claimed", "digest")


async def test_a_request_without_an_answer_frees_its_key(both):
    """With its receipt."""
    books, replies = both
    await replies.claim(MINE, NOON)
    await books.close(Closing(receipt("req-1"), kept=MINE))
    assert (await replies.claim(YOURS, NOON)).state == "claimed"


async def test_who_was_taken_for_dead_keeps_nothing(both):
    """The claim of whoever took its place stands."""
    books, replies = both
    await replies.claim(MINE, NOON)
    await replies.claim(replace(YOURS, until=LATER + timedelta(hours=1)), LATER)
    await books.close(Closing(receipt("req-1"), kept=replace(MINE, payload='"late"')))
    assert (await replies.claim(MINE, LATER)).state == "running"


async def test_answers_that_nobody_can_be_given_are_forgotten(database):
    """The others stay."""
    replies = RepliesStore(database)
    await replies.claim(MINE, NOON)
    await replies.claim(replace(MINE, idempotency_key="new", until=LATER + timedelta(1)), NOON)
    await replies.forget(LATER + timedelta(seconds=1))
    assert (await replies.claim(replace(YOURS, idempotency_key="new"), NOON)).state == "running"
    assert (await replies.claim(YOURS, NOON)).state == "claimed"
