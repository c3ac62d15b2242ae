"""`turnout runs` over the API, as a person or a script calls it."""

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pytest
from click.testing import CliRunner, Result
from starlette.applications import Starlette
from starlette.routing import Mount
from tests.samples import NOON
from tests.unit.web.rooms import ASKED, DIFF, END, Service, memory_service

from turnout.cli.main import command, run
from turnout.core.events import Entry
from turnout.core.ids import RunId
from turnout.core.service.publications import Publication
from turnout.errors import ConflictError, GatewayError, NotFoundError, UsageError
from turnout.gateway.server import serve
from turnout.web.runs.streams import EventStream, Streams


class Opened(Streams):
    """Does something each time before somebody follows a run."""

    then: Callable[[], object] = staticmethod(lambda: None)

    def of(self, entries: AsyncGenerator[Entry, None], *more: Any) -> EventStream:
        """Do it."""
        self.then()
        return super().of(entries, *more)


class Served:
    """A service in a thread of its own, and the commands that ask it."""

    def __init__(self) -> None:
        self.streams = Opened()
        self.service: Service = memory_service(self.streams)
        self._up = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    async def _serve(self) -> None:
        self.loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        app = Starlette(routes=[Mount("/v1", app=self.service.app)])
        async with self.service.following, serve(app, host="127.0.0.1") as bound:
            self.url = bound.base_url
            self._up.set()
            await self._end.wait()

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._up.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.call_soon_threadsafe(self._end.set)
        self._thread.join(30)

    def do(self, work: Any) -> Any:
        """Do something where the service is."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(30)

    def turnout(self, *arguments: str, key: str = "red-approver", **options: Any) -> Result:
        """Run a command; errors come out."""
        environment = {"TURNOUT_SERVER": self.url, "TURNOUT_API_KEY": key}
        runner = CliRunner(env={**environment, **options.pop("env", {})})
        return runner.invoke(
            command, ["runs", *arguments], catch_exceptions=False, standalone_mode=False, **options
        )

    def ordered(self, *more: str) -> RunId:
        """Order a run."""
        done = self.turnout("submit", "Fix it.", "--repo", "shop", *more)
        return RunId(done.stdout.strip())


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """Serve for all tests here."""
    with Served() as it:
        yield it


def test_an_order_is_its_id_alone_on_standard_output(served: Served) -> None:
    """With all that was asked for, and once under one key."""
    options = (
        *("--base", "main", "--surface", "files", "--priority", "3", "--label", "a"),
        *("--label", "b", "--max-steps", "4", "--max-spend", "0.50", "--once", "k-1"),
        *("--notify", "https://hooks.example.org/in", "--publish", "draft"),
    )
    run_id = served.ordered(*options)
    run = served.do(served.service.desk.get("red", run_id))
    task, limits = run.order.task, run.order.limits
    assert (task.prompt, task.repository, task.base, task.surface) == (
        *("Fix it.", "shop"),
        *("main", "files"),
    )
    assert (run.order.priority, run.order.labels) == (3, ("a", "b"))
    assert (limits.max_steps, limits.max_spend) == (4, 500_000)
    assert (run.order.notify, run.order.publish) == ("https://hooks.example.org/in", "draft")
    assert served.ordered(*options) == run_id
    with pytest.raises(ConflictError, match="idempotency key"):
        served.ordered("--once", "k-1")


def test_a_task_may_come_from_standard_input(served: Served) -> None:
    """Where it is long."""
    done = served.turnout("submit", "-", "--repo", "shop", "--json", input="Fix\nall of it.")
    assert json.loads(done.stdout)["task"] == "Fix\nall of it."


def test_a_run_is_followed_to_its_end(served: Served) -> None:
    """What it does on standard error, its diff on standard output; the exit code tells how."""
    run_id = served.ordered()
    served.do(served.service.begun(run_id, *END))
    done = served.turnout("follow", run_id)
    assert "Outcome: answered. It is done." in done.stdout
    assert done.return_value == 1  # no verdict
    shown = json.loads(served.turnout("follow", run_id, "--json").stdout)
    assert (shown["run_id"], shown["exit_code"]) == (run_id, 1)


def test_a_run_is_listed_shown_and_its_diff_printed(served: Served, tmp_path: Path) -> None:
    """As those of this machine are; by the start of its id, too."""
    home = {"TURNOUT_HOME": str(tmp_path)}
    run_id = served.ordered()
    with pytest.raises(NotFoundError, match="queued"):
        served.turnout("show", run_id, env=home)
    served.do(served.service.begun(run_id, *END))
    assert served.turnout("list", "--limit", "1").stdout.startswith(run_id)
    assert json.loads(served.turnout("list", "--json").stdout)["runs"][0]["id"] == run_id
    assert "It is done." in served.turnout("show", run_id[:-1], env=home).stdout
    assert served.turnout("diff", run_id, env=home).stdout_bytes == DIFF
    assert served.turnout("diff", env=home).stdout_bytes == DIFF


def test_a_run_shows_what_has_become_of_its_diff(served: Served, tmp_path: Path) -> None:
    """Where it was pushed, why not, or when it is tried again."""
    run_id = served.ordered("--publish", "draft")
    served.do(served.service.begun(run_id, *END))
    publication = Publication(run_id, "red", NOON, detail="Nobody answers.", tries=1)
    link = "https://git.example.org/team/shop/1"
    for change, line in (
        ({}, "Published: not yet. Nobody answers. It is tried again at 12:00 UTC."),
        ({"state": "failed"}, "Not published: Nobody answers."),
        ({"state": "done"}, "Not published: Nobody answers."),
        (
            {"state": "done", "branch": f"turnout/{run_id}", "link": link, "detail": ""},
            f"Published: branch turnout/{run_id}, {link}",
        ),
    ):
        served.service.published[run_id] = replace(publication, **change)
        done = served.turnout("show", run_id, env={"TURNOUT_HOME": str(tmp_path)})
        assert done.stdout.splitlines()[-1] == line


def test_where_nothing_is_to_be_shown_a_hint_says_so(served: Served, tmp_path: Path) -> None:
    """On standard error: what reads standard output gets nothing."""
    home = {"TURNOUT_HOME": str(tmp_path)}
    run_id = served.ordered()
    served.do(served.service.waiting(run_id))
    done = served.turnout("diff", run_id, env=home)
    assert (done.stdout_bytes, done.stderr) == (b"", f"Run {run_id} has no diff yet.\n")
    listed = served.turnout("list", key="blue-approver", env=home)
    assert listed.stdout == ""
    assert f"no runs at {served.url}" in listed.stderr
    shown = served.turnout("show", run_id, env=home).stdout
    assert f"turnout runs approve {run_id} --call call-1" in shown
    assert "command: make" in shown


def test_a_run_that_comes_to_wait_says_so_to_who_follows_it(served: Served) -> None:
    """With the call and how to decide, while it may still be decided on."""
    run_id = served.ordered()
    served.do(served.service.waiting(run_id))
    cancel = served.service.desk.cancel
    served.streams.then = lambda: served.loop.create_task(cancel("red", run_id))
    done = served.turnout("follow", run_id)
    assert f"turnout runs approve {run_id} --call call-1" in done.stderr
    assert "turnout runs approve" not in served.turnout("follow", run_id).stderr


def test_a_run_is_cancelled_and_done_again(served: Served) -> None:
    """Each says where the run stands."""
    run_id = served.ordered()
    assert "cancelled" in served.turnout("cancel", run_id).stdout
    again = json.loads(served.turnout("retry", run_id, "--json").stdout)
    assert served.service.told[-2:] == [run_id, again["id"]]
    assert (again["retry_of"], again["state"]) == (run_id, "queued")
    with pytest.raises(ConflictError, match="has not ended"):
        served.turnout("retry", again["id"])
    with pytest.raises(NotFoundError, match="before anybody began"):
        served.turnout("follow", run_id)


def test_nobody_decides_on_a_call_that_was_not_looked_at(served: Served) -> None:
    """A script has to name it; what was named and is not there decides on nothing."""
    run_id = served.ordered()
    served.do(served.service.waiting(run_id))
    with pytest.raises(UsageError, match="--call call-1"):
        served.turnout("approve", run_id)
    with pytest.raises(ConflictError, match="call call-1, not on call-2"):
        served.turnout("approve", run_id, "--call", "call-2")
    done = served.turnout("reject", run_id, "--call", "call-1", "--note", "Look.", "--json")
    assert json.loads(done.stdout)["state"] == "queued"
    given = served.do(served.service.records.entries(run_id))[-1].event
    assert (given.call_id, given.allowed, given.note) == (ASKED.call.id, False, "Look.")
    with pytest.raises(ConflictError, match="waits for no decision"):
        served.turnout("approve", run_id)


def test_the_key_decides_what_may_be_done(served: Served) -> None:
    """It comes from the environment and is never an argument."""
    run_id = served.ordered()
    with pytest.raises(GatewayError, match="role `viewer`"):
        served.turnout("cancel", run_id, key="red-viewer")
    with pytest.raises(NotFoundError):
        served.turnout("cancel", run_id, key="blue-approver")
    with pytest.raises(UsageError, match="--server must be"):
        served.turnout("list", "--server", "ftp://x")


@pytest.mark.parametrize(
    ("arguments", "key", "code"),
    [
        ("runs submit task --repo shop", "red-member", 0),
        ("runs submit task --repo shop --server ftp://x", "red-member", 2),
        ("runs submit task --repo shop --label " + "x" * 300, "red-member", 2),
        ("runs cancel run-0123456789ab", "red-member", 1),
        ("runs approve RUN --call call-1", "red-approver", 1),
        ("runs submit task --repo shop", "red-viewer", 3),
        ("runs approve RUN --call call-1", "red-member", 3),
        ("runs submit task --repo shop", "nobody", 4),
        ("runs submit task --repo shop --server http://127.0.0.1:9", "red-member", 4),
        ("runs submit task --repo nowhere", "red-member", 4),
        ("runs submit task --repo shop --base nowhere", "red-member", 4),
        ("review main..nowhere --repo shop", "red-member", 4),
        ("review nowhere..HEAD --repo shop", "red-member", 4),
        ("review main..HEAD --repo nowhere", "red-member", 4),
        ("review main..HEAD", "red-member", 2),
        ("review main..HEAD --repo shop --model m", "red-member", 2),
        ("review main..HEAD --repo shop", "red-viewer", 3),
    ],
)
def test_the_exit_codes_are_those_of_the_page(
    served: Served, arguments: str, key: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever command asks; `turnout review` goes where `turnout runs` goes."""
    run_id = served.ordered()
    monkeypatch.setenv("TURNOUT_SERVER", served.url)
    monkeypatch.setenv("TURNOUT_API_KEY", key)
    assert run([run_id if word == "RUN" else word for word in arguments.split()]) == code


def test_the_slowest_steps_are_those_of_the_record(served: Served) -> None:
    """For people and for scripts; a run that nobody has begun has none."""
    run = json.loads(served.turnout("submit", "Fix it.", "--repo", "shop", "--json").stdout)["id"]
    with pytest.raises(NotFoundError, match="no worker has begun it"):
        served.turnout("slowest", run)
    served.do(served.service.begun(RunId(run), *END))
    assert served.turnout("slowest", run).stdout.startswith(f"{run}  ")
    shown = json.loads(served.turnout("slowest", run[:8], "--json", "--limit", "3").stdout)
    assert (shown["run_id"], shown["steps"]) == (run, [])
    assert set(shown["parts"]) >= {"model", "tools", "checkpoint", "rest"}
