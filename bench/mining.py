"""How many known fixes mining finds again in the histories that they came from.

`--facts FILE` names the fixes (rows with `repo` and `fix_commit`), `--repos DIR` holds the clones
and `--only OWNER/NAME` chooses among the repositories. Each is mined as `turnout eval mine` does by
default: every commit of the main line, tests run before and after in sandboxes without network.
Where the facts of a repository say what its tests need (`python_requirements`), that is given as a
user would with `--requirement`; what each commit declares is installed elsewhere, and everywhere
with `--declared`. What a first go has decided is kept in `--keep DIR`, so that hours of work can be
done in several goes. Without `--facts` it is a history of three commits, one of them a fix.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from children import end_on_term
from frame import Figures, Options, report
from turnout.evals.instances.clone import Clone, find_clone
from turnout.evals.mine.candidates import Candidate, Rules, look_through
from turnout.evals.mine.mining import Miner, Told, Wish
from turnout.evals.mine.output import MinedFile
from turnout.evals.mine.parents import Parents
from turnout.evals.mine.prove import Prover
from turnout.evals.mine.reasons import Dropped
from turnout.evals.mine.record import About, about_clone
from turnout.sandbox.workspace.folders import short_hash
from turnout.settings import Settings, load_settings
from turnout.testing.repositories import PAGINATION_FIXED, PAGINATION_TEST, buggy_pagination
from turnout.wiring.sandboxes import open_sandboxes

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line asked for."""

    options: Options
    facts: Path | None
    repos: Path | None
    only: tuple[str, ...]
    keep: Path | None
    jobs: int
    recent: bool
    declared: bool


@dataclass(frozen=True, slots=True)
class Watching:
    """Prints what is kept, and keeps why the rest was left out."""

    reasons: dict[str, str]
    """By commit."""

    def began(self, candidate: Candidate) -> None:
        """Say nothing of a candidate that is tried."""

    def ended(self) -> None:
        """Nor of one that is tried no more."""

    def tell(self, told: Told) -> None:
        """Take note of a commit that was decided."""
        if isinstance(told.verdict, Dropped):
            self.reasons[told.commit] = f"{told.verdict.reason} {told.verdict.detail}".strip()
        else:
            print(f"kept {told.commit[:10]} {told.title}", flush=True)


@dataclass(frozen=True, slots=True)
class Mined:
    """What mining one repository found."""

    repo: str
    requirements: tuple[str, ...] | None
    """What was given for its tests; None: what each commit declares."""
    rows: int
    """All that it kept."""
    found: int
    """Of those that were known."""
    there: int
    same_tests: int
    """Of those found: with the same tests that fail, and as many that pass."""
    missed: tuple[str, ...]
    seconds: float | None
    """None where part of it was done before."""


def parse() -> Wanted:
    """Read the command line."""
    end_on_term()
    parser = argparse.ArgumentParser(description="How many known fixes mining finds again.")
    parser.add_argument("--quick", action="store_true", help="45 seconds at most; keep no result")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    parser.add_argument("--facts", type=Path, help="JSON lines of known fixes")
    parser.add_argument("--repos", type=Path, help="folder of clones")
    parser.add_argument("--only", action="append", default=[], help="this repository; repeatable")
    parser.add_argument("--keep", type=Path, help="folder of what is found, to go on with")
    parser.add_argument("--jobs", type=int, default=1, help="fixes that are tried at once")
    parser.add_argument(
        "--recent", action="store_true", help="no commits before the oldest known fix of each"
    )
    parser.add_argument(
        "--declared", action="store_true", help="only what each commit declares is installed"
    )
    found = parser.parse_args()
    return Wanted(
        Options(found.quick, found.json),
        None if found.quick else found.facts,
        found.repos,
        tuple(found.only),
        found.keep,
        found.jobs,
        found.recent,
        found.declared,
    )


async def mine_one(
    wanted: Wanted, settings: Settings, clone: Clone, out: MinedFile, facts: Sequence[Row]
) -> Mined:
    """Mine one repository and compare what is found with what is known."""
    reasons = {each["commit"]: each["reason"] for each in read(out.dropped_path)}

    started = None if out.commits else time.monotonic()
    since = _day_before(min(row["created_at"] for row in facts)) if wanted.recent else ""
    start = await clone.commit_of("HEAD")
    repo, licence = await about_clone(clone, start)
    async with open_sandboxes(settings) as driver:
        prover = Prover(driver, settings.limits, seconds=300.0)
        parents = Parents(settings.home / "mined" / f"{short_hash(clone.path)}.git", clone)
        await parents.begin()
        needs = needed(wanted, facts)
        about, wish = About(repo, clone.path, licence, needs), Wish(jobs=wanted.jobs)
        miner = Miner(prover, about, out, wish, Watching(reasons), parents=parents)
        rules = Rules(tests=settings.test_paths)
        await miner.mine(look_through(clone, start, rules, since=since, known=out.commits))
    missed = [row for row in facts if row["fix_commit"] not in out.fixes]
    for row in missed:
        why = reasons.get(row["fix_commit"], "decided before, or never met")
        print(f"missed {row['fix_commit'][:10]} {row['title']}: {why}", flush=True)
    for each in miner.failures:
        print(f"undecided {each}", flush=True)
    return Mined(
        repo,
        needs,
        out.kept,
        len(facts) - len(missed),
        len(facts),
        same_tests(out.path, facts),
        tuple(f"{row['fix_commit'][:10]}: {reasons.get(row['fix_commit'], '?')}" for row in missed),
        None if started is None else time.monotonic() - started,
    )


