"""The task of each guide, run on the surface that is like its agent: real command, real sandbox."""

from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.command import KEY, Command

from turnout.testing.model_server import Call, Refusal, ScriptedModelServer, Turn
from turnout.testing.repositories import TinyRepository

EMPTY_TASK = (
    "The test test_parse_dates fails on an empty input. Find the cause in src/dates.py and fix it."
)
DATES = """\
def parse_dates(rows):
    first = rows[0]
    return [tuple(map(int, row.split(first[4]))) for row in rows]
"""
DATES_TEST = """\
from src.dates import parse_dates


def test_parse_dates():
    for year in range(1000, 1400):
        print(f"what came of the year {year}:", parse_dates([f"{year}-02-28"]))
    assert parse_dates([]) == []
"""
DATES_DIFF = """\
--- a/src/dates.py
+++ b/src/dates.py
@@ @@
 def parse_dates(rows):
+    if not rows:
+        return []
     first = rows[0]
"""
ROUTED = """
[policy]
objective = "balanced"
pool = ["strong", "fast", "cheap", "pinned"]
tools = { mode = "enforce", allow = ["list_files", "read_file", "run_tests", "apply_patch"] }
session = { max_requests = 40, max_spend_usd = "1.00" }
pinned = { fallback = "model", model = "strong" }
[providers.p]
base_url = "%s"
[[deployments]]
model = "strong"
provider = "p"
tools = "confirmed"
price = { input_usd = "9.00", output_usd = "9.00" }
quality = { coding = { value = 0.9, source = "test", sample_size = 100, date = "2026-01-01" } }
ttft_ms = 9000
tokens_per_second = 10
[[deployments]]
model = "fast"
provider = "p"
tools = "confirmed"
price = { input_usd = "3.00", output_usd = "3.00" }
quality = { coding = { value = 0.6, source = "test", sample_size = 100, date = "2026-01-01" } }
ttft_ms = 10
tokens_per_second = 900
[[deployments]]
model = "cheap"
provider = "p"
tools = "confirmed"
price = { input_usd = "0.10", output_usd = "0.10" }
quality = { coding = { value = 0.5, source = "test", sample_size = 100, date = "2026-01-01" } }
ttft_ms = 9000
tokens_per_second = 10
[[deployments]]
model = "pinned"
provider = "p"
tools = "confirmed"
price = { input_usd = "9.00", output_usd = "9.00" }
ttft_ms = 9000
tokens_per_second = 10
[agent.tool_steps.apply_patch]
model = "pinned"
"""


def called(kind: str, result: Any) -> list[str]:
    """Return the models that took the steps of a kind."""
    return [call["model"] for call in result["model_calls"] if call["kind"] == kind]


async def test_the_first_guides_agent_routes_each_call_on_what_it_is(
    turnout: Command, tmp_path: Path
) -> None:
    """Plan and answer on the strongest, steps on the fastest, summaries on the cheapest.

    The patch has a step of its own, pinned to a model that fails: the policy's stand-in makes it.
    """
    files = {"src/dates.py": DATES, "src/__init__.py": "", "tests/test_dates.py": DATES_TEST}
    repository = TinyRepository(tmp_path / "dates", files)
    scripts = {
        "strong": (
            Turn("1. Read src/dates.py\n2. Return early\nDone when: test_parse_dates passes"),
            Turn(calls=(Call("apply_patch", {"diff": DATES_DIFF}),)),
            Turn(calls=(Call("run_tests"),)),
            Turn("Empty input now gives an empty list."),
            Turn("Nothing is left to do."),
            Turn("The first row was taken where there was none."),
        ),
        "fast": (
            Turn(calls=(Call("list_files"), Call("read_file", {"path": "src/dates.py"}))),
            Turn(calls=(Call("run_tests", {"selector": "tests/test_dates.py"}),)),
            Turn("It takes the first row of none; I return early."),
        ),
        "cheap": (Turn("test_parse_dates: IndexError in src/dates.py:2"),),
        "pinned": lambda _: Refusal(503, headers={"Retry-After": "0"}),
    }
    async with ScriptedModelServer(scripts) as server:
        turnout.configured(ROUTED % server.base_url)
        done = await turnout("run", EMPTY_TASK, "--repo", str(repository), "--json")
        assert server.history_faults == []
    result = done.object
    assert result.get("outcome") == "answered", done.out + done.err
    assert (done.code, result["verdict"]["name"]) == (0, "resolved")
    assert called("plan", result) == called("answer", result) == ["strong"]
    assert called("summary", result) == ["cheap"]
    # A loop stays on the model that opened it, also where that is a stand-in.
    assert called("act", result) == ["fast"] * 3 + ["strong"] * 4
    steps = [call for call in result["model_calls"] if call["kind"] == "act"]
    assert [call["fallback"] for call in steps] == [False] * 3 + [True, False, False, True]
    assert [call["sticky"] for call in steps] == [False, True, True, False, True, True, False]
    tested = next(call for call in result["tool_calls"] if call["name"] == "run_tests")
    assert "summarised; read_file shows all of it" in tested["result"]
    assert "+    if not rows:" in result["diff"]
    assert result["success_condition"] == "test_parse_dates passes"


