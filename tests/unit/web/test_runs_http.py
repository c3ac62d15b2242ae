"""`/runs` over HTTP: ordered once, seen by their project alone, decided on by those who may."""

import pytest
from tests.unit.web.rooms import ASKED, DIFF, END, Service, memory_service

from turnout.testing.memory.orders import MemoryOrders
from turnout.testing.stores import MemoryRecordStore


@pytest.fixture
def service() -> Service:
    """Return the routes on stores in memory."""
    return memory_service()


def refusal(answer) -> tuple[int, str]:
    """Return the status and the code of a refusal, all of which have one shape."""
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return answer.status_code, error["code"]


def test_an_order_is_answered_with_the_run(service: Service) -> None:
    """Where to find it, what was understood, and that it waits for a worker."""
    body = {
        "task": "Fix it.",
        "repo": "https://git.example.org/a/b",
        "base": "main",
        "surface": "files",
        "policy": "team",
        "priority": 5,
        "labels": ["ci", "ci", "issue:7"],
        "limits": {"max_steps": 3, "max_seconds": 1.5, "max_spend_micros": 7},
    }
    answer = service.call("POST", "/runs", json=body)
    run = answer.json()
    assert (answer.status_code, run["state"], run["segments"]) == (201, "queued", 0)
    assert answer.headers["location"] == f"/v1/runs/{run['id']}"
    assert {name: run[name] for name in body if name != "labels"} == {
        name: value for name, value in body.items() if name != "labels"
    }
    assert (run["labels"], run["project"], run["key"]) == (["ci", "issue:7"], "red", "red-member")
    assert service.engine.told == [("enqueue", run["id"])]


@pytest.mark.parametrize(
    ("wrong", "param"),
    [
        ({"task": ""}, "task"),
        ({"task": "  "}, None),
        ({"task": None}, "task"),
        ({"repo": "/etc"}, "repo"),
        ({"repo": "file:///etc"}, "repo"),
        ({"repo": "../shop"}, "repo"),
        ({"repo": "https://elsewhere.example.net/a"}, "repo"),
        ({"base": "-x"}, "base"),
        ({"base": "a..b"}, "base"),
        ({"base": "a b"}, "base"),
        ({"base": "stash@{0}"}, "base"),
        ({"base": "refs/stash"}, "base"),
        ({"base": "nowhere"}, "base"),
        ({"surface": "review"}, "surface"),
        ({"priority": 101}, "priority"),
        ({"priority": True}, "priority"),
        ({"priority": "5"}, "priority"),
        ({"priority": 1.0}, "priority"),
        ({"limits": {"max_seconds": "9"}}, "limits.max_seconds"),
        ({"test_command": "make\0test"}, "test_command"),
        ({"requirements": ["a\0b"]}, "requirements[0]"),
        ({"labels": ["a b"]}, "labels[0]"),
        ({"labels": ["a"] * 21}, "labels"),
        ({"limits": {"max_steps": 0}}, "limits.max_steps"),
        ({"limits": {"max_money": 1}}, "limits.max_money"),
        ({"image": "x"}, "image"),
    ],
)
def test_an_order_that_cannot_be_is_refused(service: Service, wrong, param) -> None:
    """400, naming the field, and nothing is kept."""
    answer = service.call("POST", "/runs", json={"task": "Fix it.", "repo": "shop", **wrong})
    assert refusal(answer) == (400, "invalid_request")
    assert answer.json()["error"]["param"] == param
    assert service.call("GET", "/runs").json() == {"runs": [], "next_cursor": None}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"task":"Fix it.","repo":"shop","repo":"docs"}', "'repo' twice"),
        (b'{"task":"Fix it.","repo":"shop","limits":{"max_steps":1,"max_steps":9}}', "twice"),
        ('{"task":"Fix it.","repo":"shop"}'.encode("utf-16"), "UTF-8"),
        ('{"task":"Fix it.","repo":"shop"}'.encode("utf-16-le"), "UTF-8"),
        (b'{"task":"Fix \xff","repo":"shop"}', "UTF-8"),
    ],
)
def test_a_body_that_could_be_read_otherwise_is_refused(service: Service, body, said) -> None:
    """Nobody guesses which of two values was meant, or in which letters."""
    headers = {"content-type": "application/json"}
    answer = service.call("POST", "/runs", content=body, headers=headers)
    assert refusal(answer) == (400, "invalid_request")
    assert said in answer.json()["error"]["message"]
    body = b'{"task":"Fix it.","repo":"shop"}'
    for kind, status in (("Latin1", 400), ('"UTF-8"', 201)):
        headers = {"content-type": f"application/json; charset={kind}"}
        answer = service.call("POST", "/runs", content=body, headers=headers)
        assert answer.status_code == status


