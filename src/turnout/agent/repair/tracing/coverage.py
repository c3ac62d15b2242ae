"""Asking which lines the failing tests run, and the passing ones beside them."""

import json
import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from turnout.core.runs import TestReport
from turnout.sandbox.base import BASE_ENV, Command, Sandbox

__all__ = ["Coverage", "read_coverage", "trace"]

_FOLDER = f"{BASE_ENV['TMPDIR']}/turnout-trace"
_PLUGIN = "turnout_trace"
_MOST_FAILING = 20
_MOST_PASSING = 24
_MOST_BYTES = 4 << 20
_SECONDS = 20.0

_PUT = 'rm -rf -- "$1" && mkdir -m 700 -- "$1" && cat >"$1/$2.py"'
_CHOOSE = 'cat >"$1/chosen.json"'
_TAKE = 'cat -- "$1/trace.json"; rm -rf -- "$1"'


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much each line is suspected for the tests that run it; empty where none was traced."""

    lines: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    """By path and line: 1 where all failing tests run it and no passing one (Ochiai)."""

    def of(self, path: str, first: int, last: int) -> float:
        """Return the suspicion of the most suspected of some lines; 0 where no test fails there."""
        found = self.lines.get(path, {})
        return max((found.get(line, 0.0) for line in range(first, last + 1)), default=0.0)


_Count = Annotated[int, Field(ge=0, le=1_000_000)]


class _Told(BaseModel):
    """What the plugin writes: `[failed, passed]` of each line."""

    failed: _Count
    files: dict[str, dict[_Count, tuple[_Count, _Count]]]


async def trace(sandbox: Sandbox, command: str, before: TestReport, timeout: float) -> Coverage:
    """Run the failing tests, and passing ones of their files, under a tracer.

    Empty for tests that are not pytest's or did not end, and where nothing was told in time.
    """
    selected = _selected(before)
    if not selected or before.timed_out:
        return Coverage()
    source = files("turnout.agent.repair.tracing").joinpath("plugin.py").read_bytes()
    await sandbox.run(_shell(_PUT, stdin=source))
    await sandbox.run(_shell(_CHOOSE, stdin=json.dumps(selected).encode()))
    choice = "" if command.split()[:1] == ["make"] else f" {shlex.join(selected)}"
    await sandbox.run(
        Command(
            shell=f"{command.strip()}{choice}",
            env={
                "PYTEST_ADDOPTS": f"-p {_PLUGIN}",
                "PYTHONPATH": f"{BASE_ENV['PYTHONPATH']}:{_FOLDER}",
            },
            timeout=min(timeout, _SECONDS + 2 * before.seconds),
        )
    )
    told = await sandbox.run(_shell(_TAKE))
    return read_coverage(told.stdout)


def read_coverage(data: bytes) -> Coverage:
    """Return what the plugin told; empty where it is not what the plugin writes."""
    try:
        told = _Told.model_validate_json(data)
    except ValidationError:
        return Coverage()
    found: dict[str, dict[int, float]] = {}
    for path, lines in told.files.items():
        for line, (failed, passed) in lines.items():
            if failed and told.failed:
                weight = failed / math.sqrt(told.failed * (failed + passed))
                found.setdefault(path, {})[line] = min(weight, 1.0)
    return Coverage(found)


def _selected(before: TestReport) -> list[str]:
    failing = [node for node in before.failed if "::" in node][:_MOST_FAILING]
    paths = {node.partition("::")[0] for node in failing}
    classes = {node.rpartition("::")[0] for node in failing}
    beside = [node for node in before.passed if node.partition("::")[0] in paths]
    # Those of the same class are the most telling: they run the same code, and pass.
    beside.sort(key=lambda node: node.rpartition("::")[0] not in classes)
    return [*failing, *beside[:_MOST_PASSING]] if failing else []


def _shell(script: str, stdin: bytes | None = None) -> Command:
    argv = ("/bin/sh", "-c", script, "sh", _FOLDER, _PLUGIN)
    return Command(argv, stdin=stdin, timeout=30.0, head=_MOST_BYTES)
