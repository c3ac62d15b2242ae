"""Tasks for benches: repositories made from rows that hold a tree, or name commits of a clone."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from turnout.evals.instances.load import load_instances
from turnout.evals.instances.model import Instance
from turnout.testing.repositories import buggy_pagination

__all__ = ["load_tasks", "tiny_task"]

_HIDDEN = """\
from pages import page


def test_the_last_page_is_the_rest():
    assert page([1, 2, 3], 2, 2) == [3]
"""

_GIT = ("git", "-c", "user.name=base", "-c", "user.email=base@localhost", "-c", "gc.auto=0")


async def load_tasks(path: Path, repos: Path | None, folder: Path) -> tuple[Instance, ...]:
    """Return the tasks of a file, each with a repository of one commit beneath `folder`.

    A row with `fix_commit` becomes the tree at `base_commit` with the test files of the fix: the
    tests fail as they did before it. Rows whose clone is not beneath `repos` are left out.
    """
    rows = _rows(path)
    if not any("fix_commit" in row for row in rows):
        return tuple(_with_repository(each, folder) for each in await load_instances(path))
    clones = [(row, _clone(row["repo"], repos)) for row in rows]
    return tuple(_mined(row, clone, folder) for row, clone in clones if clone is not None)


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def tiny_task(folder: Path) -> Instance:
    """Return a task of a few lines that needs no file."""
    repository = buggy_pagination(folder / "tiny")
    return Instance(
        "tiny",
        "The first page is skipped: pages count from 1.",
        str(repository.path),
        _git("-C", str(repository.path), "rev-parse", "HEAD").decode().strip(),
        {},
        {"tests/test_hidden.py": _HIDDEN},
        "",
        (),
        (),
        None,
        (),
        "tiny",
    )


def _with_repository(instance: Instance, folder: Path) -> Instance:
    root = folder / instance.instance_id
    commit = _committed(root, {name: text.encode() for name, text in instance.files.items()})
    return replace(instance, repository=str(root), base_commit=commit, files={})


def _mined(row: Mapping[str, Any], clone: Path, folder: Path) -> Instance:
    tests = {path: _blob(clone, row["fix_commit"], path) for path in row["test_files"]}
    present = {path: data for path, data in tests.items() if data is not None}
    root = folder / row["instance_id"]
    root.mkdir(parents=True)
    archive = _git("--git-dir", str(clone), "archive", row["base_commit"])
    subprocess.run(("tar", "-x", "-C", str(root)), input=archive, check=True)
    extra = {name: text.encode() for name, text in (row["extra_files"] or {}).items()}
    commit = _committed(root, {**extra, **present})
    arguments = [each for each in row["test_args"] if (root / each).exists()]
    return Instance(
        row["instance_id"],
        row["title"],
        str(root),
        commit,
        {},
        {path: data.decode() for path, data in present.items()},
        "",
        tuple(row["FAIL_TO_PASS"]),
        (),
        " ".join(["python -m pytest -q -o addopts=", *arguments, *_options(row["test_opts"])]),
        tuple(row["python_requirements"]),
        sha256(json.dumps(row, sort_keys=True).encode()).hexdigest(),
    )


def _options(given: Sequence[str]) -> list[str]:
    """Return the options of a test command but for `-p`: what is installed loads by itself here."""
    pairs = zip(("", *given), given, strict=False)
    return [option for before, option in pairs if "-p" not in (before, option)]


def _committed(root: Path, files: Mapping[str, bytes]) -> str:
    """Write files into a new repository, commit all that is there, and return the commit."""
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    at = ("-C", str(root))
    _git(*at, "init", "--quiet", "--initial-branch=main")
    _git(*at, "add", "--all", "--force")
    _git(*at, "commit", "--quiet", "--message=base")
    return _git(*at, "rev-parse", "HEAD").decode().strip()


def _clone(repo: str, repos: Path | None) -> Path | None:
    names = (repo, repo.replace("/", "__"), repo.rpartition("/")[2])
    for folder in (repos / name for name in names) if repos is not None else ():
        if folder.is_dir():
            return folder / ".git" if (folder / ".git").exists() else folder
    return None


def _blob(clone: Path, commit: str, path: str) -> bytes | None:
    command = (*_GIT, "--git-dir", str(clone), "show", f"{commit}:{path}")
    found = subprocess.run(command, capture_output=True, check=False)
    return found.stdout if found.returncode == 0 else None


def _git(*arguments: str) -> bytes:
    command: Sequence[str] = (*_GIT, *arguments)
    return subprocess.run(command, capture_output=True, check=True).stdout
