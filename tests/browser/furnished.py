"""A service on which something has happened, so that its pages have something to show."""

import asyncio
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from json import dumps

from pydantic import TypeAdapter
from tests.acceptance.command import DIFF, FIX, TASK
from tests.browser import hostile
from tests.browser.ordering import GATED, call, gated_turns, happened, ordered
from tests.browser.real_console import RealConsole
from tests.samples import receipt

from turnout.core.clock import SystemClock
from turnout.core.ids import RequestId, RunId
from turnout.core.json import ascii_json
from turnout.core.money import Micros
from turnout.core.usage import Usage
from turnout.evals.trials.model import KindUsage, Trial
from turnout.store.receipts import ReceiptsStore
from turnout.testing.turns import Call, Turn

__all__ = ["ASKED", "RESULTS", "STEADY", "Furnished", "furnish"]

ASKED = "What is a siding?"
"""What the model of the service has an answer to."""
STEADY = "steady"
"""A policy whose dry run has been quiet for long enough."""
RESULTS = "two-models.jsonl"
"""Of an evaluation."""
_REVIEW = {
    "decision": "block",
    "summary": "The first page is right now; an empty list is not looked at.",
    "notes": [
        {"path": "pages.py", "line": 8, "severity": "error", "text": "`number` may be 0."},
        {"path": "pages.py", "line": 5, "severity": "warning", "text": "Say what `size` counts."},
    ],
}
_TOUCH = "printf '\\n# Looked at.\\n' >> tests/test_pages.py"
_DAYS = 14


@dataclass(frozen=True, slots=True)
class Furnished:
    """Names of runs."""

    fixed: str
    """Resolved, with tests."""
    hostile: str
    """Everything in it attacks who looks at it."""
    waiting: str
    """For a person's decision."""
    reviewed: str
    """A review, which blocks the change."""
    touched: str
    """It changed the tests, and solved nothing."""
    capped: str
    """It has spent what it might."""
    failed: str
    """The change that it was to read does not apply."""
    cancelled: str

    @property
    def runs(self) -> tuple[str, ...]:
        """All of them."""
        return tuple(getattr(self, field.name) for field in fields(self))


async def furnish(console: RealConsole) -> Furnished:
    """Have runs of each kind happen, policies changed, keys made, an evaluation and questions."""
    ended, pages = {"until": "run_ended"}, {"repo": "pages", "until": "run_ended"}
    # As many at once as there are workers, or nearly: others would wait for a minute.
    fixed, attacking, waiting, *_ = await asyncio.gather(
        ordered(console, TASK, FIX, labels=["team:web"], **pages),
        ordered(console, hostile.TASK, hostile.TURNS, surface="shell", **ended),
        ordered(console, GATED, gated_turns("It is new."), until="approval_asked"),
        _governed(console),
        asyncio.to_thread(_evaluated, console),
    )
    reviewed, touched, cancelled = await asyncio.gather(
        ordered(console, "Read it", [Turn(dumps(_REVIEW))], kind="review", diff=DIFF, **pages),
        ordered(console, "Touch the tests", _touching(), surface="shell", **pages),
        _cancelled(console),
    )
    capped, failed = await asyncio.gather(
        ordered(console, f"{TASK} cheaply", FIX, limits={"max_spend_micros": 300}, **pages),
        ordered(console, "Read what is not there", kind="review", diff=DIFF, **ended),
    )
    return Furnished(fixed, attacking, waiting, reviewed, touched, capped, failed, cancelled)


def _touching() -> tuple[Turn, ...]:
    edit = Turn(calls=(Call("run", {"command": _TOUCH}),))
    return (Turn("Touch them."), edit, Turn("They are touched."), Turn("A comment came."))


async def _cancelled(console: RealConsole) -> str:
    """Stop a run while it waits for a person."""
    name = await ordered(console, f"{GATED}, and stop", gated_turns("No."), until="approval_asked")
    async with asyncio.timeout(60):
        while (await call(console, "GET", f"/runs/{name}"))["state"] != "waiting":
            pass
    await call(console, "POST", f"/runs/{name}/cancel")
    await happened(console, name, "run_ended")
    return name


async def _governed(console: RealConsole) -> None:
    """Let a policy be changed twice, and be broken in its dry run; ask a model something."""
    for allow in (["read_file", "run_tests"], ["read_file"]):
        file = {"objective": "cost", "tools": {"mode": "dry_run", "allow": allow}}
        await call(console, "PUT", "/policies/team", "admin", json={"policy": file})
    quiet = {"tools": {"mode": "dry_run", "allow": ["read_file"]}}
    await call(console, "PUT", f"/policies/{STEADY}", "admin", json={"policy": quiet})
    await _used(console)
    for name in ("ci", "gone"):
        await call(console, "POST", "/keys", "admin", json={"name": name, "project": "shop"})
    await call(console, "DELETE", "/keys/gone", "admin")
    console.spoken.teach(ASKED, [Turn("A second track.")] * 4)
    await call(
        console,
        "POST",
        "/chat/completions",
        "admin",
        json={
            "model": "auto",
            "routing": {"policy": "team", "session": "siding"},
            "messages": [{"role": "user", "content": ASKED}],
            "tools": [{"type": "function", "function": {"name": "run_tests", "parameters": {}}}],
        },
    )


async def _used(console: RealConsole) -> None:
    """Put two weeks of requests on record: by two keys, some of them in vain, all in the list."""
    store, now = ReceiptsStore(console.database), SystemClock().now()
    for number in range(3 * _DAYS):
        failed, large = number % 9 == 4, number % 3 == 0
        made = receipt(f"req-used-{number}", key="operator" if large else "viewer")
        await store.add(
            replace(
                made,
                request_id=RequestId(f"req-used-{number}"),
                at=now - timedelta(days=_DAYS - number // 3, minutes=number),
                policy=STEADY,
                project="shop",
                status="failed" if failed else "ok",
                http_status=503 if failed else 200,
                cost_micros=Micros(0 if failed else 900 + 137 * (number % 7)),
                usage=Usage(1_000 + 90 * number, 50, 800),
                tools_outside=(),
            )
        )


def _evaluated(console: RealConsole) -> None:
    """Leave the results of an evaluation of two models where the console looks for them."""
    rows = [_trial(number, model) for number in range(20) for model in ("large", "small")]
    body = "".join(f"{ascii_json(TypeAdapter(Trial).dump_python(r, mode='json'))}\n" for r in rows)
    folder = console.home / "evaluations"
    folder.mkdir(exist_ok=True)
    (folder / RESULTS).write_text(body)


def _trial(number: int, model: str) -> Trial:
    """Return a trial that one model worked on alone; the large one solves more."""
    solved = number < (17 if model == "large" else 4)
    cost, seconds = (12_000, 90.0) if model == "large" else (900, 30.0)
    return Trial(
        instance_id=f"pages-{number}",
        instance_digest=f"d-{number}",
        grade="resolved" if solved else "unresolved",
        arm=f"model:{model}",
        arm_digest=f"{model}-0123456789abcdef",
        run_id=RunId(f"run-{model}-{number}"),
        title=f"A bug in page {number} {hostile.NAMES[number % len(hostile.NAMES)]}",
        detail="All tests that must pass do." if solved else "1 of 2 tests that must pass fails.",
        usage=(KindUsage("act", model, 4, 4_000 + 100 * number, 300),),
        steps=4,
        seconds=seconds + number,
        cost_micros=Micros(cost + 10 * number),
        diff=DIFF if solved else "",
    )
