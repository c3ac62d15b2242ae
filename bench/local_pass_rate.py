"""How many bugs the local model mends here, and how many in other agents' loops.

Tasks are those of `--tasks FILE` (see `tasks.py`); without it, one tiny task. Ours works as
`turnout run` does, with the strategy that fits the model. The three guides' loops
(`baselines/loops.py`) ask for the same model through our gateway, which makes calls of what it
writes as text: on the bare server they would get none. mini-swe-agent writes its actions as text
and asks the same gateway. Same machine, same wall time a task; every diff is graded by hidden
tests in a fresh sandbox. A full run puts mini-swe-agent into `.venv/peers` where it is missing.

All arms of a task are tried before the next task, so that a comparison that is cut off is still
one of pairs. With `--trials FILE` each trial is kept there, and none that is there is made again:
hours of work can be done in several goes, with the same tasks, seconds and model.
"""

import argparse
import asyncio
import base64
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import aiohttp

from baselines.loops import GUIDES, Endpoint, Guide, work
from children import bound, end_on_term
from frame import Figures, Options, report
from peers import free_port, running
from tasks import load_tasks, tiny_task
from turnout.core.ids import new_run_id
from turnout.core.tasks import Task
from turnout.errors import TurnoutError
from turnout.evals.grading.grade import Grader
from turnout.evals.instances.model import Instance
from turnout.localmodel.models import find_installed, models_folder
from turnout.localmodel.serve import LocalServer
from turnout.runs.summary import RunResult
from turnout.sandbox.base import BaseSpec, SandboxDriver
from turnout.settings import Settings, load_settings
from turnout.wiring.rooms import open_service
from turnout.wiring.sandboxes import open_sandboxes

PEERS = Path(__file__).parent.parent / ".venv" / "peers"
MINI = "mini-swe-agent==2.4.6"
ARMS = ("ours", *GUIDES, "mini_swe_agent")
SLACK_SECONDS = 60.0
TOO_LONG = 400
"""Status of an answer to a history that the model's window does not hold."""

CONFIG = """\
[providers.local]
base_url = "{url}"

[[deployments]]
model = "{model}"
provider = "local"
tools = "confirmed"
calls_in_text = true
enforces_tool_choice = false
price = {{input_usd = "0", output_usd = "0"}}
"""

Work = Callable[[Instance], Awaitable[bytes]]
"""Works on a task and returns the diff."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line asked for."""

    options: Options
    tasks: Path | None
    repos: Path | None
    only: tuple[str, ...]
    limit: int | None
    arms: tuple[str, ...]
    seconds: float
    """Wall time of one task."""
    trials: Path | None


@dataclass(frozen=True, slots=True)
class Trial:
    """What one arm made of one task."""

    arm: str
    task: str
    grade: str
    seconds: float