def test_a_policy_that_the_key_may_not_choose_is_refused_at_once(service: Service) -> None:
    """Not when a worker comes to it."""
    body = {"task": "Fix it.", "repo": "shop", "policy": "other"}
    assert refusal(service.call("POST", "/runs", json=body)) == (403, "policy_not_granted")


def test_a_cap_that_no_model_may_serve_under_is_refused_at_once(service: Service) -> None:
    """Before a workspace is made for it."""
    body = {"task": "Fix it.", "repo": "shop", "limits": {"max_spend_micros": 13}}
    assert refusal(service.call("POST", "/runs", json=body)) == (403, "price_unknown")
    assert service.call("GET", "/runs").json()["runs"] == []


def test_the_same_key_and_order_are_one_run(service: Service) -> None:
    """Sent again: 200 and the same run; with other content: 409; in another project: another."""
    body, once = {"task": "Fix it.", "repo": "shop"}, {"idempotency-key": "k-1"}
    first = service.call("POST", "/runs", json=body, headers=once)
    again = service.call("POST", "/runs", json={**body, "base": "HEAD"}, headers=once)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    other = service.call("POST", "/runs", json={**body, "priority": 1}, headers=once)
    assert refusal(other) == (409, "idempotency_conflict")
    blue = service.call("POST", "/runs", "blue-approver", json=body, headers=once)
    assert blue.status_code == 201
    assert len(service.engine.told) == 2


@pytest.mark.parametrize("key", ["", " ", "a b", "x" * 256, "é"])
def test_an_idempotency_key_is_printable(service: Service, key: str) -> None:
    """400 rather than a promise that cannot be kept."""
    body, headers = {"task": "Fix it.", "repo": "shop"}, {"idempotency-key": key.encode()}
    assert refusal(service.call("POST", "/runs", json=body, headers=headers))[0] == 400


def test_runs_are_listed_in_pages_newest_first(service: Service) -> None:
    """Each once, by cursor, and by what they have in common."""
    made = [service.ordered(labels=[f"n:{n % 2}"]) for n in range(5)]
    seen, cursor = [], None
    while cursor is not None or not seen:
        asked = {"limit": 2, **({} if cursor is None else {"cursor": cursor})}
        page = service.call("GET", "/runs", "red-viewer", params=asked).json()
        seen += [run["id"] for run in page["runs"]]
        cursor = page["next_cursor"]
    assert seen == list(reversed(made))
    odd = service.call("GET", "/runs", params={"label": "n:1", "state": "queued"}).json()
    assert [run["id"] for run in odd["runs"]] == [made[3], made[1]]
    assert service.call("GET", "/runs", params={"state": ["ended"]}).json()["runs"] == []
    assert service.call("GET", "/runs", params={"repo": "other"}).json()["runs"] == []
    assert refusal(service.call("GET", "/runs", params={"state": "odd"}))[0] == 400
    assert refusal(service.call("GET", "/runs", params={"cursor": 0}))[0] == 400


