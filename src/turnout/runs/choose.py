"""Which strategy the models at hand are best worked with."""

from dataclasses import dataclass
from typing import Final

from turnout.core.inference import Objective, RoutingAsk
from turnout.core.policies import Policy
from turnout.core.receipts import Decision
from turnout.errors import ModelUnavailableError
from turnout.gateway.catalog import Catalog, Deployment
from turnout.gateway.decide import decide
from turnout.gateway.evidence import Sight, Snapshot
from turnout.gateway.exchange import DeclaredTool, InferenceRequest
from turnout.runs.ports import StrategyName

__all__ = ["choose_strategy"]

_TOOL: Final = DeclaredTool("run_tests")


@dataclass(frozen=True, slots=True)
class _Field:
    """The deployments that could be asked."""

    policy: Policy
    catalog: Catalog
    evidence: Snapshot
    objective: Objective


def choose_strategy(
    policy: Policy,
    catalog: Catalog,
    evidence: Snapshot,
    model: str = "auto",
    objective: Objective = "latency",
) -> StrategyName:
    """Return the strategy for the deployment that would serve an act step of this objective.

    Only the profile `loop` needs tools. `ModelUnavailableError` where no
    deployment is fit for either strategy.
    """
    field = _Field(policy, catalog, evidence, objective)
    acting = _decide(field, model, tools=True)
    if acting.order:
        return _profile(catalog, acting)
    talking = _decide(field, model, tools=False)
    for deployment in _deployments(catalog, talking):
        if deployment.profile != "loop":
            return deployment.profile
    raise _none_fit(model, acting)


def _decide(field: _Field, model: str, *, tools: bool) -> Decision:
    request = InferenceRequest(
        body={},
        model=model,
        stream=False,
        include_usage=False,
        tools=(_TOOL,) if tools else (),
        tool_choice="auto",
        max_tokens=None,
        open_calls=(),
        ask=RoutingAsk(optimize=field.objective, task="coding"),
        session=None,
        input_tokens_estimate=0,
        wants_json_schema=False,
        thinking=None,
        call_kind="act",
    )
    return decide(request, field.policy, field.catalog, Sight(field.evidence))


def _deployments(catalog: Catalog, decision: Decision) -> list[Deployment]:
    found = (catalog.deployment(name) for name in decision.order)
    return [deployment for deployment in found if deployment is not None]


def _profile(catalog: Catalog, decision: Decision) -> StrategyName:
    return _deployments(catalog, decision)[0].profile


def _none_fit(model: str, decision: Decision) -> ModelUnavailableError:
    asked = "No model" if model == "auto" else f"Not one deployment of {model}"
    reasons = "; ".join(f"{c.deployment}: {c.dropped}" for c in decision.candidates if c.dropped)
    return ModelUnavailableError(
        f"{asked} can work on code here ({reasons or 'the catalog is empty'}).",
        mend="Choose a model that can call tools, or state its `tools` and `profile` in "
        "turnout.toml.",
    )
