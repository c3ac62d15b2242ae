"""Why a model cannot be used, and which setting mends it."""

from turnout.errors import ModelUnavailableError
from turnout.gateway.catalog import Deployment, Provider
from turnout.gateway.evidence import ProbeResult
from turnout.gateway.exchange import UpstreamError

__all__ = ["ENVIRONMENT_PROVIDER", "no_tool_support", "unavailable"]

ENVIRONMENT_PROVIDER = "env"
"""Name of the provider that settings alone describe."""


def unavailable(
    error: UpstreamError, provider: Provider, deployment: Deployment | None = None
) -> ModelUnavailableError:
    """Return the error for an upstream that could not be asked; `deployment`: what was asked."""
    at = f"{provider.name} at {provider.base_url}"
    match error.status:
        case 401 | 403:
            message, setting = f"{at} refuses the key: it", _key(provider)
            mend = f"Check {setting}." if provider.api_key else f"No key was sent: set {setting}."
        case 404 if deployment is not None:
            message = f"{at} does not know the model {deployment.upstream_name!r}: it"
            mend = f"Check {_model(provider)} and {_address(provider)}{_usual_end(provider)}."
        case 404 | 405 | 501:
            message = f"{at} does not list its models: it"
            mend = (
                f"Check {_address(provider)}{_usual_end(provider)}, or name the model in "
                f"{_model(provider)}."
            )
        case 402 | 429:
            message = f"{at} accepts no requests now: it"
            mend = "Wait, or raise the limit of the key."
        case None:
            message = at
            mend = f"Check {_address(provider)}{_usual_end(provider)}, and that the server runs."
            if deployment is None:
                mend = f"{mend} Where it lists no models, name one in {_model(provider)}."
        case _:
            message = at
            mend = f"Check {_address(provider)} and {_model(provider)}, or try again later."
    return ModelUnavailableError(error.sentence(message), mend=mend)


def no_tool_support(result: ProbeResult, provider: Provider) -> ModelUnavailableError:
    """Return the error for a model that a probe found unable to call tools."""
    return ModelUnavailableError(
        f"{result.deployment} cannot call tools: {result.detail}",
        mend=f"Choose a model with tool support in {_model(provider)}. Where the server has "
        "changed since, ask it again: turnout models probe.",
    )


def _key(provider: Provider) -> str:
    if provider.name == ENVIRONMENT_PROVIDER:
        return "LLM_API_KEY"
    return f"the variable named by providers.{provider.name}.api_key_env"


def _address(provider: Provider) -> str:
    if provider.name == ENVIRONMENT_PROVIDER:
        return "LLM_BASE_URL"
    return f"providers.{provider.name}.base_url"


def _usual_end(provider: Provider) -> str:
    return "" if provider.base_url.endswith("/v1") else " (most servers have theirs end in /v1)"


def _model(provider: Provider) -> str:
    return "LLM_MODEL" if provider.name == ENVIRONMENT_PROVIDER else "the deployment's name"