async def test_a_run_shows_what_it_came_to(service: Service) -> None:
    """Null until it is begun; its diff byte for byte once it has ended."""
    run_id = service.ordered()
    assert service.call("GET", f"/runs/{run_id}").json()["result"] is None
    assert refusal(service.call("GET", f"/runs/{run_id}/diff")) == (409, "no_diff_yet")
    await service.begun(run_id, *END)
    shown = service.call("GET", f"/runs/{run_id}", "red-viewer").json()
    assert (shown["state"], shown["outcome"]) == ("ended", "answered")
    assert shown["result"]["reason"] == "It is done."
    assert not {"diff", "tool_calls"} & set(shown["result"])
    diff = service.call("GET", f"/runs/{run_id}/diff", "red-viewer")
    assert (diff.content, diff.headers["content-type"]) == (DIFF, "text/x-diff")


async def test_a_record_is_read_in_parts(service: Service) -> None:
    """Each entry once, in order, and the place to go on from."""
    run_id = service.ordered()
    await service.begun(run_id, *END)
    seen, after = [], 0
    while after is not None:
        asked = {"after": after, "limit": 3}
        part = service.call("GET", f"/runs/{run_id}/record", "red-viewer", params=asked).json()
        seen += part["entries"]
        after = part["next_after"]
    assert [entry["seq"] for entry in seen] == [1, 2, 3, 4]
    assert [entry["event"]["type"] for entry in seen][::3] == ["run_started", "run_ended"]
    assert seen[0]["event"]["task"]["repository"] == "shop"


@pytest.mark.parametrize(("verb", "allowed"), [("approve", True), ("reject", False)])
async def test_a_call_that_waits_is_decided_on_once(service: Service, verb, allowed) -> None:
    """By whoever may, about the call that was looked at; the run is queued again."""
    run_id = service.ordered()
    assert refusal(service.call("POST", f"/runs/{run_id}/{verb}", "red-approver")) == (
        409,
        "not_waiting",
    )
    await service.waiting(run_id)
    waits = service.call("GET", f"/runs/{run_id}").json()["waits_for"]
    assert (waits["call_id"], waits["tool"], waits["rule"]) == ("call-1", *(ASKED.rule,) * 2)
    other = {"call_id": "call-2"}
    late = service.call("POST", f"/runs/{run_id}/{verb}", "red-approver", json=other)
    assert refusal(late) == (409, "not_waiting")
    body = {"call_id": "call-1", "note": "Look first."}
    done = service.call("POST", f"/runs/{run_id}/{verb}", "red-approver", json=body)
    assert (done.status_code, done.json()["state"]) == (200, "queued")
    again = service.call("POST", f"/runs/{run_id}/{verb}", "red-approver", json=body)
    assert refusal(again) == (409, "not_waiting")
    given = (await service.records.entries(run_id))[-1].event
    assert (given.allowed, given.by, given.note) == (allowed, "red-approver", "Look first.")


async def test_a_run_is_cancelled_once_and_can_be_done_again(service: Service) -> None:
    """One that nobody works on ends at once; a retry is a run of its own."""
    run_id = service.ordered(labels=["a"])
    early = service.call("POST", f"/runs/{run_id}/retry")
    assert refusal(early) == (409, "run_not_ended")
    for _ in range(2):
        ended = service.call("POST", f"/runs/{run_id}/cancel").json()
        assert (ended["state"], ended["outcome"]) == ("ended", "cancelled")
    again = service.call("POST", f"/runs/{run_id}/retry", "red-approver")
    run = again.json()
    assert again.status_code == 201
    assert (run["retry_of"], run["key"], run["labels"]) == (run_id, "red-approver", ["a"])
    assert (run["state"], run["id"] != run_id) == ("queued", True)


