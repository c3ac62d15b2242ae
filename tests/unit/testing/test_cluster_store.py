"""The objects of the cluster on this machine."""

import asyncio

from turnout.testing.kubernetes.store import Store


async def test_a_patch_merges_and_removes() -> None:
    """As a merge patch does: maps are joined, null removes, all else replaces."""
    store = Store()
    await store.add("/things", {"metadata": {"name": "a", "labels": {"x": "1", "y": "2"}}})
    await store.merge("/things", "a", {"metadata": {"labels": {"x": None, "z": "3"}}})
    thing = store.get("/things", "a")
    assert thing is not None
    assert thing["metadata"]["labels"] == {"y": "2", "z": "3"}


async def test_a_list_is_chosen_by_labels() -> None:
    """All of them must fit."""
    store = Store()
    for name in ("a", "b"):
        await store.add("/things", {"metadata": {"name": name, "labels": {"name": name}}})
    assert [one["metadata"]["name"] for one in store.list("/things", {"name": "b"})] == ["b"]
    assert len(store.list("/things", {})) == 2


async def test_a_watch_tells_what_came_after() -> None:
    """Neither older changes nor those of other lists; one that is still to come is awaited."""
    store = Store()
    first = await store.add("/things", {"metadata": {"name": "a"}})
    await store.add("/others", {"metadata": {"name": "b"}})
    changes = store.watch("/things", int(first["metadata"]["resourceVersion"]))
    awaited = asyncio.ensure_future(anext(changes))
    await store.remove("/things", "a")
    change = await asyncio.wait_for(awaited, 5)
    assert (change.kind, change.thing["metadata"]["name"]) == ("DELETED", "a")
    await changes.aclose()