class Trials:
    """Every trial, kept in a file where one was named."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path and path.exists() else []
        self.made = [Trial(**json.loads(line)) for line in lines]

    def has(self, arm: str, task: str) -> bool:
        """Whether it was made before."""
        return any((each.arm, each.task) == (arm, task) for each in self.made)

    def add(self, trial: Trial) -> None:
        """Keep it."""
        self.made.append(trial)
        if self._path:
            with self._path.open("a") as file:
                file.write(json.dumps(asdict(trial)) + "\n")

    def of(self, arm: str, tasks: Collection[str]) -> Figures:
        """Sum up what an arm made of some tasks."""
        mine = [each for each in self.made if each.arm == arm and each.task in tasks]
        solved = [each.task for each in mine if each.grade == "resolved"]
        return {
            "solved": len(solved),
            "tasks": len(mine),
            "seconds": round(sum(each.seconds for each in mine), 1),
            "solved_tasks": " ".join(solved),
        }


@dataclass(frozen=True, slots=True)
class Bench:
    """What every arm works with."""

    wanted: Wanted
    settings: Settings
    driver: SandboxDriver
    folder: Path
    instances: tuple[Instance, ...]
    model: Path


def parse() -> Wanted:
    """Read the command line."""
    end_on_term()
    parser = argparse.ArgumentParser(description="How many bugs the local model mends.")
    parser.add_argument("--quick", action="store_true", help="45 seconds at most; keep no result")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    parser.add_argument("--tasks", type=Path, help="JSON lines: small or mined tasks")
    parser.add_argument("--repos", type=Path, help="folder of clones, for mined tasks")
    parser.add_argument("--only", action="append", default=[], help="this task; may be repeated")
    parser.add_argument("--limit", type=int, help="the first N tasks")
    parser.add_argument("--arms", default=",".join(ARMS), help=f"of {', '.join(ARMS)}")
    parser.add_argument("--seconds", type=float, default=300.0, help="wall time of one task")
    parser.add_argument("--trials", type=Path, help="JSON lines to go on with")
    found = parser.parse_args()
    return Wanted(
        Options(found.quick, found.json),
        None if found.quick else found.tasks,
        found.repos,
        tuple(found.only),
        found.limit,
        ("ours",) if found.quick else tuple(found.arms.split(",")),
        25.0 if found.quick else found.seconds,
        None if found.quick else found.trials,
    )


async def tried(bench: Bench, name: str, work: Work, instance: Instance) -> Trial:
    """Let one arm work on one task, and grade what it made of it."""
    grader = Grader(
        bench.driver, bench.settings.limits, test_timeout=bench.settings.agent.own_test_timeout
    )
    started = time.monotonic()
    try:
        async with asyncio.timeout(bench.wanted.seconds + SLACK_SECONDS):
            diff = await work(instance)
    except (TurnoutError, TimeoutError, ValueError) as error:
        print(f"{name}: {instance.instance_id}: {type(error).__name__}: {error}"[:300])
        diff = b""
    took = time.monotonic() - started
    grade = await grader.grade(instance, _base(instance), diff)
    print(f"{name}: {instance.instance_id}: {grade.name} after {took:.0f} s", flush=True)
    return Trial(name, instance.instance_id, grade.name, round(took, 1))


def _base(instance: Instance) -> BaseSpec:
    return BaseSpec(instance.repository, instance.base_commit, instance.requirements)


@asynccontextmanager
async def ours(bench: Bench) -> AsyncIterator[Work]:
    """Work as `turnout run` does."""
    agent = replace(bench.settings.agent, max_seconds=bench.wanted.seconds)
    async with open_service(replace(bench.settings, agent=agent), print) as service:

        async def diff(instance: Instance) -> bytes:
            task = Task(
                prompt=instance.problem_statement,
                repository=instance.repository,
                base=instance.base_commit,
                surface=bench.settings.surface,
                test_command=instance.test_command,
                requirements=instance.requirements,
            )
            async with aclosing(service.run(task)) as items:
                async for item in items:
                    if isinstance(item, RunResult):
                        return item.patch.diff
            return b""

        yield diff


async def by_guide(bench: Bench, endpoint: Endpoint, guide: Guide, instance: Instance) -> bytes:
    """Work in a guide's loop; what it made until its time was over counts."""
    ref = await bench.driver.prepare(_base(instance))
    sandbox = await bench.driver.create(new_run_id(), ref, bench.settings.limits)
    try:
        try:
            async with asyncio.timeout(bench.wanted.seconds):
                calls = await work(guide, endpoint, sandbox, instance.problem_statement)
            print(f"the loop ended after {calls} model calls")
        except (TimeoutError, aiohttp.ClientResponseError, KeyError, ValueError) as error:
            if isinstance(error, aiohttp.ClientResponseError) and error.status != TOO_LONG:
                raise  # no model was asked: that says nothing about the loop
            print(f"the loop was ended by {type(error).__name__} {error}"[:200])
        await sandbox.kill_all()
        return (await sandbox.diff()).diff
    finally:
        await sandbox.close()


