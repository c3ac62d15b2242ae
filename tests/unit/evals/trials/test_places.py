"""Commits that instances are worked on at."""

import subprocess
from dataclasses import replace

import pytest
from tests.unit.evals.trials.parts import INSTANCE

from turnout.errors import RepositoryError, UsageError
from turnout.evals.trials.places import Place, Places, check_mode
from turnout.testing.repositories import TinyRepository

PATCH = "diff --git a/t2.py b/t2.py\n--- a/t2.py\n+++ b/t2.py\n@@ -1 +1 @@\n-old\n+patched\n"


def git(place, *arguments):
    """Return what git says of a place."""
    command = ["git", "--git-dir", place.repository, *arguments]
    return subprocess.run(command, check=True, capture_output=True, timeout=30, text=True).stdout


def files(place):
    """Return the files of a commit."""
    names = git(place, "ls-tree", "-r", "--name-only", place.base).split()
    return {name: git(place, "show", f"{place.base}:{name}") for name in names}


async def test_an_instance_that_brings_its_tree_becomes_a_commit(tmp_path):
    """The same one every time; a test that grades is in it only where the agent is to see it."""
    first = await Places(tmp_path / "a").of(INSTANCE, "hidden")
    again = await Places(tmp_path / "b").of(INSTANCE, "hidden")
    seen = await Places(tmp_path / "a").of(INSTANCE, "visible")
    assert first.base == again.base
    assert files(first) == {"a/b.py": "x\n"}
    assert files(seen) == {"a/b.py": "x\n", "t.py": "new\n"}


async def test_the_tests_that_are_seen_lie_on_the_commit_of_the_repository(tmp_path):
    """Added, changed, patched and removed, whatever the repository configures."""
    tree = {"a.py": "x\n", "t.py": "old\n", "t2.py": "old\n", "gone.py": "old\n"}
    repository = TinyRepository(tmp_path / "clone", tree)
    hook = tmp_path / "clone/.git/hooks/reference-transaction"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    instance = replace(
        INSTANCE,
        repository=str(repository),
        files={},
        hidden_tests={"t.py": "new\n", "gone.py": None, "deep/t3.py": "é\n"},
        test_patch=PATCH,
        extra_files={"version.py": "1\n"},
    )
    places = Places(tmp_path / "state")
    hidden, seen = [await places.of(instance, mode) for mode in ("hidden", "visible")]
    assert files(hidden) == {**tree, "version.py": "1\n"}
    assert files(seen) == {
        "a.py": "x\n",
        "t.py": "new\n",
        "t2.py": "patched\n",
        "deep/t3.py": "é\n",
        "version.py": "1\n",
    }
    base = git(seen, "rev-parse", f"{seen.base}^").strip()
    assert git(seen, "rev-list", "--count", seen.base).strip() == "2"
    assert git(Place(str(tmp_path / "clone/.git"), ""), "rev-parse", "HEAD").strip() == base
    assert not (tmp_path / "ran").exists()


async def test_a_repository_without_anything_to_add_is_used_as_it_is(tmp_path):
    """Nothing is made."""
    clone = str(TinyRepository(tmp_path / "clone", {"a.py": "x\n"}))
    instance = replace(INSTANCE, repository=clone, base_commit="HEAD", files={})
    state = tmp_path / "state"
    assert await Places(state).of(instance, "hidden") == Place(clone, "HEAD")
    url = replace(instance, repository="https://host.example/x.git", digest="url")
    assert await Places(state).of(url, "hidden") == Place(url.repository, "HEAD")
    assert not state.exists()


async def test_a_base_that_is_gone_is_found_before_a_run_is_ordered(tmp_path):
    """A run of it could only fail, and would be ordered again."""
    clone = str(TinyRepository(tmp_path / "clone", {"a.py": "x\n"}))
    for fields in ({"base_commit": "f" * 40}, {"repository": str(tmp_path / "gone")}):
        instance = replace(INSTANCE, **{"repository": clone, "files": {}, **fields})
        with pytest.raises(RepositoryError, match=r"has no commit|does not exist"):
            await Places(tmp_path / "state").of(instance, "hidden")


async def test_a_password_in_an_address_goes_on_no_record(tmp_path):
    """The refusal does not hold it either."""
    instance = replace(INSTANCE, repository="https://u:secret@host.example/x.git", files={})
    with pytest.raises(RepositoryError) as caught:
        await Places(tmp_path).of(instance, "hidden")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("bad", [{"test_patch": PATCH}, {"hidden_tests": {"a/../../x": "1"}}])
async def test_tests_that_cannot_be_put_in_place_are_named_as_the_reason(tmp_path, bad):
    """Nothing is written outside."""
    instance = replace(INSTANCE, **bad)
    with pytest.raises(RepositoryError, match=r"git (apply|update-index) failed"):
        await Places(tmp_path / "state").of(instance, "visible")


def test_what_needs_its_tests_is_refused_without_them():
    """Nobody could solve it."""
    needy = replace(INSTANCE, spec="needs-tests")
    check_mode(needy, "visible")
    with pytest.raises(UsageError, match="without seeing its tests"):
        check_mode(needy, "hidden")