LOGIN = """\
def login(user, password):
    return "welcome" if password == "sesame" else "no"
"""
LOGIN_TEST = """\
from app import login


def test_a_password_is_needed():
    assert login("ada", "sesame") == "welcome"
    assert login("ada", "open") == "no"
"""
LIMITED = """\
from collections import Counter

TRIES = Counter()


def login(user, password):
    TRIES[user] += 1
    if TRIES[user] > {most}:
        return "too many"
    return "welcome" if password == "sesame" else "no"
"""
LIMIT_TEST = """\
from app import login


def test_the_fourth_try_is_one_too_many():
    assert [login("eve", "?") for _ in range(4)] == ["no", "no", "no", "too many"]
"""


def writes(path: str, content: str) -> Call:
    """Return a call that writes a file."""
    return Call("write_file", {"path": path, "content": content})


async def test_the_second_guides_agent_observes_acts_and_corrects_itself(
    turnout: Command, tmp_path: Path
) -> None:
    """A feature: plan, look, write, test, see it fail, write again; text without a call ends it."""
    repository = TinyRepository(tmp_path / "app", {"app.py": LOGIN, "test_app.py": LOGIN_TEST})
    tests = Call("run_command", {"command": "python -m pytest -q; echo to stderr >&2"})
    turns = (
        Turn("1. Find the login\n2. Limit it\n3. Test it\nDone when: the fourth try is refused"),
        Turn("[1]", calls=(Call("list_directory"), Call("read_file", {"path": "app.py"}))),
        Turn(
            "[2]",
            calls=(
                writes("app.py", LIMITED.format(most=4)),
                writes("test_limit.py", LIMIT_TEST),
                tests,
            ),
        ),
        Turn("[3] Three tries, not four.", calls=(writes("app.py", LIMITED.format(most=3)), tests)),
        Turn("The fourth try of a user is refused now."),
        Turn("Tries are counted by user."),
    )
    async with ScriptedModelServer(turns, models=["m"], api_key=KEY) as server:
        run = ("run", "Add rate limiting to the login", "--repo", str(repository))
        done = await turnout.using(server.base_url)(*run, "--surface", "files", "--json")
        assert server.history_faults == []
        declared = {request.tool_names for request in server.requests[1:-1]}
    result = done.object
    assert (done.code, result["verdict"]["name"]) == (0, "no_regression"), done.err
    assert declared == {("read_file", "write_file", "run_command", "list_directory")}
    assert [step["state"] for step in result["plan_steps"]] == ["done"] * 3
    looked, read, *_, failed, _, passed = [call["result"] for call in result["tool_calls"]]
    assert looked.splitlines() == ["app.py", "test_app.py"]
    assert read == LOGIN
    assert (failed[:7], passed[:7]) == ("exit 0\n", "exit 0\n")
    assert "1 failed, 1 passed" in failed
    assert "2 passed" in passed
    assert passed.endswith("to stderr\n")
    assert [change["path"] for change in result["files"]] == ["app.py", "test_limit.py"]


