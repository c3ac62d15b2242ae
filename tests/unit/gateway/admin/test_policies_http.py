"""Policies over HTTP: read, compared, checked, applied, rolled back."""

import json
import time

import pytest
from tests.unit.gateway.admin.admin_app import admin_app

from turnout.core.policies import Policy, ToolRule

TEAM = {"tools": {"mode": "dry_run", "allow": ["read_file"]}, "session": {"max_spend_usd": "2.50"}}


@pytest.fixture
def admin():
    """Return an application whose file has one policy."""
    return admin_app(Policy(name="filed", tools=ToolRule("enforce", ("a",))))


def put(admin, table, **more):
    """Apply the policy `team`."""
    return admin.call("PUT", "/policies/team", json={"policy": table, **more})


def error(response):
    """Return status, code and parameter of a refusal."""
    said = response.json()["error"]
    assert set(said) == {"message", "type", "param", "code"}
    return response.status_code, said["code"], said["param"]


def test_a_policy_is_applied_and_read_back(admin) -> None:
    """In the words of a file, with the key as its author."""
    applied = put(admin, TEAM, note="first").json()
    assert applied["changed"] is True
    read = admin.call("GET", "/policies/team", key="dev").json()
    assert read == applied["revision"]
    assert (read["revision"], read["author"], read["note"]) == (1, "boss", "first")
    assert read["policy"] == {"name": "team", **TEAM}


def test_revisions_are_listed_compared_and_brought_back(admin) -> None:
    """History only grows."""
    put(admin, TEAM)
    put(admin, {**TEAM, "objective": "cost"})
    assert put(admin, {**TEAM, "objective": "cost"}).json()["changed"] is False
    diff = admin.call("GET", "/policies/team/diff").json()
    change = {"field": "objective", "before": "balanced", "after": "cost"}
    assert diff["changes"] == [{**change, "added": [], "removed": []}]
    assert (diff["before"], diff["after"]) == (1, 2)
    back = admin.call("POST", "/policies/team/rollback", json={"revision": 1}).json()
    assert (back["revision"]["revision"], back["revision"]["restores"]) == (3, 1)
    history = admin.call("GET", "/policies/team/history").json()["revisions"]
    assert [revision["revision"] for revision in history] == [3, 2, 1]
    older = admin.call("GET", "/policies/team?revision=2").json()
    assert older["policy"]["objective"] == "cost"
    between = admin.call("GET", "/policies/team/diff?from=1&to=3").json()
    assert between["changes"] == []


def test_a_change_that_somebody_else_made_first_is_a_conflict(admin) -> None:
    """409, and nothing is written."""
    put(admin, TEAM, expected_revision=0)
    refused = put(admin, {"objective": "cost"}, expected_revision=0)
    assert error(refused) == (409, "revision_conflict", None)
    body = {"revision": 1, "expected_revision": 5}
    assert error(admin.call("POST", "/policies/team/rollback", json=body))[0] == 409
    assert admin.call("GET", "/policies/team").json()["revision"] == 1


def test_several_policies_are_applied_together(admin) -> None:
    """As tables or as the text of a file; all of them or none."""
    body = {"policies": {"a": {}, "b": {"objective": "cost"}}, "note": "both"}
    outcomes = admin.call("POST", "/policies/apply", json=body).json()["outcomes"]
    assert [(o["revision"]["name"], o["changed"]) for o in outcomes] == [("a", True), ("b", True)]
    toml = '[policies.a]\nobjective = "latency"\n[policies.c]\npool = ["huge"]'
    refused = admin.call("POST", "/policies/apply", json={"toml": toml})
    assert error(refused) == (400, "invalid_request", None)
    assert "huge" in refused.text
    assert admin.call("GET", "/policies/a").json()["revision"] == 1
    toml = '[policies.a]\nobjective = "latency"'
    admin.call("POST", "/policies/apply", json={"toml": toml})
    assert admin.call("GET", "/policies/a").json()["policy"]["objective"] == "latency"


