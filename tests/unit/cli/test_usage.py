"""`turnout usage`, `tools`, `events` and `webhooks`, on a store that requests have filled."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import insert
from tests.samples import receipt

from turnout.cli.main import run
from turnout.cli.usage.table import usage_text
from turnout.core.govern.happenings import policy_changed
from turnout.core.govern.usage import (
    MachineFigures,
    UsageFigures,
    UsageQuery,
    UsageReport,
    UsageRow,
)
from turnout.core.money import Micros
from turnout.core.receipts import encode_receipt
from turnout.gateway.notices.notices import Notices
from turnout.store.database import open_database
from turnout.store.happenings import HappeningsStore
from turnout.store.notices import NoticesStore
from turnout.store.receipts import receipt_row
from turnout.store.schema import receipts
from turnout.testing.clock import FrozenClock

NOW = datetime.now(UTC)
EVIL = "shell\x1b[2J\u202e"


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """Make a state folder with four requests in it, and leave the current one for an empty one."""
    monkeypatch.setenv("TURNOUT_HOME", str(tmp_path / "state"))
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    asyncio.run(fill(tmp_path / "state" / "turnout.db"))
    return tmp_path / "state"


async def fill(path: Path) -> None:
    """Put requests into a store, as a gateway would."""
    made = [
        replace(receipt("req-1", session="run-1"), at=NOW, cost_micros=1_500_000),
        replace(receipt("req-2", session="run-1"), at=NOW, cost_micros=None, policy="default"),
        replace(
            receipt("req-3", session="run-2"), at=NOW, tools_declared=(EVIL,), call_kind="plan"
        ),
        replace(receipt("req-4", session="old"), at=NOW - timedelta(days=40), tools_declared=()),
    ]
    async with open_database(path) as database:
        rows = [{**receipt_row(one), "payload": encode_receipt(one)} for one in made]
        await database.write(lambda connection: connection.execute(insert(receipts), rows))
        notices = Notices(NoticesStore(database), FrozenClock(NOW))
        for one in made:
            notices.saw(one)
        await notices.write()
        changed = policy_changed(NOW, "default", 2, author="me", note="fewer tools")
        await HappeningsStore(database).record([changed])


def said(capsys, *argv: str, code: int = 0) -> str:
    """Run a command and return what it printed."""
    assert run(argv) == code
    return capsys.readouterr().out


def test_usage_is_by_session_and_of_the_last_month(home, capsys):
    """The most expensive first; what has no price is said to be missing."""
    head, first, second, total, *notes = said(capsys, "usage").splitlines()
    assert head.split()[:7] == ["session", "key", "requests", "errors", "in", "out", "cached"]
    assert first.split()[:8] == ["run-1", "k", "2", "-", "2.0k", "100", "80%", "$1.50*"]
    assert second.split()[:3] == ["run-2", "k", "1"]
    assert total.split()[:2] == ["total", "3"]
    assert "102 ms" in first
    assert notes[-1] == "* Without 1 request at an unknown price."
    assert notes[1].startswith("Since ")


def test_usage_as_json_is_one_object(home, capsys):
    """With every figure, for programs."""
    report = json.loads(said(capsys, "usage", "--by", "call_kind,key", "--json", "--since", "1w"))
    assert [row["group"] for row in report["rows"]] == [
        {"call_kind": "act", "key": "k"},
        {"call_kind": "plan", "key": "k"},
    ]
    assert report["rows"][0]["cost_micros"] == 1_500_000
    assert report["rows"][0]["unpriced"] == 1
    assert report["total"]["fallbacks"] == 3


def test_usage_can_be_narrowed(home, capsys):
    """To a session, to a time, to nothing at all."""
    assert "run-2" not in said(capsys, "usage", "--session", "run-1")
    before = said(capsys, "usage", "--since", "2000-01-01", "--until", "35d").splitlines()
    assert [line.split()[0] for line in before[1:3]] == ["old", "total"]
    assert said(capsys, "usage", "--key", "k").splitlines()[1].split()[:2] == ["run-1", "2"]
    assert "no such requests" in said(capsys, "usage", "--key", "nobody")
    assert "1 of 2 groups" in said(capsys, "usage", "--limit", "1")


@pytest.mark.parametrize(
    "wrong",
    [
        ("--by", "colour"),
        ("--by", "key,day,task,model"),
        ("--since", "yesterday"),
        ("--since", "1d", "--until", "2d"),
        ("--limit", "0"),
    ],
)
def test_a_question_that_makes_no_sense_is_wrong_usage(home, capsys, wrong):
    """Exit code 2."""
    assert said(capsys, "usage", *wrong, code=2) == ""


def row(name, cost, requests=1):
    """Return a row of a report."""
    return UsageRow((name,), UsageFigures(requests=requests, cost=cost))


def report_of(*rows):
    """Return a report with these rows."""
    total = UsageFigures(requests=sum(one.figures.requests for one in rows))
    return UsageReport(rows, total, len(rows))


def test_a_terminal_gets_bars_and_a_pipe_none():
    """As long as the cost, in eighths of a character."""
    report = report_of(row("a", 800), row("b", 400), row("c", 25), row("d", 0))
    shown = usage_text(UsageQuery(), report, width=150).splitlines()
    assert shown[0].endswith("cost")
    bars = [line.split()[-1] for line in shown[1:4]]
    assert bars == ["█" * 12, "█" * 6, "▍"]
    assert not any("█" in line for line in shown[4:])
    assert "█" not in usage_text(UsageQuery(), report, width=None)


def test_bars_are_of_requests_where_nothing_has_a_cost():
    """A local model is free."""
    report = report_of(row("a", 0, 4), row("b", 0, 1))
    shown = usage_text(UsageQuery(), report, width=150).splitlines()
    assert shown[0].endswith("requests")
    assert [line.split()[-1] for line in shown[1:3]] == ["█" * 12, "█" * 3]


@pytest.mark.parametrize("width", [20, 40, 80, 100, 120, 200])
def test_no_line_is_wider_than_the_terminal(width):
    """What matters less is left out first; requests stay."""
    report = report_of(row("session-" * 9, 10**9), row(None, 3))
    lines = usage_text(UsageQuery(), report, width=max(width, 52)).splitlines()
    assert max(map(len, lines)) <= max(width, 52)
    assert "requests" in lines[0]


def test_days_are_in_their_order():
    """Whatever they cost."""
    report = report_of(row("2026-01-02", 9), row("2026-01-01", 8), row("2026-01-03", 7))
    shown = usage_text(UsageQuery(by=("day",)), report, width=None).splitlines()
    assert [line.split()[0] for line in shown[1:4]] == ["2026-01-01", "2026-01-02", "2026-01-03"]


def test_what_sandboxes_took_is_told_below_the_table():
    """In a unit that suits it and with its price; nothing where no run was worked on."""
    query = UsageQuery(by=("model",))
    machines = MachineFigures(3, 5_400.0, 1_024 * 7_200.0, 1 << 30, Micros(1_250_000))
    report = UsageReport((), UsageFigures(requests=1), 0, machines)
    said = usage_text(query, report, width=None)
    wanted = "Sandboxes of runs: 1.50 CPU hours, 2.00 GiB hours of memory, $1.25."
    assert said.splitlines()[-1] == wanted
    few = MachineFigures(1, 4.21, 1_024 * 90.0, 1 << 30, Micros(265))
    said = usage_text(query, replace(report, machines=few), width=None)
    wanted = "Sandboxes of runs: 4.21 CPU seconds, 1.5 GiB minutes of memory, $0.000265."
    assert said.splitlines()[-1] == wanted
    assert "Sandboxes" not in usage_text(query, replace(report, machines=MachineFigures()), width=9)


def test_tools_are_listed_with_whoever_declared_them(home, capsys):
    """Their names cannot steer the terminal."""
    lines = said(capsys, "tools").splitlines()
    assert lines[0].split()[0] == "tool"
    assert {line.split()[0] for line in lines[1:]} == {"read_file", "shell\\x1b[2J\\u202e"}
    listed = json.loads(said(capsys, "tools", "--json", "--key", "k"))["tools"]
    counts = {one["tool"]: (one["requests"], one["calls"]) for one in listed}
    assert counts == {"read_file": (2, 2), EVIL: (1, 0)}
    assert said(capsys, "tools", "--project", "q") == "No request has declared a tool yet.\n"


def test_events_are_listed_newest_first(home, capsys):
    """Of the kinds that are asked for."""
    lines = said(capsys, "events").splitlines()
    assert lines[0].endswith(
        "policy.changed        Policy default is at revision 2, by me: fewer tools"
    )
    assert sum("tool.first_seen" in line for line in lines) == 2
    asked = ("--kind", "tool.outside_list", "--since", "1d", "--json")
    (event,) = json.loads(said(capsys, "events", *asked))["events"]
    assert (event["subject"], event["key"], event["policy"]) == ("run_command", "k", "default")


def test_a_webhook_is_added_listed_and_removed(home, capsys):
    """The secret is named, and never asked for."""
    url = "https://hooks.example.org/in"
    assert run(["webhooks", "add", url, "--secret-env", "HOOK", "--kind", "policy.changed"]) == 0
    added = capsys.readouterr()
    name = added.out.split()[0]
    assert "HOOK is not set" in added.err
    assert said(capsys, "webhooks", "list").split() == [name, url, "policy.changed"]
    (listed,) = json.loads(said(capsys, "webhooks", "list", "--json"))["webhooks"]
    assert (listed["url"], listed["secret_variable"], listed["waiting"]) == (url, "HOOK", 0)
    said(capsys, "webhooks", "remove", name)
    assert said(capsys, "webhooks", "list").startswith("There are no webhooks.")
    said(capsys, "webhooks", "remove", name, code=1)


def test_a_webhook_to_a_private_address_has_to_be_allowed(home, capsys):
    """Exit code 2 where it is not."""
    add = ("webhooks", "add", "http://10.0.0.1/in", "--secret-env", "HOOK")
    said(capsys, *add, code=2)
    assert json.loads(said(capsys, *add, "--allow-private", "--json"))["allow_private"]
