"""What test runs show of a fix, in scripted sandboxes."""

from dataclasses import replace

import pytest
from tests.unit.evals.mine.suites import BUGGY, FIXED, FileSuite

from turnout.errors import RepositoryError, SandboxUnavailableError
from turnout.evals.instances.model import Instance
from turnout.evals.mine.prove import Glance, Proof, Prover
from turnout.evals.mine.reasons import Dropped
from turnout.sandbox.base import BaseSpec, Limits
from turnout.testing.sandbox import ScriptedDriver
from turnout.testing.sandbox.files import fake_file
from turnout.testing.sandbox.patching import difference

TESTS = "tests/test_calc.py"
FIX = Instance(
    instance_id="one",
    problem_statement="Fix add",
    repository="/srv/repo",
    base_commit="abc",
    files={},
    hidden_tests={TESTS: FIXED[TESTS]},
    test_patch="",
    fail_to_pass=(),
    pass_to_pass=(),
    test_command="python -m pytest tests",
    requirements=("attrs",),
    digest="",
    patch=difference(
        {"calc.py": fake_file(BUGGY["calc.py"])}, {"calc.py": fake_file(FIXED["calc.py"])}
    ).diff.decode(),
    setup="make it",
)


def with_tests(*lines: str) -> Instance:
    """Return the fix with other tests."""
    return replace(FIX, hidden_tests={TESTS: "".join(f"# {line}\n" for line in lines)})


async def glanced(fix: Instance = FIX) -> Glance | Dropped:
    """Look at the changed test files once."""
    return await Prover(ScriptedDriver(BUGGY), Limits(), seconds=9, run_tests=FileSuite()).glance(
        fix, "python -m pytest tests/test_calc.py"
    )


async def proven(fix: Instance = FIX, suite: FileSuite | None = None) -> Proof | Dropped:
    """Run the whole suite three times."""
    driver = ScriptedDriver(BUGGY)
    prover = Prover(driver, Limits(), seconds=9, run_tests=suite or FileSuite())
    found = await prover.prove(fix)
    assert all(sandbox.closed for sandbox in driver.sandboxes)
    return found


async def test_a_fix_mends_tests_and_keeps_the_others() -> None:
    """Each run is one of a fresh sandbox at the parent, with another hash seed."""
    suite, driver = FileSuite(), ScriptedDriver(BUGGY)
    found = await Prover(driver, Limits(), seconds=9, run_tests=suite).prove(FIX)
    assert found == Proof(
        (f"{TESTS}::test_add",), (f"{TESTS}::test_old",), "python -m pytest tests", 0.5
    )
    assert set(driver.prepared) == {BaseSpec("/srv/repo", "abc", ("attrs",), setup="make it")}
    assert len(driver.sandboxes) == 6
    assert suite.commands == [
        f"ulimit -S -t 9 2>/dev/null\nexport PYTHONHASHSEED={seed}\npython -m pytest tests\nexit $?"
        for seed in (0, 0, 1, 1, 2, 2)
    ]


async def test_a_glance_tells_what_fails_and_with_what() -> None:
    """One sandbox does: the fix comes after the tests were seen to fail."""
    found = await glanced()
    test = f"{TESTS}::test_add"
    assert found == Glance((test,), {test: f"AssertionError: assert {test}"})
    assert not found.asks_for_names


@pytest.mark.parametrize(
    ("error", "asks"),
    [
        ("AttributeError: module 'calc' has no attribute 'mul'", True),
        ("TypeError: add() got an unexpected keyword argument 'c'", True),
        ("ImportError: cannot import name 'mul'", True),
        ("TypeError: unsupported operand", False),
        ("AssertionError: assert 1 == 2", False),
    ],
)
def test_tests_that_miss_a_name_ask_for_it(error: str, *, asks: bool) -> None:
    """Nobody could know the name without seeing them."""
    assert Glance(("t",), {"t": error}).asks_for_names is asks
    assert not Glance(("t", "u"), {"t": error, "u": "assert 1 == 2"}).asks_for_names
    assert not Glance(("t",), {}).asks_for_names


