"""Instances that cannot be begun, told before the first trial."""

import json
from pathlib import Path

import pytest

from turnout.errors import ConfigError
from turnout.evals.instances.load import load_instances
from turnout.evals.instances.model import Instance
from turnout.evals.instances.sources import check_sources
from turnout.testing.repositories import TinyRepository


async def loaded(folder: Path, *rows: dict[str, str]) -> tuple[Instance, ...]:
    """Read rows that are graded by some test."""
    path = folder / "tasks.jsonl"
    usual = {"task": "It fails.", "hidden_tests": "x = 1\n"}
    path.write_text("".join(f"{json.dumps({**usual, **row})}\n" for row in rows))
    return await load_instances(path)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"repo": "/nowhere/gone"}, "line 2: repo: /nowhere/gone does not exist"),
        ({"base": "nosuchref"}, "line 2: base_commit: "),
        ({"base": "--output=pwned"}, "line 2: base_commit: "),
        ({"repo": "ext://sh -c id"}, "line 2: repo: `ext://sh -c id` would use a transport"),
        ({"repo": "https://me:secret@host.example/n.git"}, "line 2: repo: its address holds"),
    ],
)
async def test_a_row_whose_base_is_not_there_is_named_before_anything_runs(
    tmp_path: Path, more: dict[str, str], says: str
) -> None:
    """By line and field: a trial of it could only fail, however often it is tried."""
    good = {"repo": str(TinyRepository(tmp_path / "n", {"a.py": "x\n"}))}
    instances = await loaded(tmp_path, good, {**good, **more})
    with pytest.raises(ConfigError) as caught:
        await check_sources(instances)
    assert says in caught.value.message
    assert "secret" not in caught.value.message
    assert not (tmp_path / "pwned").exists()


async def test_the_same_clone_is_told_once(tmp_path: Path) -> None:
    """Forty rows of it are one mistake."""
    rows = [{"repo": "/nowhere/gone"}] * 4 + [{"repo": f"/nowhere/{n}"} for n in range(4)]
    with pytest.raises(ConfigError) as caught:
        await check_sources(await loaded(tmp_path, *rows))
    assert caught.value.message.count("/nowhere/gone does not exist") == 1
    assert "And 2 more." in caught.value.message
    assert "--repos DIR" in caught.value.mend


async def test_what_can_be_begun_is_let_through(tmp_path: Path) -> None:
    """A tree of its own, a clone that holds the base, a URL that is not asked."""
    good = {"repo": str(TinyRepository(tmp_path / "n", {"a.py": "x\n"})), "base": "HEAD"}
    remote = {"repo": "https://host.example/n.git", "base": "v1"}
    await check_sources(await loaded(tmp_path, good, remote))
