"""Both kinds of forges are asked and told in the same way, and nothing is done twice."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from turnout.core.ids import RunId
from turnout.core.service.forges import Forge, ForgeKind, Origin
from turnout.core.service.orders import Order, OrderedRun
from turnout.core.tasks import Task
from turnout.errors import ForgeError
from turnout.runs.forges.desk import Forges, open_forges
from turnout.runs.forges.hooks.triggers import Person
from turnout.runs.forges.ports import Draft, ForgeClient, Told
from turnout.testing.forges import Account, ScriptedForge, running_forge

TOKEN = "tok-4f1e9d"
RUN_ID = RunId("run-0123456789ab")
ANN, EVE = Person("ann", 7), Person("eve", 9)
AT = datetime(2026, 1, 1, tzinfo=UTC)
DRAFT = Draft("shop", RUN_ID, "turnout/run-0123456789ab", "Fix totals", "Because.", issue=12)
RUN = OrderedRun(
    run_id=RUN_ID,
    number=1,
    order=Order(
        Task("Fix it.", "shop"), "web", "ci", origin=Origin("hub", "acme/shop", "issue", 12, "ann")
    ),
    state="ended",
    epoch=1,
    ordered_at=AT,
    outcome="answered",
)


@dataclass
class Room:
    """A forge, and our desk before it."""

    forge: ScriptedForge
    desk: Forges

    @property
    def client(self) -> ForgeClient:
        """Return the way to the forge."""
        return self.desk.by_name["hub"].client


@pytest.fixture(params=["github", "gitlab"])
async def room(request) -> AsyncIterator[Room]:
    """Open a forge of each kind."""
    kind: ForgeKind = request.param
    async with running_forge(ScriptedForge(kind, TOKEN)) as forge:
        ours = Forge("hub", kind, forge.api, "S", "T", "ci", {"acme/shop": "shop"})
        async with open_forges({"hub": ours}, {"T": TOKEN}.get) as desk:
            yield Room(forge, desk)


@pytest.mark.parametrize("standing", ["none", "write", "maintain", "admin"])
async def test_a_forge_says_what_somebody_may_do(room: Room, standing) -> None:
    """Of accounts that it knows."""
    room.forge.people["ann"] = Account(7, standing)
    assert await room.client.standing("acme/shop", ANN) == standing


async def test_a_stranger_may_do_nothing(room: Room) -> None:
    """Nor whoever bears a name that leads elsewhere."""
    assert await room.client.standing("acme/shop", Person("mallory", 1)) == "none"
    assert await room.client.standing("acme/shop", EVE) == "none"
    for name in ("..", "a/b", "ann?x=1", "ann%2f", ""):
        assert await room.client.standing("acme/shop", Person(name, 1)) == "none"


async def test_a_draft_is_opened_once(room: Room) -> None:
    """Asked again, after a crash say, it is the same one."""
    first = await room.desk.open_draft(DRAFT)
    assert await room.desk.open_draft(DRAFT) == first
    (made,) = room.forge.requests
    asked = made["asked"]
    if room.forge.kind == "github":
        assert (asked["draft"], asked["title"]) == (True, "Fix totals")
        assert (asked["head"], asked["base"]) == (DRAFT.branch, "main")
    else:
        assert asked["title"] == "Draft: Fix totals"
        assert (asked["source_branch"], asked["target_branch"]) == (DRAFT.branch, "main")
    body = asked["body" if room.forge.kind == "github" else "description"]
    assert "for #12" in body
    assert "    Because." in body


async def test_a_draft_is_for_the_branch_that_was_asked_for(room: Room) -> None:
    """Where one was."""
    await room.desk.open_draft(replace(DRAFT, base="release-1"))
    asked = room.forge.requests[0]["asked"]
    assert asked["base" if room.forge.kind == "github" else "target_branch"] == "release-1"


async def test_whoever_asked_is_told_once(room: Room) -> None:
    """However often the end of a run is told of."""
    for _ in range(3):
        await room.desk.tell(RUN, Told("All is well.", "https://forge.example.org/acme/shop/1"))
    (said,) = room.forge.comments["issue", 12]
    assert "All is well." in said
    assert "https://forge.example.org/acme/shop/1" in said
    again = replace(RUN, run_id=RunId("run-ba9876543210"))
    await room.desk.tell(again, Told("Once more."))
    assert len(room.forge.comments["issue", 12]) == 2


async def test_our_comment_is_found_among_many(room: Room) -> None:
    """A thread is read on as far as pages go."""
    said = room.forge.comments["issue", 12]
    said += [f"talk {n}" for n in range(150)]
    await room.desk.tell(RUN, Told("All is well."))
    said += [f"more {n}" for n in range(150)]
    await room.desk.tell(RUN, Told("All is well."))
    assert sum("All is well." in text for text in said) == 1


async def test_a_run_that_came_in_another_way_is_told_to_nobody(room: Room) -> None:
    """No forge is asked anything."""
    await room.desk.tell(replace(RUN, order=replace(RUN.order, origin=None)), Told("x"))
    assert room.forge.seen == []


async def test_a_request_shows_its_change_and_where_it_began(room: Room) -> None:
    """Which is not where the branch that it is for is by now."""
    change = await room.client.change("acme/shop", 3)
    assert (change.base, change.diff) == (room.forge.base, room.forge.diff)


async def test_whoever_asked_sees_that_it_was_seen(room: Room) -> None:
    """On the comment, or on what was given the label."""
    await room.client.nod("acme/shop", "issue", 12, 501)
    await room.client.nod("acme/shop", "pull", 3, None)
    github = ["comments/501", "3"]
    gitlab = ["issues/12/notes/501", "merge_requests/3"]
    assert room.forge.nods == (github if room.forge.kind == "github" else gitlab)


@pytest.mark.parametrize(
    ("status", "passing"), [(500, True), (429, True), (401, True), (404, False), (422, False)]
)
async def test_a_refusal_says_whether_it_may_pass(room: Room, status: int, passing: bool) -> None:
    """In the forge's words, and without our token."""
    room.forge.failing = [status]
    with pytest.raises(ForgeError, match=f"failed with {status}: not now") as caught:
        await room.desk.open_draft(DRAFT)
    assert caught.value.passing is passing
    assert TOKEN not in str(caught.value)