@pytest.mark.parametrize(
    ("tests", "reason"),
    [
        (("test_a calc.py add",), "nothing_fails"),
        (("test_a calc.py nowhere", "test_b calc.py add"), "not_mended"),
        (("test_a import a + b", "test_b calc.py add"), "not_collected"),
        (("test_a import nowhere",), "not_runnable"),
        (("test_a slow -",), "slow"),
    ],
)
async def test_most_candidates_are_left_out_at_a_glance(
    tests: tuple[str, ...], reason: str
) -> None:
    """By what their own test files show."""
    found = await glanced(with_tests(*tests))
    assert isinstance(found, Dropped)
    assert found.reason == reason


@pytest.mark.parametrize(
    ("tests", "reason"),
    [
        (("test_a calc.py a + b", "test_b calc.py a - b"), "breaks_tests"),
        (("test_a calc.py add",), "nothing_fails"),
        (("test_a seed 1",), "not_mended"),
        (("test_a seed 12", "test_b calc.py add"), "not_mended"),
        (("test_a slow -",), "slow"),
    ],
)
async def test_the_whole_suite_may_show_no_fix(tests: tuple[str, ...], reason: str) -> None:
    """Even where a glance did."""
    found = await proven(with_tests(*tests))
    assert isinstance(found, Dropped)
    assert found.reason == reason


async def test_a_test_that_needs_luck_is_no_part_of_a_row() -> None:
    """Neither among those that are mended nor among those that must keep passing."""
    found = await proven(with_tests("test_a calc.py a + b", "test_b seed 02", "test_c calc.py add"))
    assert isinstance(found, Proof)
    assert found.fail_to_pass == (f"{TESTS}::test_a",)
    assert found.pass_to_pass == (f"{TESTS}::test_c",)


async def test_tests_that_use_up_their_cpu_time_are_slow() -> None:
    """A clock that runs on while a busy machine does other things is far away."""
    suite = FileSuite(ended=152)
    assert await proven(FIX, suite) == Dropped("slow", "over 9 s")
    assert suite.timeouts == [36]


async def test_a_parent_that_cannot_be_set_up_is_left_out() -> None:
    """Unless it is the machine that cannot."""
    failing = ScriptedDriver(failure=RepositoryError("gone"))
    found = await Prover(failing, Limits(), seconds=9, run_tests=FileSuite()).prove(FIX)
    assert found == Dropped("unprepared", "gone")
    unfit = ScriptedDriver(failure=SandboxUnavailableError("no walls"))
    with pytest.raises(SandboxUnavailableError):
        await Prover(unfit, Limits(), seconds=9, run_tests=FileSuite()).prove(FIX)


async def test_tests_that_a_fix_removes_are_not_there() -> None:
    """And files that the commit lacks are written before anything runs."""
    fix = replace(with_tests("test_a calc.py a + b"), extra_files={"version.py": "1\n"})
    fix = replace(fix, hidden_tests={**fix.hidden_tests, "tests/test_gone.py": None})
    driver = ScriptedDriver({**BUGGY, "tests/test_gone.py": "# test_g calc.py nowhere\n"})
    found = await Prover(driver, Limits(), seconds=9, run_tests=FileSuite()).prove(fix)
    assert isinstance(found, Proof)
    assert "version.py" in driver.sandboxes[0].files
    assert all("tests/test_gone.py" not in each.files for each in driver.sandboxes)


async def test_files_that_cannot_be_collected_do_not_keep_others_from_running() -> None:
    """Pytest is told to go on where it would run nothing at all."""
    suite = FileSuite()
    fix = replace(FIX, hidden_tests={TESTS: "# test_a import a + b\n"})
    await proven(fix, suite)
    assert "pytest tests --continue-on-collection-errors\n" in suite.commands[1]