@pytest.mark.parametrize(
    "toml",
    [
        "a." * 60_000 + "b = 1",
        "x = " + "[" * 100_000,
        "x = " + "9" * 100_000,
        "x = 0x" + "f" * 100_000,
        "[policy]\n[policies.default]\n" + "".join(f"[policies.p{n}]\n" for n in range(8_000)),
    ],
    ids=range(5),
)
def test_a_text_that_would_take_long_to_read_is_refused(admin, toml: str) -> None:
    """With 400, and before it holds up whoever else is served."""
    began = time.process_time()
    refused = admin.call("POST", "/policies/apply", json={"toml": toml})
    assert error(refused)[:2] == (400, "invalid_request")
    assert time.process_time() - began < 5


@pytest.mark.parametrize("deep", [150, 300, 900, 100_000])
def test_json_that_nests_without_an_end_is_refused(admin, deep: int) -> None:
    """In a policy or instead of one; never a fault of ours."""
    nested = "[" * deep + "]" * deep
    for path in ("/policies/apply", "/policies/team/check", "/policies/team"):
        method = "PUT" if path.endswith("team") else "POST"
        for body in (nested, f'{{"policy": {{"pool": {nested}}}}}', f'{{"policies": {nested}}}'):
            sent = admin.call(
                method, path, content=body, headers={"content-type": "application/json"}
            )
            assert 400 <= sent.status_code < 500, (path, sent.text[:200])


def test_a_draft_is_checked_and_not_applied(admin) -> None:
    """By whoever has the policy."""
    put(admin, TEAM)
    draft = {"policy": {"tools": {"mode": "enforce"}}}
    checked = admin.call("POST", "/policies/team/check", key="dev", json=draft).json()
    assert [finding["field"] for finding in checked["findings"]] == ["tools.allow"]
    assert {change["field"] for change in checked["diff"]["changes"]} >= {"tools.mode"}
    assert admin.call("GET", "/policies/team").json()["revision"] == 1


def test_a_key_sees_its_own_policies_and_changes_none(admin) -> None:
    """Another key's policy is not even said to exist."""
    put(admin, TEAM)
    put_other = admin.call("PUT", "/policies/other", json={"policy": {}})
    assert put_other.status_code == 200
    listed = admin.call("GET", "/policies", key="dev").json()["policies"]
    assert [policy["name"] for policy in listed] == ["team"]
    everything = admin.call("GET", "/policies").json()["policies"]
    assert {(p["name"], p["revision"]) for p in everything} == {
        ("filed", 0),
        ("other", 1),
        ("team", 1),
    }
    for path in ("", "/history", "/diff", "/report"):
        assert error(admin.call("GET", f"/policies/other{path}", key="dev"))[0] == 404
        assert error(admin.call("GET", f"/policies/gone{path}", key="dev"))[0] == 404
    for method, path, body in (
        ("PUT", "/policies/team", {"policy": {}}),
        ("POST", "/policies/apply", {"policies": {"team": {}}}),
        ("POST", "/policies/team/rollback", {"revision": 1}),
    ):
        refused = admin.call(method, path, key="dev", json=body)
        assert error(refused) == (403, "admin_required", None)
    assert admin.call("GET", "/policies/team").json()["revision"] == 1


def test_a_key_without_a_policy_sees_the_default(admin) -> None:
    """The only policy of the file is that, until one of that name is applied."""
    listed = admin.call("GET", "/policies", key="plain").json()["policies"]
    assert [(policy["name"], policy["revision"]) for policy in listed] == [("filed", 0)]
    assert listed[0]["policy"]["tools"] == {"mode": "enforce", "allow": ["a"]}
    assert admin.call("GET", "/policies/filed", key="plain").json() == listed[0]
    admin.call("PUT", "/policies/default", json={"policy": {}})
    listed = admin.call("GET", "/policies", key="plain").json()["policies"]
    assert [policy["name"] for policy in listed] == ["default"]


