"""The table `[policy]`: which models, which tools, how much."""

from typing import Annotated, Literal

from pydantic import Field

from turnout.core.ids import ModelId
from turnout.core.inference import Objective, TaskKind
from turnout.core.json import JsonObject
from turnout.core.money import usd_to_micros
from turnout.core.policies import (
    EgressPolicy,
    PinnedFallback,
    Policy,
    PoolRule,
    SecretBinding,
    SessionCaps,
    TaskRule,
    ToolMode,
    ToolRule,
)
from turnout.errors import ConfigError
from turnout.gateway.catalog import Catalog
from turnout.gateway.config.tables import Share, Table, Usd, close_match, read_table

__all__ = ["check_models", "parse_policy"]

_Name = Annotated[str, Field(min_length=1)]
_Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class _Tools(Table):
    mode: ToolMode = "dry_run"
    allow: list[_Name] = Field(default_factory=list)


class _Session(Table):
    max_requests: Annotated[int, Field(ge=1)] | None = None
    max_spend_usd: Usd | None = None


class _Task(Table):
    model: _Name


class _Pinned(Table):
    fallback: Literal["same_model", "model", "auto", "none"] = "same_model"
    model: _Name | None = None


class _Secret(Table):
    host: _Name
    env: _Variable | None = None


class _Egress(Table):
    allow: list[_Name] = Field(default_factory=list)
    private: list[_Name] = Field(default_factory=list)
    packages: bool = False
    secrets: dict[_Variable, _Secret] = Field(default_factory=dict)

    def policy(self) -> EgressPolicy:
        return EgressPolicy(
            allow=tuple(self.allow),
            private=tuple(self.private),
            packages=self.packages,
            secrets=tuple(
                SecretBinding(variable, secret.host, secret.env or variable)
                for variable, secret in self.secrets.items()
            ),
        )


class _Policy(Table):
    name: _Name = "default"
    objective: Objective = "balanced"
    pool: list[_Name] = Field(default_factory=list)
    allow_unpriced: bool = False
    min_tool_success: Share = 0.0
    min_quality: Share = 0.0
    tools: _Tools | None = None
    session: _Session = _Session()
    tasks: dict[TaskKind, _Task] = Field(default_factory=dict)
    pinned: _Pinned = _Pinned()
    egress: _Egress = Field(default_factory=_Egress)


def parse_policy(table: JsonObject) -> Policy:
    """Return the policy that the table `[policy]` describes; `ConfigError` names a wrong key.

    A tool list without a mode is a dry run; without `[policy.tools]` any tool may be declared.
    """
    read = read_table(_Policy, table, "policy")
    pinned = read.pinned
    if (pinned.fallback == "model") != (pinned.model is not None):
        raise ConfigError(
            '`policy.pinned.model` goes with `fallback = "model"`, and only with that.',
            mend="Set both, or neither.",
        )
    spend = read.session.max_spend_usd
    return Policy(
        name=read.name,
        pool=PoolRule(tuple(map(ModelId, read.pool))),
        objective=read.objective,
        tools=ToolRule(read.tools.mode, tuple(read.tools.allow)) if read.tools else ToolRule(),
        session=SessionCaps(
            max_requests=read.session.max_requests,
            max_spend=None if spend is None else usd_to_micros(spend),
        ),
        task_rules=tuple(TaskRule(kind, ModelId(rule.model)) for kind, rule in read.tasks.items()),
        pinned=PinnedFallback(pinned.fallback, ModelId(pinned.model) if pinned.model else None),
        min_tool_success=read.min_tool_success,
        min_quality=read.min_quality,
        egress=read.egress.policy(),
        allow_unpriced=read.allow_unpriced,
    )


def check_models(policy: Policy, catalog: Catalog) -> None:
    """Raise `ConfigError` where the policy names a model that the catalog does not have."""
    known = sorted({deployment.model for deployment in catalog.deployments})
    named = [("policy.pool", model) for model in policy.pool.models]
    named += [(f"policy.tasks.{rule.task}.model", rule.model) for rule in policy.task_rules]
    if policy.pinned.model is not None:
        named.append(("policy.pinned.model", policy.pinned.model))
    for key, model in named:
        if model not in known:
            raise ConfigError(
                f"`{key}` names the model {model!r}, which no deployment has.",
                mend=close_match(model, known),
            )