async def by_mini(bench: Bench, endpoint: Endpoint, instance: Instance) -> bytes:
    """Let mini-swe-agent work on a copy of its own, in its own walls."""
    checkout = Path(tempfile.mkdtemp(dir=bench.folder))
    shutil.copytree(instance.repository, checkout, dirs_exist_ok=True)
    script = Path(__file__).parent / "baselines" / "mini.py"
    command = (str(PEERS / "bin" / "python"), str(script), str(checkout))
    process = await asyncio.create_subprocess_exec(
        *bound((*command, endpoint.base_url, endpoint.model, str(bench.wanted.seconds))),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        told, _ = await process.communicate(instance.problem_statement.encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    lines = told.splitlines()
    if not lines:
        return b""
    made = json.loads(lines[-1])
    print(f"the loop ended after {made['calls']} model calls: {made['ended']}")
    return base64.b64decode(made["diff"])


@asynccontextmanager
async def gateway(model: Path, folder: Path) -> AsyncIterator[Endpoint]:
    """Serve the model to the baselines, tools and all; one server for all of them."""
    async with LocalServer(model) as server:
        config = folder / "gateway.toml"
        config.write_text(CONFIG.format(url=server.base_url, model=server.model_name))
        port = free_port()
        command = (sys.executable, "-m", "turnout", "gateway", "--quiet", "--port", str(port))
        async with running((*command, "--config", str(config)), port):
            yield Endpoint(f"http://127.0.0.1:{port}/v1", server.model_name)


def mini_is_there(instances: Sequence[Instance]) -> bool:
    """Put mini-swe-agent and what the tasks need into an environment of their own."""
    needed = sorted({each for task in instances for each in task.requirements or ()})
    if not (PEERS / "bin" / "python").exists():
        subprocess.run((sys.executable, "-m", "venv", str(PEERS)), check=True)
    pip = (str(PEERS / "bin" / "python"), "-m", "pip", "install", "--quiet")
    return subprocess.run((*pip, MINI, "pytest", *needed), check=False).returncode == 0


@asynccontextmanager
async def arms(bench: Bench) -> AsyncIterator[Mapping[str, Work]]:
    """Get every arm ready that was asked for and can be had."""
    async with AsyncExitStack() as stack:
        ready: dict[str, Work] = {}
        if "ours" in bench.wanted.arms:
            ready["ours"] = await stack.enter_async_context(ours(bench))
        others = [name for name in bench.wanted.arms if name != "ours"]
        if others:
            endpoint = await stack.enter_async_context(gateway(bench.model, bench.folder))
            for name in others:
                if name in GUIDES:
                    ready[name] = partial(by_guide, bench, endpoint, GUIDES[name])
                elif mini_is_there(bench.instances):
                    ready[name] = partial(by_mini, bench, endpoint)
        yield ready


async def main() -> None:
    """Measure and report."""
    wanted = parse()
    settings = load_settings()
    installed = find_installed(models_folder(settings.home))
    facts = {"model": installed.path.stem if installed else None, "limit_s": wanted.seconds}
    facts["subset"] = wanted.tasks.name if wanted.tasks else "tiny"
    if installed is None:
        report("local_pass_rate", wanted.options, {"solved": None, "tasks": 0}, facts=facts)
        return
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="turnout-bench-")))
        driver = await stack.enter_async_context(open_sandboxes(settings))
        if wanted.tasks is None:
            found: tuple[Instance, ...] = (tiny_task(folder),)
        else:
            found = await load_tasks(wanted.tasks, wanted.repos, folder)
        chosen = [each for each in found if not wanted.only or each.instance_id in wanted.only]
        bench = Bench(
            wanted, settings, driver, folder, tuple(chosen[: wanted.limit]), installed.path
        )
        trials = Trials(wanted.trials)
        async with arms(bench) as ready:
            for instance in bench.instances:
                for name, work_on in ready.items():
                    if not trials.has(name, instance.instance_id):
                        trials.add(await tried(bench, name, work_on, instance))
        tasks = {each.instance_id for each in bench.instances}
        peers = {name: trials.of(name, tasks) if name in ready else None for name in ARMS[1:]}
        figures = trials.of("ours", tasks)
        report("local_pass_rate", wanted.options, figures, peers=peers, facts=facts)


if __name__ == "__main__":
    asyncio.run(main())