LEAP = """\
def is_leap(year):
    return year % 4 == 0


def days(year):
    return 366 if year % 4 == 0 else 365
"""
LEAP_TEST = """\
import pytest

from dates import days, is_leap


@pytest.mark.parametrize("year", [1900, 2000, 2023, 2024])
def test_leap_years(year):
    assert is_leap(year) == (year in (2000, 2024))
    assert days(year) == 365 + is_leap(year)
"""


@pytest.mark.cases
async def test_the_third_guides_agent_turns_every_mistake_into_a_message(
    turnout: Command, tmp_path: Path
) -> None:
    """Broken arguments, an edit of two places, words without a call: the model reads and recovers.

    The grade is ours: failing before, passing after, the tests untouched. What stands on our own
    standard input is nothing that a command could read.
    """
    files = {"dates.py": LEAP, "tests/test_dates.py": LEAP_TEST, "conftest.py": ""}
    repository = TinyRepository(tmp_path / "dates", files)
    edit = {
        "path": "dates.py",
        "new": "return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)",
    }
    tests = Call("run", {"command": "python -m pytest -q -x"})
    turns = (
        Turn("1. Run the tests\n2. Mend dates.py\nDone when: they pass"),
        Turn(calls=(tests, Call("run", {"command": "read x; echo got:$x"}))),
        Turn(
            calls=(Call("read_file", '{"path": dates.py'), Call("read_file", {"path": "dates.py"}))
        ),
        Turn("The century is forgotten. I will mend it."),
        Turn(calls=(Call("edit_file", {**edit, "old": "year % 4 == 0"}),)),
        Turn(calls=(Call("edit_file", {**edit, "old": "return year % 4 == 0"}),)),
        Turn(
            calls=(
                Call(
                    "edit_file",
                    {"path": "dates.py", "old": "if year % 4 == 0", "new": "if is_leap(year)"},
                ),
                Call("edit_file", {"path": "tests/test_dates.py", "old": "1900, ", "new": ""}),
                tests,
            )
        ),
        Turn(calls=(Call("finish", {"summary": "Centuries are no leap years, but for 400s."}),)),
        Turn("Years that end a century were counted as leap years."),
    )
    async with ScriptedModelServer(turns, models=["m"], api_key=KEY) as server:
        run = ("run", "tests/test_dates.py fails on leap years. Fix the code.", "--json")
        command = turnout.using(server.base_url)
        options = ("--repo", str(repository), "--surface", "shell")
        done = await command(*run, *options, typed=b"SECRET\n")
        assert server.history_faults == []
        nudge = server.requests[4].messages[-1]
    result = done.object
    verdict = result["verdict"]
    assert (done.code, verdict["name"]) == (0, "resolved"), done.err
    assert (verdict["failed_before"], verdict["passes_after"]) == (True, True)
    assert verdict["tests_untouched"]
    assert (nudge["role"], "call finish" in str(nudge["content"])) == ("user", True)
    said = [(call["name"], call["is_error"], call["result"]) for call in result["tool_calls"]]
    failed, typed, broken, read, twice, edited, named, touched, passed, _ = said
    assert failed[2].startswith("exit 1\n")
    assert typed[2] == "exit 0\ngot:\n"
    assert (broken[1], '{"path": dates.py' in broken[2]) == (True, True)
    assert read == ("read_file", False, LEAP)
    assert (twice[1], "lines 2, 6" in twice[2]) == (True, True)
    assert edited[1] is named[1] is False
    assert (touched[1], "existing test file" in touched[2]) == (True, True)
    assert "4 passed" in passed[2]
    assert [change["path"] for change in result["files"]] == ["dates.py"]
