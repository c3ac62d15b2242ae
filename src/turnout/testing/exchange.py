"""Sound values for tests of the gateway; `dataclasses.replace` changes what a test is about."""

from turnout.core.ids import DeploymentId, ModelId, ProviderName
from turnout.core.inference import RoutingAsk, RoutingReport
from turnout.gateway.catalog import Deployment
from turnout.gateway.exchange import InferenceRequest

__all__ = ["PLAIN_REQUEST", "REPORT", "deployment"]

PLAIN_REQUEST = InferenceRequest(
    body={"model": "auto", "messages": [{"role": "user", "content": "Hello"}]},
    model="auto",
    stream=False,
    include_usage=False,
    tools=(),
    tool_choice="auto",
    max_tokens=None,
    open_calls=(),
    ask=RoutingAsk(),
    session=None,
    input_tokens_estimate=1_000,
    wants_json_schema=False,
    thinking=None,
    call_kind=None,
)
"""A request that asks for nothing in particular."""

REPORT = RoutingReport(
    model=ModelId("m"),
    provider=ProviderName("p"),
    deployment=DeploymentId("p/m"),
    objective="cost",
    task="chat",
    task_source="default",
    session=None,
    sticky=False,
    fallback=False,
    policy_revision=0,
    reason="p/m: the only one.",
    cost_micros=None,
)
"""What an answer says of how it was routed."""


def deployment(name: str) -> Deployment:
    """Return a deployment with confirmed tools and nothing else known; `name`: provider/model."""
    provider, _, model = name.partition("/")
    return Deployment(
        id=DeploymentId(name),
        model=ModelId(model),
        provider=ProviderName(provider),
        upstream_name=model,
        tools="confirmed",
    )