async def test_a_run_under_way_is_told_to_stop(service: Service) -> None:
    """It ends when its worker has heard of it."""
    run_id = service.ordered()
    await service.begun(run_id)
    told = service.call("POST", f"/runs/{run_id}/cancel").json()
    assert (told["state"], told["cancel_asked"]) == ("running", True)
    assert service.engine.told[-1] == ("cancel", run_id)


READS = ("", "/diff", "/record", "/events")
ACTS = ("/cancel", "/retry", "/approve", "/reject")


@pytest.mark.parametrize("key", ["red-models", "red-viewer", "red-member", "red-approver"])
async def test_a_key_does_what_its_role_says(service: Service, key: str) -> None:
    """Models: nothing; viewer: reads; member: orders and stops too; approver: decides too."""
    run_id = service.ordered()
    await service.begun(run_id, *END)
    may = {
        "red-models": (),
        "red-viewer": READS,
        "red-member": (*READS, "/cancel", "/retry"),
        "red-approver": (*READS, *ACTS),
    }[key]
    refused = {
        path
        for path in (*READS, *ACTS)
        if service.call("POST" if path in ACTS else "GET", f"/runs/{run_id}{path}", key).status_code
        == 403
    }
    assert refused == {*READS, *ACTS} - {*may}
    listed = service.call("GET", "/runs", key).status_code
    order = service.call("POST", "/runs", key, json={"task": "t", "repo": "shop"}).status_code
    assert (listed == 200, order == 201) == (bool(may), "/cancel" in may)


async def test_another_project_sees_nothing_of_a_run(service: Service) -> None:
    """Every route answers as for a run that never was, and does nothing."""
    run_id, never = service.ordered(), "run-0123456789ab"
    await service.waiting(run_id)
    before = len(service.engine.told)
    for path in (*READS, *ACTS):
        method = "POST" if path in ACTS else "GET"
        answers = [
            service.call(method, f"/runs/{asked}{path}", "blue-approver")
            for asked in (run_id, never)
        ]
        assert {answer.status_code for answer in answers} == {404}
        said = [a.text.replace(run_id, "X").replace(never, "X") for a in answers]
        assert said[0] == said[1], path
    assert service.call("GET", "/runs", "blue-approver").json()["runs"] == []
    assert (
        service.call("GET", "/runs", "blue-approver", params={"project": "red"}).status_code == 403
    )
    assert len(service.engine.told) == before
    assert service.call("GET", f"/runs/{run_id}").json()["state"] == "waiting"


async def test_an_admin_names_the_project(service: Service) -> None:
    """And sees its own where none is named."""
    run_id = service.ordered()
    assert service.call("GET", f"/runs/{run_id}", "boss").status_code == 404
    assert service.call("GET", f"/runs/{run_id}?project=red", "boss").status_code == 200
    (listed,) = service.call("GET", "/runs?project=red", "boss").json()["runs"]
    assert listed["id"] == run_id


@pytest.mark.parametrize("path", ["/runs/x", "/runs/run-XYZ", "/runs/..%2f..%2fetc"])
def test_what_is_no_id_is_refused(service: Service, path: str) -> None:
    """Before anything is looked up."""
    assert service.call("GET", path).status_code in {400, 404}


@pytest.mark.parametrize("path", ["/runs", "/runs/run-0123456789ab", "/runs/x/events"])
def test_nobody_gets_in_without_a_key(service: Service, path: str) -> None:
    """401, whether or not there is something."""
    assert refusal(service.call("GET", path, "wrong")) == (401, "invalid_api_key")


def test_an_order_beyond_the_room_of_its_project_is_to_come_again_later():
    """With the time after which it may; nothing is on record of it."""
    records = MemoryRecordStore()
    service = Service(MemoryOrders(records, most_queued=1), records)
    service.ordered()
    answer = service.call("POST", "/runs", json={"task": "Fix it.", "repo": "shop"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "too_many_queued")
    assert answer.headers["retry-after"] == "30"
    assert len(service.call("GET", "/runs").json()["runs"]) == 1
