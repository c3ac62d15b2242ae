"""Evaluation items, read from a file in the field names of SWE-bench and in ours."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Final

from pydantic import ValidationError

from turnout.errors import ConfigError, RepositoryError, ToolError
from turnout.evals.instances.clone import Clone, find_clone
from turnout.evals.instances.entries import Entry, entries
from turnout.evals.instances.mined import derive
from turnout.evals.instances.model import Instance
from turnout.evals.instances.rows import Row
from turnout.sandbox.patches import check_patch, names_git, parse_patch

__all__ = ["load_instances"]

_MOST_TESTS: Final = 4 << 20
_MOST_PATH: Final = 4_096
_MOST_NAME: Final = 255
"""Bytes of a path, and of a name in it, that file systems take."""
_DROPPED: Final = ".dropped.jsonl"
_SURROGATE = re.compile("[\ud800-\udfff]")
_SECTION = re.compile(r"^(?=diff --git )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Where:
    """What the paths of a row are relative to."""

    folder: Path
    """That of the file of tasks."""
    repositories: Path | None
    place: str


@dataclass(frozen=True, slots=True)
class _Judging:
    """What grades a row."""

    tests: dict[str, str | None]
    patch: str


async def load_instances(path: Path, *, repositories: Path | None = None) -> tuple[Instance, ...]:
    """Return the instances of a file, in order; `ConfigError` names line and field that are wrong.

    The file holds one JSON object a line, or one JSON list. A `repo` such as `owner/name` is looked
    up beneath `repositories`. A row that names a fix and holds no tests has them read from there.
    """
    found: dict[str, Instance] = {}
    for number, entry in enumerate(entries(path), start=1):
        where = _Where(path.parent, repositories, entry.place)
        instance = await _instance(entry, _row(entry, number), where)
        if instance.instance_id in found:
            raise ConfigError(
                f"{entry.place}: the instance_id {instance.instance_id!r} was used before.",
                mend="Give every instance an id of its own.",
            )
        found[instance.instance_id] = instance
    if not found:
        raise ConfigError(f"{path} holds no instance.", mend=_mend_of_empty(path))
    return tuple(found.values())


def _mend_of_empty(path: Path) -> str:
    """Return what to do about a file without a row, by what the file is."""
    if path.name.endswith(_DROPPED):
        tasks = f"{path.name.removesuffix(_DROPPED)}.jsonl"
        return f"It says which commits mining has left out; what it has kept is in {tasks}."
    return "Write one JSON object a line."


def _row(entry: Entry, number: int) -> Row:
    try:
        row = Row.model_validate_json(entry.text)
    except ValidationError as error:
        raise ConfigError(f"{entry.place}: {_first_fault(error)}.") from None
    if not row.instance_id:
        row.instance_id = f"task-{number}"
    if not (row.problem_statement or row.title).strip():
        raise ConfigError(
            f"{entry.place}: problem_statement: there is no task.",
            mend=_mend_of_another(entry) or "Say what is wrong in `problem_statement`, or `task`.",
        )
    _check_words(row, entry.place)
    _check_paths("files", tuple(row.files), entry.place)
    _check_paths("extra_files", tuple(row.extra_files), entry.place)
    _check_paths("test_files", row.test_files, entry.place)
    for name in ("patch", "test_patch"):
        _check_patch(name, getattr(row, name), entry.place)
    return row


async def _instance(entry: Entry, row: Row, where: _Where) -> Instance:
    repository = "" if row.files else _repository(row, where)
    judging = _judging(row, where)
    statement, command = row.problem_statement or row.title, row.test_command
    base, patch = row.base_commit, row.patch
    if row.facts_only and repository:
        clone = await _opened(repository, where)
        derived = await derive(row, clone, where.place)
        statement, command = derived.statement, derived.command
        base, patch = derived.base_commit, derived.patch
        judging = _Judging(dict(derived.tests.texts), derived.tests.patch)
    if not (judging.tests or judging.patch or row.fail_to_pass):
        raise ConfigError(
            f"{where.place}: nothing grades {row.instance_id!r}.",
            mend="Give `hidden_tests`, `test_patch` or `FAIL_TO_PASS`.",
        )
    return Instance(
        instance_id=row.instance_id,
        problem_statement=statement,
        repository=repository,
        base_commit=base,
        files=row.files,
        hidden_tests=judging.tests,
        test_patch=judging.patch,
        fail_to_pass=row.fail_to_pass,
        pass_to_pass=row.pass_to_pass,
        test_command=command,
        requirements=row.python_requirements,
        digest=_digest(entry, row, judging),
        repo=row.repo,
        title=row.title,
        hints=row.hints_text,
        patch=patch,
        kind=row.kind,
        difficulty=row.difficulty,
        licence=row.licence,
        source=row.source,
        spec=row.spec,
        setup=row.setup,
        extra_files=row.extra_files,
        bare=row.facts_only and not row.pass_to_pass,
        counted=row.pass_to_pass_count,
        place=where.place,
    )


async def _opened(repository: str, where: _Where) -> Clone:
    try:
        return await Clone.open(repository)
    except RepositoryError as error:
        raise ConfigError(
            f"{where.place}: repo: {error.message}", mend=f"{error.mend} See --repos DIR."
        ) from None


def _judging(row: Row, where: _Where) -> _Judging:
    """Return the hidden tests, each by one way only: as its text, else by the patch."""
    tests = row.hidden_tests
    if isinstance(tests, str):
        tests = _tests_beside(tests, where)
    _check_paths("hidden_tests", tuple(tests), where.place)
    return _Judging(tests, _without(row.test_patch, frozenset(tests)))


def _tests_beside(name: str, where: _Where) -> dict[str, str | None]:
    """Read the file of tests that a row names, relative to the file of tasks."""
    if "\n" in name:
        return {"tests/test_hidden.py": name}
    path = where.folder / name
    try:
        # A file of tasks may come from anywhere: it reads nothing but what is beside it.
        if not path.resolve().is_relative_to(where.folder.resolve()):
            raise ValueError("it is not beneath the folder of the file of tasks")
        if not path.is_file():
            raise ValueError(f"there is no such file in {where.folder.absolute()}")
        if path.stat().st_size > _MOST_TESTS:
            raise ValueError("it is longer than 4 MiB")
        text = path.read_text("utf-8")
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ConfigError(
            f"{where.place}: hidden_tests: {name[:200]!r} cannot be read: {said}.",
            mend="Name a file beside the file of tasks, or write path and text as an object.",
        ) from None
    pure = PurePosixPath(name)
    inside = not pure.is_absolute() and ".." not in pure.parts
    return {str(pure) if inside else f"tests/{pure.name}": text}


def _without(patch: str, paths: frozenset[str]) -> str:
    """Return a patch without what it does to some paths."""
    if not patch or not paths:
        return patch
    kept = []
    for section in _SECTION.split(patch):
        changed = {each.path.decode(errors="replace") for each in parse_patch(section.encode())}
        if not changed <= paths:
            kept.append(section)
    return "".join(kept)


def _digest(entry: Entry, row: Row, judging: _Judging) -> str:
    """Hash what was written, and what it names outside of itself."""
    outside = repr(sorted(judging.tests.items())) if isinstance(row.hidden_tests, str) else ""
    return sha256((entry.text + outside).encode(errors="surrogatepass")).hexdigest()


def _first_fault(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    # Which of two shapes was tried is pydantic's business.
    where = ".".join(str(part) for part in first["loc"] if "[" not in str(part))
    said = first["msg"].removeprefix("Value error, ")
    return f"{where}: {said}" if where else said


def _mend_of_another(entry: Entry) -> str:
    """Return what to do about a row that we have written for another purpose; empty for others."""
    value = json.loads(entry.text)
    if "instance_digest" in value and "grade" in value:
        return "These are results: turnout eval report says what they show."
    if "commit" in value and "reason" in value:
        return "These are commits that mining has left out; what it has kept is in the other file."
    return ""


def _check_words(row: Row, place: str) -> None:
    """Refuse what no database, file or program can be told."""
    name = row.instance_id
    if not name.isprintable() or name != name.strip():
        raise ConfigError(
            f"{place}: instance_id: {name[:100]!r} is no name.",
            mend="Use letters that can be seen, in one line.",
        )
    words: dict[str, Sequence[str]] = {
        "problem_statement": (row.problem_statement, row.title),
        "test_command": (row.test_command or "",),
        "setup": (row.setup or "",),
        "python_requirements": row.python_requirements or (),
        "FAIL_TO_PASS": row.fail_to_pass,
        "PASS_TO_PASS": row.pass_to_pass,
    }
    for field, texts in words.items():
        odd = next((text for text in texts if "\0" in text or _SURROGATE.search(text)), None)
        if odd is not None:
            raise ConfigError(f"{place}: {field}: {odd[:100]!r} holds what is no text.")
    for field in ("FAIL_TO_PASS", "PASS_TO_PASS"):
        # The name of a test that looks like an option would be one.
        wrong = next((each for each in words[field] if not each or each.startswith("-")), None)
        if wrong is not None:
            raise ConfigError(f"{place}: {field}: {wrong[:100]!r} is no name of a test.")


def _is_odd(path: str) -> bool:
    """Whether a path names nothing that a repository could hold."""
    parts = path.split("/")
    long = len(path.encode(errors="surrogatepass")) > _MOST_PATH
    long = long or any(len(part.encode(errors="surrogatepass")) > _MOST_NAME for part in parts)
    hidden = any(ord(letter) < ord(" ") for letter in path) or bool(_SURROGATE.search(path))
    return long or hidden or not {"", ".", ".."}.isdisjoint(parts)


def _check_paths(name: str, paths: Sequence[str], place: str) -> None:
    folders = {str(each): path for path in paths for each in PurePosixPath(path).parents}
    for path in paths:
        if path in folders:
            raise ConfigError(
                f"{place}: {name}: {path!r} is a file and the folder of {folders[path]!r}.",
                mend="Leave one of them out.",
            )
        if _is_odd(path) or names_git(path.encode(errors="surrogatepass")):
            raise ConfigError(
                f"{place}: {name}: {path!r} is no path in a repository.",
                mend="Write it relative to the repository, such as `tests/test_a.py`.",
            )


def _check_patch(name: str, patch: str, place: str) -> None:
    if not patch.strip():
        return
    try:
        check_patch(patch.encode(errors="surrogatepass"))
    except ToolError as error:
        raise ConfigError(f"{place}: {name}: {error.message}", mend=error.mend) from None


def _repository(row: Row, where: _Where) -> str:
    """Return where the repository of a row is: what --repos holds comes first."""
    if not row.repo and not row.clone:
        raise ConfigError(
            f"{where.place}: repo: there is no repository.",
            mend="Give `repo`, or the whole tree in `files`.",
        )
    beneath = find_clone(row.repo, where.repositories)
    if beneath is not None:
        return str(beneath)
    if "://" in row.repo or row.repo.startswith("/"):
        return row.repo
    named = [Path(row.clone)] if row.clone.startswith("/") else []
    named += [where.folder / row.repo] if row.repo else []
    for folder in named:
        if folder.is_dir():
            return str(folder.absolute())
    raise ConfigError(
        f"{where.place}: repo: no clone of {row.repo} was found.",
        mend=f"Clone it and name the folder that holds it: --repos DIR, with DIR/{row.repo} in it.",
    )