def needed(wanted: Wanted, facts: Sequence[Row]) -> tuple[str, ...] | None:
    """Return what the tests of a repository need, as its facts say; None: they say nothing."""
    named = [each for row in facts for each in row.get("python_requirements") or ()]
    return None if wanted.declared else tuple(dict.fromkeys(named)) or None


def _day_before(at: str) -> str:
    return (datetime.fromisoformat(at) - timedelta(days=1)).isoformat()


def same_tests(path: Path, facts: Sequence[Row]) -> int:
    """Count the rows that name the same tests as the facts."""
    rows = {row["fix_commit"]: row for row in read(path)}
    return sum(
        set(rows[each["fix_commit"]]["FAIL_TO_PASS"]) == set(each["FAIL_TO_PASS"])
        and rows[each["fix_commit"]]["pass_to_pass_count"] == each["pass_to_pass_count"]
        for each in facts
        if each["fix_commit"] in rows
    )


def read(path: Path) -> list[Row]:
    """Return the rows of a file of JSON lines."""
    text = path.read_text("utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def tiny(folder: Path) -> tuple[Path, list[Row]]:
    """Make a history of three commits and return where it is, and the fix in it."""
    repository = buggy_pagination(folder / "repos" / "tiny")
    name = PAGINATION_TEST.rpartition("::")[2]
    path = repository.path / "tests" / "test_pages.py"
    whole = path.read_text()
    repository.commit("Wait with a test", {"tests/test_pages.py": whole.replace(name, "wait")})
    files = {"pages.py": PAGINATION_FIXED, "tests/test_pages.py": whole}
    fix = repository.commit("Fix the first page", files)
    row: Row = {
        "repo": "tiny",
        "fix_commit": fix,
        "created_at": "2024-01-01T00:00:00+00:00",
        "title": "Fix the first page",
        "FAIL_TO_PASS": [PAGINATION_TEST],
        "pass_to_pass_count": 2,
    }
    return folder / "repos", [row]


async def main() -> None:
    """Mine and report."""
    wanted = parse()
    settings = load_settings()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="turnout-bench-")))
        repos, facts = (wanted.repos, read(wanted.facts)) if wanted.facts else tiny(folder)
        keep = wanted.keep or folder
        keep.mkdir(parents=True, exist_ok=True)
        done: list[Mined] = []
        for repo in dict.fromkeys(row["repo"] for row in facts):
            place = find_clone(repo, repos)
            if place is None or (wanted.only and repo not in wanted.only):
                continue
            own = [row for row in facts if row["repo"] == repo]
            # What was dropped without them is looked at again.
            asked = " ".join(("bench", *(needed(wanted, own) or ())))
            out = MinedFile(keep / f"{repo.replace('/', '__')}.jsonl", asked=asked)
            clone = await Clone.open(str(place))
            done.append(await mine_one(wanted, settings, clone, out, own))
            print(done[-1], flush=True)
    times = [each.seconds for each in done if each.seconds is not None]
    found, there = sum(each.found for each in done), sum(each.there for each in done)
    figures: Figures = {
        "found_share": round(found / there, 3) if there else None,
        "found": found,
        "there": there,
        "same_tests": sum(each.same_tests for each in done),
        "rows": sum(each.rows for each in done),
        "seconds": round(sum(times), 1) if len(times) == len(done) else None,
        "missed": "; ".join(name for each in done for name in each.missed),
    }
    report(
        "mining",
        wanted.options,
        figures,
        facts={
            "repositories": " ".join(each.repo for each in done),
            "jobs": wanted.jobs,
            "requirements": "; ".join(
                f"{each.repo}: {', '.join(each.requirements)}"
                for each in done
                if each.requirements is not None
            ),
            "commits": "since the oldest known fix" if wanted.recent else "all",
        },
    )


if __name__ == "__main__":
    asyncio.run(main())
