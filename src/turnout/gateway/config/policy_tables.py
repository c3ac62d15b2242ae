"""The tables of a policy, as they are written."""

import re
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from turnout.core.govern.revisions import DEFAULT_POLICY
from turnout.core.inference import Objective, StepKind, TaskKind
from turnout.core.policies import ToolMode
from turnout.gateway.config.addresses import variable_of_key
from turnout.gateway.config.tables import Rate, Share, Table, Usd, shaped

__all__ = [
    "AliasTable",
    "EgressTable",
    "EvidenceTable",
    "PinnedTable",
    "PolicyTable",
    "PoolTable",
    "SecretTable",
    "SessionTable",
    "TaskTable",
    "ToolsTable",
]

_TOOL: Final = re.compile(r"(?!mcp:)[^*]+|mcp:[^/*]+/(?:\*|[^*]+)")
_LONGEST_LIST: Final = 1_000
_LONGEST_WORD: Final = 256


def _tool(entry: str) -> str:
    if not _TOOL.fullmatch(entry):
        raise ValueError(
            f"must be the exact name of a tool, `mcp:server/tool` or `mcp:server/*`, not {entry!r}"
        )
    return entry


def _model_name(name: str) -> str:
    if name == "auto":
        raise ValueError("must not be `auto`, which is asked for by that name anyway")
    return name


def _models_alone(value: object) -> object:
    return {"models": value} if isinstance(value, list | str) else value


def _model_alone(value: object) -> object:
    return {"model": value} if isinstance(value, str) else value


_Word = Annotated[str, Field(min_length=1, max_length=_LONGEST_WORD)]
_Words = Annotated[list[_Word], Field(max_length=_LONGEST_LIST)]
_PolicyName = Annotated[
    str,
    shaped(
        r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}",
        "at most 64 letters, digits, `.`, `_` and `-`, the first of them a letter or a digit",
    ),
]
_Variable = Annotated[
    str,
    shaped(r"[A-Za-z_][A-Za-z0-9_]{0,255}", "the name of a variable: letters, digits and `_`"),
]
_Secret = Annotated[_Variable, AfterValidator(variable_of_key)]
_Tool = Annotated[_Word, AfterValidator(_tool)]
_ToolList = Annotated[list[_Tool], Field(max_length=_LONGEST_LIST)]
_Count = Annotated[int, Field(ge=1, le=2**53)]
_AliasName = Annotated[_Word, AfterValidator(_model_name)]


class PoolTable(Table):
    """`pool`: models alone, or what they must have."""

    models: _Words = Field(default_factory=list)
    exclude: _Words = Field(default_factory=list)
    providers: _Words = Field(default_factory=list)
    regions: _Words = Field(default_factory=list)
    labels: _Words = Field(default_factory=list)
    min_context: _Count | None = None
    max_input_usd: Usd | None = None
    max_output_usd: Usd | None = None
    min_tool_success: Share | None = None


class EvidenceTable(Table):
    """`evidence`."""

    min_tool_success: Share = 0.0
    min_samples: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    max_age_days: Rate | None = None


class ToolsTable(Table):
    """`tools`."""

    mode: ToolMode = "dry_run"
    allow: _ToolList = Field(default_factory=list)
    read_only: _ToolList = Field(default_factory=list)
    by_kind: dict[StepKind, _ToolList] = Field(default_factory=dict)


class SessionTable(Table):
    """`session`."""

    max_requests: _Count | None = None
    max_spend_usd: Usd | None = None


class TaskTable(Table):
    """`tasks.KIND`."""

    model: _Word


class PinnedTable(Table):
    """`pinned`."""

    fallback: Literal["same_model", "model", "auto", "none"] = "same_model"
    model: _Word | None = None


class SecretTable(Table):
    """`egress.secrets.VARIABLE`."""

    host: _Word
    env: _Secret | None = None


class EgressTable(Table):
    """`egress`."""

    allow: _Words = Field(default_factory=list)
    private: _Words = Field(default_factory=list)
    packages: bool = False
    secrets: dict[_Variable, SecretTable] = Field(default_factory=dict)


class AliasTable(Table):
    """`aliases.NAME`: a model alone, or with what it is routed for."""

    model: _Word = "auto"
    optimize: Objective | None = None
    task: TaskKind | None = None


_AliasEntry = Annotated[AliasTable, BeforeValidator(_model_alone)]


class PolicyTable(Table):
    """`[policy]` or `[policies.NAME]`."""

    name: _PolicyName = DEFAULT_POLICY
    objective: Objective = "balanced"
    pool: Annotated[PoolTable, BeforeValidator(_models_alone)] = Field(default_factory=PoolTable)
    allow_unpriced: bool = False
    min_tool_success: Share | None = None
    min_quality: Share = 0.0
    evidence: EvidenceTable = Field(default_factory=EvidenceTable)
    tools: ToolsTable | None = None
    session: SessionTable = Field(default_factory=SessionTable)
    tasks: dict[TaskKind, TaskTable] = Field(default_factory=dict)
    pinned: PinnedTable = Field(default_factory=PinnedTable)
    egress: EgressTable = Field(default_factory=EgressTable)
    aliases: Annotated[dict[_AliasName, _AliasEntry], Field(max_length=_LONGEST_LIST)] = Field(
        default_factory=dict
    )
    caching: bool = True
    provider_keys: dict[_Word, _Secret] = Field(default_factory=dict)
    reroute_refusals: bool = False
    keep_replies_hours: Annotated[float, Field(ge=0, le=8_784)] = 24.0