def test_no_answer_holds_a_key(admin) -> None:
    """Neither one that is sent where it should be, nor one that is not."""
    secret = "tk-0123456789abcdefghijkl"
    answers = [
        admin.call("GET", f"/policies?key={secret}", key=secret),
        admin.call("GET", f"/policies/team?api_key={secret}"),
        admin.client.get("/policies", headers={"x-api-key": secret}),
        admin.call("PUT", "/policies/team", json={"policy": {}, "note": 1}, key=secret),
    ]
    assert [answer.status_code for answer in answers] == [401, 404, 401, 401]
    assert not [answer for answer in answers if secret in answer.text + str(answer.headers)]


def test_without_a_key_nothing_is_read(admin) -> None:
    """Not the route, not the body: 401 whatever comes; but how to call is told to everyone."""
    for path in ("/policies", "/policies/team", "/nowhere"):
        assert error(admin.call("GET", path, key="wrong")) == (401, "invalid_api_key", None)
    assert error(admin.call("PUT", "/policies/team", key="", content=b"{"))[0] == 401
    assert admin.client.get("/openapi.json").status_code == 200


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b"{", None),
        (b"[]", None),
        (b'{"policy": {}, "polcy": 1}', "polcy"),
        (b'{"policy": {}, "expected_revision": -1}', "expected_revision"),
        (b'{"policy": {}, "expected_revision": 1e99}', "expected_revision"),
        (b'{"policy": {"objective": "speed"}}', None),
        (b'{"policy": {"name": "other"}}', None),
        (b'{"policy": ' + b'{"a":' * 3_000 + b"1" + b"}" * 3_001, None),
        (b'{"policy": {"min_quality": NaN}}', None),
        (b'{"policy": {"pool": ["\\ud800"]}}', None),
    ],
)
def test_a_wrong_body_is_refused_in_words(admin, body: bytes, param: str | None) -> None:
    """400, with the field that is wrong."""
    refused = admin.call(
        "PUT", "/policies/team", content=body, headers={"content-type": "application/json"}
    )
    assert error(refused) == (400, "invalid_request", param)
    said = refused.json()["error"]["message"]
    assert "Input should" not in said
    assert "JSON decode" not in said


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/policies/team?revision=0", 400),
        ("/policies/team?revision=99999999999999999999", 400),
        ("/policies/team?revision=2", 404),
        ("/policies/gone", 404),
        ("/policies/filed/history", 404),
        ("/policies/team/diff?from=7", 404),
        ("/policies/" + "a" * 65, 400),
        ("/nowhere", 404),
        ("/chat/completions", 405),
    ],
)
def test_what_is_not_there_is_said(admin, path: str, status: int) -> None:
    """In the one shape that errors have here."""
    put(admin, TEAM)
    assert error(admin.call("GET", path))[0] == status


def test_text_that_no_utf8_can_hold_comes_back(admin) -> None:
    """A lone surrogate in a note is no reason to fail."""
    body = json.dumps({"policy": {}, "note": "\ud800 and \0"}).encode()
    headers = {"content-type": "application/json"}
    sent = admin.call("PUT", "/policies/team", content=body, headers=headers)
    assert sent.status_code in {200, 400}
    assert admin.call("GET", "/policies").status_code == 200


def test_a_body_that_is_too_large_is_refused(admin) -> None:
    """413, before it is parsed."""
    huge = b'{"policy": {}, "note": "' + b"a" * (17 * 2**20)
    assert error(admin.call("PUT", "/policies/team", content=huge))[0] == 413


def test_a_report_is_of_the_policys_list(admin) -> None:
    """With what to do about it."""
    put(admin, TEAM)
    report = admin.call("GET", "/policies/team/report?days=9", key="dev").json()
    assert (report["mode"], report["since"], report["may_enforce"]) == (
        "dry_run",
        "2025-12-23",
        False,
    )
    assert "quiet days" in report["suggestion"]
