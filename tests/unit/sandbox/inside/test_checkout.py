import json
import subprocess
import sys
from importlib.resources import files

import pytest

from turnout.testing.repositories import TinyRepository

LIMITS = {"MOST_FILES = 400_000": "MOST_FILES = 2", "MOST_BYTES = 4 << 30": "MOST_BYTES = 20"}


def check_out(repository: TinyRepository, tree: str, replaced: str = "") -> dict[str, object]:
    """Run the program of a set-up sandbox, with one of its limits lowered."""
    source = files("turnout.sandbox.inside").joinpath("checkout.py").read_text("utf-8")
    if replaced:
        assert replaced in source
        source = source.replace(replaced, LIMITS[replaced])
    git_dir = f"{repository}/.git"
    argv = [sys.executable, "-ISE", "-c", source, git_dir, tree, repository.head]
    return json.loads(subprocess.run(argv, capture_output=True, check=True).stdout)


@pytest.mark.parametrize("limit", LIMITS)
def test_a_commit_that_is_too_large_is_told_before_it_is_written(tmp_path, limit):
    """Neither many files nor many bytes fill the disk of the host."""
    content = {"a": "x" * 10, "b": "y" * 10, "c": "z" * 10}
    repository = TinyRepository(tmp_path / "source", content)
    (tmp_path / "tree").mkdir()
    assert check_out(repository, f"{tmp_path}/tree", limit) == {"too_large": True}
    assert list((tmp_path / "tree").iterdir()) == []


def test_only_files_that_declare_dependencies_are_told(tmp_path):
    """Names decide; links, and files elsewhere in the tree, are passed over."""
    names = ["pyproject.toml", "requirements.txt", "requirements-dev.txt", "requirements/test.txt"]
    names += ["setup.py", "setup.cfg", "Pipfile", "uv.lock", "pylock.dev.toml", "package.json"]
    others = ["docs/requirements.txt", "src/setup.py", "uv.lock.txt", "pylock.a.b.toml"]
    repository = TinyRepository(tmp_path / "source", dict.fromkeys(names + others, "x"))
    (repository.path / "test-requirements.txt").symlink_to("/etc/passwd")
    repository.commit("link")
    (tmp_path / "tree").mkdir()
    told = check_out(repository, f"{tmp_path}/tree")
    assert told["texts"] == dict.fromkeys(names, "x")


def test_files_of_npm_are_told_by_what_they_hold(tmp_path):
    """The names of the contents are enough to know when modules are others; vendored ones pass."""
    names = ["package.json", "package-lock.json", "packages/a/package.json"]
    content = dict.fromkeys([*names, "node_modules/x/package.json", "a/b.json"], "{}")
    repository = TinyRepository(tmp_path / "source", content)
    (tmp_path / "tree").mkdir()
    told = check_out(repository, f"{tmp_path}/tree")
    assert told["nodes"] == dict.fromkeys(names, repository.git("rev-parse", "HEAD:a/b.json"))


def test_compiled_sources_are_told_by_one_name_for_all(tmp_path):
    """Another content is another name; a project without any has none."""
    told = []
    for number, content in enumerate([{"a.py": ""}, {"a.pyx": "1"}, {"a.pyx": "2"}]):
        repository = TinyRepository(tmp_path / f"source{number}", content)
        (tmp_path / f"tree{number}").mkdir()
        told.append(check_out(repository, f"{tmp_path}/tree{number}")["native"])
    assert told[0] == ""
    assert len(set(told)) == 3


def test_the_index_is_right_without_a_look_into_any_file(tmp_path):
    """Times are those of the commit, so that `git status` is quick from the first time on."""
    repository = TinyRepository(tmp_path / "source", {"a": "1", "b/c": "2"})
    (tmp_path / "tree").mkdir()
    check_out(repository, f"{tmp_path}/tree")
    tree = TinyRepository(tmp_path / "tree")
    assert tree.git("diff-files", "--name-only") == ""
    assert (tree.path / "a").stat().st_mtime == 1704067200