async def test_a_redirect_is_not_followed(room: Room) -> None:
    """The token goes to the configured address and nowhere else."""
    room.forge.failing = [302]
    with pytest.raises(ForgeError, match="302"):
        await room.desk.open_draft(DRAFT)
    assert len(room.forge.seen) == 1


@pytest.mark.parametrize("sent", [None, "", "wrong", "a\r\nhost: x", "é"])
async def test_a_token_that_does_not_do_is_a_refusal_that_may_pass(room: Room, sent) -> None:
    """It is read anew each time, so whoever mends it need not start again."""
    ours, variables = room.desk.by_name["hub"].forge, {"T": sent}
    async with open_forges({"hub": ours}, variables.get) as desk:
        with pytest.raises(ForgeError) as caught:
            await desk.open_draft(DRAFT)
        assert caught.value.passing
        variables["T"] = TOKEN
        assert await desk.open_draft(DRAFT)


async def test_a_forge_that_is_gone_may_come_back(room: Room) -> None:
    """The error names no more than the forge."""
    gone = replace(room.desk.by_name["hub"].forge, api="http://127.0.0.1:1")
    async with open_forges({"hub": gone}, {"T": TOKEN}.get) as desk:
        with pytest.raises(ForgeError, match="The forge hub cannot be reached") as caught:
            await desk.tell(RUN, Told("x"))
    assert caught.value.passing


async def test_what_is_no_longer_set_up_is_not_tried_again(room: Room) -> None:
    """Neither a repository nor a forge."""
    assert room.desk.draws("shop")
    assert not room.desk.draws("other")
    with pytest.raises(ForgeError) as other:
        await room.desk.open_draft(replace(DRAFT, repository="other"))
    origin = Origin("gone", "acme/shop", "issue", 12, "ann")
    with pytest.raises(ForgeError) as gone:
        await room.desk.tell(replace(RUN, order=replace(RUN.order, origin=origin)), Told("x"))
    assert not other.value.passing
    assert not gone.value.passing


async def test_comments_of_before_the_run_do_not_count(room: Room) -> None:
    """A forge that can leave them out is asked to."""
    await room.desk.tell(replace(RUN, ordered_at=AT + timedelta(days=1)), Told("x"))
    assert len(room.forge.comments["issue", 12]) == 1
