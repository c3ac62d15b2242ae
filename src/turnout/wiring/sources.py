"""Which models a run may use: those of turnout.toml, of an endpoint, or of this machine."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from turnout.agent.base import AgentConfig
from turnout.core.ids import ProviderName
from turnout.core.inference import Objective
from turnout.core.json import JsonObject
from turnout.core.money import Micros
from turnout.core.policies import Policy
from turnout.errors import ConfigError, ModelUnavailableError
from turnout.gateway.catalog import Catalog, Deployment, Provider, ToolSupport
from turnout.gateway.config.catalog_file import parse_catalog
from turnout.gateway.config.policy_file import check_models
from turnout.gateway.config.tables import close_match
from turnout.gateway.decide import PRICE_MEND, mend_of
from turnout.gateway.decide.pool import outside
from turnout.gateway.evidence import Snapshot
from turnout.gateway.measure.settle import discover
from turnout.gateway.measure.unavailable import ENVIRONMENT_PROVIDER
from turnout.gateway.ports import Upstream
from turnout.localmodel.models import find_installed, models_folder
from turnout.runs.choose import choose_strategy
from turnout.runs.ports import StrategyName
from turnout.settings import Endpoint, Settings

__all__ = [
    "LOCAL_PROVIDER",
    "NO_MODEL",
    "abilities",
    "check_counted",
    "check_keys",
    "check_names",
    "check_priced",
    "check_reviewer",
    "choose",
    "endpoint_catalog",
    "known_catalog",
    "local_catalog",
    "no_model",
    "provider_of",
    "unlisted",
    "was_discovered",
]

LOCAL_PROVIDER: Final = ProviderName("local")
"""Of the models that this machine serves itself."""

_LISTED_SECONDS: Final = 3.0
_MOST_PROBED: Final = 8
"""Models of a server on this machine that are tried out where none is named."""

_MOST_SHOWN: Final = 8

NO_MODEL: Final = (
    "Set LLM_BASE_URL and LLM_API_KEY to an OpenAI-compatible endpoint, "
    "or name deployments in turnout.toml (`turnout init`), "
    "or fetch the local model with `turnout models pull`."
)


async def known_catalog(settings: Settings, upstream: Upstream) -> Catalog:
    """Return the catalog of a run as far as it is known without starting anything.

    `ModelUnavailableError` where there is none, or an endpoint has too many models to try out.
    """
    if settings.catalog.deployments:
        return settings.catalog
    if settings.endpoint is not None:
        return await _endpoint_catalog(settings.endpoint, upstream)
    installed = find_installed(models_folder(settings.home))
    if installed is None:
        raise no_model()
    return local_catalog(installed.model.name, "http://127.0.0.1:1", "absent")


def was_discovered(settings: Settings) -> bool:
    """Whether the endpoint itself said which models there are."""
    endpoint = None if settings.catalog.deployments else settings.endpoint
    return endpoint is not None and endpoint.model is None


def abilities(catalog: Catalog) -> str:
    """Return the models of a settled catalog in words, with what speaks against some of them."""
    names = (
        d.model if d.tools == "confirmed" else f"{d.model} (tool support {d.tools})"
        for d in catalog.deployments
    )
    return f"models: {', '.join(names)}"


def check_names(settings: Settings, catalog: Catalog) -> None:
    """Raise `ConfigError` where a policy or a step asks for a model that is not there."""
    for policy in settings.policies:
        check_models(policy, catalog)
    names = {"auto", *(d.model for d in catalog.deployments), *(d.id for d in catalog.deployments)}
    for kind, step in settings.agent.steps.items():
        if step.model not in names:
            raise ConfigError(
                f"The {kind} step is to use the model {step.model!r}, which no deployment has.",
                mend=f"{close_match(step.model, sorted(names))} It comes from --model, from an "
                f"arm of an evaluation, or from agent.steps.{kind}.model.",
            )


def check_keys(catalog: Catalog) -> None:
    """Raise `ConfigError` where every provider that would be asked lacks its key."""
    used = [catalog.providers[d.provider] for d in catalog.deployments]
    if used and all(provider.unset_key for provider in used):
        unset = " and ".join(sorted({provider.unset_key for provider in used}))
        raise ConfigError(
            f"No model can be asked: {unset} {'are' if ' and ' in unset else 'is'} not set.",
            mend="Export the variable that holds a provider's key, or change `api_key_env`.",
        )


def check_counted(config: AgentConfig, policy: Policy, catalog: Catalog) -> None:
    """Raise `ModelUnavailableError` where a run has a cap on spend that would miss its calls.

    The gateway sees to the caps of policies and keys; a run's own cap counts the known costs.
    """
    if config.max_spend is None or policy.allow_unpriced:
        return
    dark = [d.id for d in _asked(config, policy, catalog) if d.price is None]
    if dark:
        said = f"The run has a cap on spend, and the price of {', '.join(dark)} is unknown"
        raise ModelUnavailableError(f"{said}: its calls could not be counted.", mend=PRICE_MEND)


def check_priced(
    config: AgentConfig, policy: Policy, catalog: Catalog, per_day: Micros | None
) -> None:
    """Raise `ModelUnavailableError` where a cap of the policy or key keeps all models from a run.

    `per_day` is what the key may spend in a day.
    """
    capped = per_day is not None or policy.session.max_spend is not None
    if not capped or policy.allow_unpriced:
        return
    asked = _asked(config, policy, catalog)
    if asked and all(d.price is None for d in asked):
        names = ", ".join(d.id for d in asked)
        whose = "The policy" if per_day is None else "The key"
        said = f"{whose} has a cap on spend, and the price of {names} is unknown"
        raise ModelUnavailableError(f"{said}: no model may serve.", mend=PRICE_MEND)


def _asked(config: AgentConfig, policy: Policy, catalog: Catalog) -> list[Deployment]:
    """Return what the steps of a run may be served by, as far as settings tell."""
    asked = {step.model for step in (*config.steps.values(), *config.tool_steps.values())}
    return [
        d
        for d in catalog.deployments
        if ("auto" in asked or asked & {d.model, d.id})
        and outside(policy.pool, d, catalog.providers[d.provider]) is None
        and (policy.provider_keys or not catalog.providers[d.provider].unset_key)
    ]


def choose(
    settings: Settings, catalog: Catalog, evidence: Snapshot, objective: Objective = "latency"
) -> StrategyName:
    """Return the strategy for an act step; `ModelUnavailableError` where no model may take it."""
    model = settings.agent.steps["act"].model
    try:
        return choose_strategy(settings.policy, catalog, evidence, model, objective)
    except ModelUnavailableError as error:
        mend = mend_of(error.message) or error.mend
        raise ModelUnavailableError(error.message, mend=mend) from error


def check_reviewer(settings: Settings, catalog: Catalog, evidence: Snapshot) -> str:
    """Return a warning where the model that would review can come to no decision; empty: it can.

    `ConfigError` where nothing could ever pass for that.
    """
    model = settings.agent.steps["review"].model
    if settings.agent.review == "off":
        return ""
    try:
        if choose_strategy(settings.policy, catalog, evidence, model, "quality") == "loop":
            return ""
    except ModelUnavailableError:
        pass
    told = "A review reads with tools, and no model here can call them: it comes to no decision."
    if settings.agent.review == "block":
        raise ConfigError(
            f"{told} With `review` set to `block` nothing would pass.",
            mend="Name another model in agent.steps.review.model, or leave the review off.",
        )
    return told


def provider_of(endpoint: Endpoint, *, connect_timeout: float = 10.0) -> Provider:
    """Return the provider that an endpoint of the environment is."""
    return Provider(
        ProviderName(ENVIRONMENT_PROVIDER),
        endpoint.base_url,
        endpoint.api_key,
        connect_timeout,
        shape=endpoint.shape,
        key_header="x-api-key" if endpoint.shape == "messages" else "bearer",
    )


async def unlisted(settings: Settings, upstream: Upstream) -> str:
    """Say that the endpoint lists other models than the one that is set; empty: it does not.

    No error: many servers know more names than they list, and some take any.
    """
    endpoint = None if settings.catalog.deployments else settings.endpoint
    if endpoint is None or endpoint.model is None:
        return ""
    try:
        async with asyncio.timeout(_LISTED_SECONDS):
            names = await discover(upstream, provider_of(endpoint, connect_timeout=_LISTED_SECONDS))
    except (ModelUnavailableError, TimeoutError):
        return ""
    if endpoint.model in names:
        return ""
    return (
        f"{endpoint.base_url} does not list the model {endpoint.model!r} that LLM_MODEL names; "
        f"it lists {_some(names)}."
    )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST_SHOWN]) + (", …" if len(names) > _MOST_SHOWN else "")


async def _endpoint_catalog(endpoint: Endpoint, upstream: Upstream) -> Catalog:
    if endpoint.model is not None:
        return endpoint_catalog(endpoint, (endpoint.model,))
    models = await discover(upstream, provider_of(endpoint))
    if len(models) > (_MOST_PROBED if endpoint.local else 1):
        price = "take long" if endpoint.local else "cost money"
        raise ModelUnavailableError(
            f"{endpoint.base_url} has {len(models)} models, and trying them all would {price}.",
            mend=f"Set LLM_MODEL to one of them: {_some(models)}.",
        )
    return endpoint_catalog(endpoint, models)


def endpoint_catalog(endpoint: Endpoint, models: Sequence[str]) -> Catalog:
    """Return the catalog of the models that an endpoint of the environment serves."""
    provider = provider_of(endpoint)
    rows: list[JsonObject] = [{"model": m, "provider": provider.name} for m in models]
    catalog = parse_catalog(
        {"providers": {provider.name: {"base_url": endpoint.base_url}}, "deployments": rows},
        lambda _: None,
    )
    return replace(catalog, providers={provider.name: provider})


def local_catalog(
    model: str, base_url: str, tools: ToolSupport, provider: str = LOCAL_PROVIDER
) -> Catalog:
    """Return the catalog of one model that this machine serves itself."""
    row: JsonObject = {
        "model": model,
        "provider": provider,
        "profile": "branch",
        "tools": tools,
        "price": {"input_usd": "0", "output_usd": "0"},
    }
    providers: JsonObject = {provider: {"base_url": base_url}}
    return parse_catalog({"providers": providers, "deployments": [row]}, lambda _: None)


def no_model() -> ModelUnavailableError:
    """Return the error where nothing is set and nothing is here."""
    return ModelUnavailableError("No model is configured.", mend=NO_MODEL)
