"""Mining a history, in scripted sandboxes."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.evals.mine.suites import BUGGY, FileSuite, history

from turnout.errors import SandboxError
from turnout.evals.instances.clone import Clone, Commit
from turnout.evals.instances.entries import MOST_LINE
from turnout.evals.instances.load import load_instances
from turnout.evals.instances.mined import TestsOfFix
from turnout.evals.mine.candidates import Candidate, Looked, Rules, look_through
from turnout.evals.mine.mining import Miner, Told, Wish
from turnout.evals.mine.output import MinedFile
from turnout.evals.mine.prove import Prover
from turnout.evals.mine.reasons import Dropped
from turnout.evals.mine.record import About, about_clone
from turnout.sandbox.base import Limits
from turnout.testing.sandbox import ScriptedDriver

TESTS = "tests/test_calc.py"


def candidate(number: int, lines: int = 1, text: str = "mended") -> Looked:
    """Return a fix that writes `mended` into a file of its own."""
    path = f"m{number}.py"
    patch = (
        f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n"
        "@@ -0,0 +1 @@\n+mended\n"
    )
    commit = Commit(
        f"{number + 1:010}{0:030}", ("p" * 40,), "2024-01-01T00:00:00Z", f"Fix {number}", ""
    )
    tests = TestsOfFix({TESTS: f"# test_{number} {path} {text}\n"}, "")
    found = Candidate(commit, commit.subject, "", (path,), patch, tests, "", lines)
    return Looked(commit, commit.subject, found)


class Seen:
    """Keeps what a miner says."""

    def __init__(self) -> None:
        self.told: list[Told] = []
        self.began_with: list[str] = []
        self.under_way = 0

    def began(self, candidate: Candidate) -> None:
        """Keep a candidate that is tried."""
        self.began_with.append(candidate.title)
        self.under_way += 1

    def ended(self) -> None:
        """Count one that is tried no more."""
        self.under_way -= 1

    def tell(self, told: Told) -> None:
        """Keep what was decided."""
        self.told.append(told)


class Mine:
    """A miner of made up candidates."""

    def __init__(self, path: Path, wish: Wish, driver: ScriptedDriver | None = None) -> None:
        self.seen = Seen()
        self.told = self.seen.told
        self.out = MinedFile(path, asked="a")
        prover = Prover(
            driver or ScriptedDriver(BUGGY), Limits(), seconds=9, times=1, run_tests=FileSuite()
        )
        self.miner = Miner(prover, About("o/n", "/srv/n"), self.out, wish, self.seen)

    async def take(self, *looked: Looked) -> list[str]:
        """Mine these and return what was kept."""

        async def given() -> AsyncIterator[Looked]:
            for each in looked:
                yield each

        await self.miner.mine(given())
        return [each.title for each in self.told if isinstance(each.verdict, str)]


async def test_a_fix_becomes_a_row_that_can_be_run(tmp_path: Path) -> None:
    """All that grades it is in the row; its clone is where it was mined."""
    repository = history(tmp_path / "calc")
    clone = await Clone.open(str(repository))
    name, licence = await about_clone(clone, repository.head)
    out = MinedFile(tmp_path / "tasks.jsonl", asked="a")
    prover = Prover(ScriptedDriver(BUGGY), Limits(), seconds=9, run_tests=FileSuite())
    about = About(name, clone.path, licence, ("attrs",), "make it")
    await Miner(prover, about, out, Wish(), Seen()).mine(
        look_through(clone, repository.head, Rules())
    )
    (instance,) = await load_instances(tmp_path / "tasks.jsonl")
    fix = repository.head
    assert instance.instance_id == f"calc-{fix[:10]}"
    assert instance.repository == str(repository)
    assert instance.base_commit == repository.git("rev-parse", "HEAD^")
    assert instance.problem_statement == (
        "Fix add, which subtracts\n\nWhat fails now and must pass:\n"
        f"- {TESTS}::test_add\n    AssertionError: assert {TESTS}::test_add"
    )
    assert "It was a typo." in instance.hints
    assert instance.fail_to_pass == (f"{TESTS}::test_add",)
    assert instance.pass_to_pass == (f"{TESTS}::test_old",)
    assert list(instance.hidden_tests) == [TESTS]
    assert instance.test_patch == ""
    assert "+    return a + b" in instance.patch
    assert instance.test_command == "python -m pytest -q -o addopts= tests"
    assert (instance.requirements, instance.setup) == (("attrs",), "make it")
    assert (instance.difficulty, instance.kind, instance.spec) == ("1", "commit", "self-contained")


async def test_sizes_are_mixed_and_the_newest_come_first(tmp_path: Path) -> None:
    """What is beyond the quota of its size waits until no other is left."""
    mine = Mine(tmp_path / "t.jsonl", Wish(limit=6, jobs=3))
    given = [candidate(n) for n in range(5)] + [candidate(n, lines=9) for n in range(5, 7)]
    assert await mine.take(*given) == ["Fix 0", "Fix 1", "Fix 5", "Fix 6", "Fix 2", "Fix 3"]


async def test_what_is_no_fix_gives_its_place_to_the_next(tmp_path: Path) -> None:
    """However many are tried at once there are never more rows than wanted."""
    mine = Mine(tmp_path / "t.jsonl", Wish(limit=2, jobs=4))
    given = [candidate(n, lines=n + 1, text="mended" if n % 2 else "never") for n in range(9)]
    assert await mine.take(*given) == ["Fix 1", "Fix 5"]
    assert dict(mine.out.reasons) == {"not_mended": 1}


async def test_the_same_again_goes_on(tmp_path: Path) -> None:
    """Rows of before count as part of what is wanted."""
    path = tmp_path / "t.jsonl"
    await Mine(path, Wish(limit=1)).take(candidate(0), candidate(1))
    again = Mine(path, Wish(limit=3))
    assert await again.take(candidate(1), candidate(2, 9), candidate(3)) == ["Fix 2", "Fix 1"]
    assert again.out.kept == 3


async def test_a_row_that_nobody_could_read_is_not_written(tmp_path: Path) -> None:
    """It is longer than what `turnout eval run` takes."""
    mine = Mine(tmp_path / "t.jsonl", Wish())
    found = candidate(0)
    assert isinstance(found.found, Candidate)
    long = replace(found.found, hints="x" * MOST_LINE)
    assert await mine.take(replace(found, found=long)) == []
    assert dict(mine.out.reasons) == {"odd_files": 1}


async def test_reasons_of_commits_that_were_looked_at_are_kept(tmp_path: Path) -> None:
    """They are told as well."""
    mine = Mine(tmp_path / "t.jsonl", Wish())
    looked = candidate(1)
    await mine.take(Looked(looked.commit, "Logo", Dropped("no_source")))
    assert mine.told == [Told(looked.commit.name, "Logo", Dropped("no_source"))]
    assert dict(mine.out.reasons) == {"no_source": 1}


async def test_a_sandbox_that_fails_decides_nothing(tmp_path: Path) -> None:
    """The commit is tried again another time; many in a row mean that the machine is not fit."""
    failing = ScriptedDriver(failure=SandboxError("no room"))
    mine = Mine(tmp_path / "t.jsonl", Wish(), failing)
    assert await mine.take(candidate(0)) == []
    assert mine.miner.failures == (f"{'0' * 9}1: no room",)
    assert mine.out.commits == frozenset()
    with pytest.raises(SandboxError, match="no room"):
        await mine.take(*(candidate(n) for n in range(9)))


async def test_what_is_tried_is_told_when_it_begins_and_when_it_ends(tmp_path: Path) -> None:
    """A proof takes minutes, and whoever waits sees of what."""
    mine = Mine(tmp_path / "t.jsonl", Wish())
    await mine.take(candidate(0), candidate(1))
    assert mine.seen.began_with == ["Fix 0", "Fix 1"]
    assert mine.seen.under_way == 0
