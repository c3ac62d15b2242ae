"""A row as it is written: ours, SWE-bench's, the first guide's, or facts of a mined fix."""

import json
from typing import Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, field_validator, model_validator

from turnout.evals.instances.model import Spec

__all__ = ["Row"]

_FILES = ("files", "extra_files", "hidden_tests")
_LISTS = ("fail_to_pass", "pass_to_pass")


class Row(BaseModel):
    """Every field that is read; others are left alone."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    instance_id: str = Field(default="", min_length=1, max_length=200)
    """Empty where the row names none."""
    problem_statement: str = Field(
        default="", validation_alias=AliasChoices("problem_statement", "task")
    )
    repo: str = ""
    clone: str = ""
    """Absolute path of a clone on the machine where the row was made."""
    base_commit: str = Field(
        default="HEAD", min_length=1, validation_alias=AliasChoices("base_commit", "base")
    )
    fix_commit: str = ""
    files: dict[str, str] = Field(default_factory=dict)
    hidden_tests: dict[str, str | None] | str = Field(default_factory=dict)
    """By path; or the path of one file of tests, beside the file of tasks or in the clone."""
    test_patch: str = ""
    patch: str = ""
    fail_to_pass: tuple[str, ...] = Field(default=(), alias="FAIL_TO_PASS")
    pass_to_pass: tuple[str, ...] = Field(default=(), alias="PASS_TO_PASS")
    pass_to_pass_count: int | None = Field(default=None, ge=0)
    test_command: str | None = Field(default=None, min_length=1)
    python_requirements: tuple[str, ...] | None = None
    setup: str | None = Field(default=None, min_length=1)
    extra_files: dict[str, str] = Field(default_factory=dict)
    title: str = ""
    hints_text: str = ""
    kind: str = ""
    difficulty: str = ""
    licence: str = ""
    source: str = ""
    spec: Spec = "self-contained"
    src_files: tuple[str, ...] = ()
    test_files: tuple[str, ...] = ()
    test_args: tuple[str, ...] = ()
    test_opts: tuple[str, ...] = ()

    @property
    def facts_only(self) -> bool:
        """Whether patch and tests are to be taken from the fix in a clone."""
        return bool(self.fix_commit and self.test_files) and not (
            self.hidden_tests or self.test_patch
        )

    @field_validator(*_LISTS, mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        """Accept a list, and a list written as JSON in a string."""
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            raise ValueError("neither a list nor a list written as JSON") from None

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        """Take null, or an empty list of files, for a field that is not there."""
        if not isinstance(value, dict):
            return value
        empty = {name for name in _FILES if value.get(name) == []}
        return {k: each for k, each in value.items() if each is not None and k not in empty}
