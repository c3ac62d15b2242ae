"""Evaluation items, read from JSON lines in the field names of SWE-bench."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from turnout.errors import ConfigError

__all__ = ["Instance", "load_instances"]

_MAX_LINE = 16 << 20


@dataclass(frozen=True, slots=True)
class Instance:
    """One task with the tests that the agent does not see."""

    instance_id: str
    problem_statement: str
    repository: str
    """Absolute path or URL; empty where `files` holds the whole tree."""
    base_commit: str
    files: Mapping[str, str]
    """The tree at base, for an instance that brings its own."""
    hidden_tests: Mapping[str, str]
    """Test files written before grading."""
    test_patch: str
    """Unified diff of the hidden tests, applied before grading."""
    fail_to_pass: tuple[str, ...]
    """Node ids that must pass; empty: every test must, the hidden ones included."""
    pass_to_pass: tuple[str, ...]
    test_command: str | None
    requirements: tuple[str, ...] | None
    digest: str
    """Hash of the row: a result of another row is no result of this one."""


class _Row(BaseModel):
    """A row as it is written; unknown fields are left alone."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    instance_id: str = Field(min_length=1)
    problem_statement: str = Field(min_length=1)
    repo: str = ""
    base_commit: str = "HEAD"
    files: dict[str, str] = Field(default_factory=dict)
    hidden_tests: dict[str, str] = Field(default_factory=dict)
    test_patch: str = ""
    fail_to_pass: tuple[str, ...] = Field(default=(), alias="FAIL_TO_PASS")
    pass_to_pass: tuple[str, ...] = Field(default=(), alias="PASS_TO_PASS")
    test_command: str | None = None
    python_requirements: tuple[str, ...] | None = None

    @field_validator("fail_to_pass", "pass_to_pass", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        """Accept a list, and a list written as JSON in a string."""
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except ValueError:
            raise ValueError("neither a list nor a list written as JSON") from None


def load_instances(path: Path, *, repositories: Path | None = None) -> tuple[Instance, ...]:
    """Return the instances of a file, in order; `ConfigError` names the line that is wrong.

    A `repo` such as `owner/name` is looked up beneath `repositories`.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from None
    found: dict[str, Instance] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        instance = _instance(line, place, repositories)
        if instance.instance_id in found:
            raise ConfigError(
                f"{place}: the instance_id {instance.instance_id!r} was used before.",
                mend="Give every instance an id of its own.",
            )
        found[instance.instance_id] = instance
    if not found:
        raise ConfigError(f"{path} holds no instance.", mend="Write one JSON object a line.")
    return tuple(found.values())


def _instance(line: str, place: str, repositories: Path | None) -> Instance:
    if len(line) > _MAX_LINE:
        raise ConfigError(f"{place} is longer than 16 MiB.")
    try:
        row = _Row.model_validate_json(line)
    except ValidationError as error:
        raise ConfigError(f"{place}: {_first_fault(error)}.") from None
    _check_paths([*row.files, *row.hidden_tests], place)
    if not (row.hidden_tests or row.test_patch or row.fail_to_pass):
        raise ConfigError(
            f"{place}: nothing grades {row.instance_id!r}.",
            mend="Give `hidden_tests`, `test_patch` or `FAIL_TO_PASS`.",
        )
    return Instance(
        row.instance_id,
        row.problem_statement,
        "" if row.files else _repository(row.repo, place, repositories),
        row.base_commit,
        row.files,
        row.hidden_tests,
        row.test_patch,
        row.fail_to_pass,
        row.pass_to_pass,
        row.test_command,
        row.python_requirements,
        sha256(line.strip().encode()).hexdigest(),
    )


def _first_fault(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}" if where else first["msg"]


def _check_paths(paths: Sequence[str], place: str) -> None:
    for path in paths:
        parts = path.split("/")
        if not path or path.startswith("/") or ".." in parts or ".git" in parts or "\0" in path:
            raise ConfigError(
                f"{place}: {path!r} is no path in a repository.",
                mend="Write it relative to the repository, such as `tests/test_a.py`.",
            )


def _repository(repo: str, place: str, repositories: Path | None) -> str:
    if not repo:
        raise ConfigError(
            f"{place}: there is no repository.", mend="Give `repo`, or the whole tree in `files`."
        )
    if "://" in repo or repo.startswith("/"):
        return repo
    if repositories is not None:
        owner, _, name = repo.rpartition("/")
        for folder in (repositories / repo, repositories / f"{owner}__{name}", repositories / name):
            if folder.is_dir():
                return str(folder.absolute())
    raise ConfigError(
        f"{place}: no clone of {repo} was found.",
        mend=f"Clone it and name the folder that holds it: --repos DIR, with DIR/{repo} in it.",
    )
