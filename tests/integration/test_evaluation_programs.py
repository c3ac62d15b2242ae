"""Commands as arms: a real checkout, and what they leave looked at by a real sandbox."""

from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pytest
from tests.samples import receipt

from turnout.core.clock import SystemClock
from turnout.core.tasks import Task
from turnout.errors import RepositoryError, SandboxUnavailableError
from turnout.evals.trials.arms import Arm, ArmAsk
from turnout.evals.trials.programs import HostPrograms
from turnout.sandbox.bubblewrap import BubblewrapDriver
from turnout.testing.repositories import TinyRepository


@dataclass
class Leases:
    """Gives out what is told to a command."""

    receipts: list = field(default_factory=list)
    variables: dict = field(default_factory=lambda: {"LLM_API_KEY": "sesame"})

    @contextmanager
    def lease(self, arm, key):
        """Give it out."""
        yield self


@dataclass
class Desk:
    """Runs commands on one repository."""

    programs: HostPrograms
    task: Task

    async def run(self, command):
        """Run one."""
        arm = Arm.of(ArmAsk("mine", "command", command), ())
        try:
            return await self.programs.run(arm, self.task, "key")
        except SandboxUnavailableError as error:
            pytest.skip(str(error))


@pytest.fixture
def driver(sandbox_state):
    """Return what reads checkouts."""
    return BubblewrapDriver(sandbox_state)


@pytest.fixture
def desk(tmp_path, driver):
    """Return what runs commands, five seconds at most."""
    repository = TinyRepository(tmp_path / "clone", {"a.py": "a = 1\n", "b.py": "b = 1\n"})
    base = repository.git("rev-parse", "HEAD")
    repository.commit("the fix", {"a.py": "a = 2\n"})
    leases = Leases([receipt(key="evaluation-key")])
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    programs = HostPrograms(driver, driver.state_dir, leases, SystemClock(), 5.0, environment)
    return Desk(programs, Task("Mend `a`; it's $HOME", str(repository), base))


async def test_what_a_command_changes_in_its_checkout_is_its_diff(desk, tmp_path):
    """Whatever it leaves there; it is told the task, and knows nothing newer than its base."""
    left = await desk.run(
        'git log --oneline --all | wc -l > log.txt && printf %s "$TURNOUT_TASK" > task.txt'
        ' && printf %s "$LLM_API_KEY" | wc -c > key.txt && rm b.py && chmod 000 task.txt'
        f" && ln -s {tmp_path}/clone/a.py link && echo 'a = 2' > a.py && git add -A && git commit"
        " -qm mine || git -c user.name=n -c user.email=e commit -qm mine"
    )
    text = left.diff.decode()
    assert not left.ended, left.ended
    assert "-a = 1\n+a = 2\n" in text
    assert "deleted file mode 100644\nindex" in text
    assert "+Mend `a`; it's $HOME" in text
    assert "new file mode 120000" in text
    assert "+1\n" in text
    assert "+6\n" in text
    assert (left.usage[0].calls, left.timed_out) == (1, False)
    assert not list((desk.programs.state_dir / "checkouts").iterdir())


async def test_a_command_that_does_not_end_is_ended_and_its_diff_still_counts(desk):
    """So does that of one that fails."""
    failed = await desk.run("echo 'a = 3' > a.py; echo 'fatal: no' >&2; exit 7")
    assert failed.ended == "The command ended with status 7: no"
    assert b"+a = 3" in failed.diff
    desk.programs.leases.receipts.clear()
    hasty = Desk(replace(desk.programs, seconds=0.3), desk.task)
    late = await hasty.run("echo 'a = 4' > a.py; sleep 60")
    assert late.timed_out
    assert b"+a = 4" in late.diff
    assert (late.usage, late.cost) == ((), None)


async def test_a_commit_that_is_not_there_is_named(desk):
    """Nothing is run."""
    desk.task = Task("x", desk.task.repository, "f" * 40)
    with pytest.raises(RepositoryError):
        await desk.run("true")
