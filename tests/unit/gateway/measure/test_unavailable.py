"""Each reason why a model cannot be used names the setting that mends it."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from turnout.core.ids import DeploymentId, ProviderName
from turnout.gateway.catalog import Provider
from turnout.gateway.evidence import ProbeResult
from turnout.gateway.exchange import UpstreamError
from turnout.gateway.measure.unavailable import no_tool_support, unavailable
from turnout.testing.exchange import deployment

ENV = Provider(ProviderName("env"), "http://127.0.0.1:1/v1", api_key="sk-secret")
ACME = Provider(ProviderName("acme"), "http://acme.test/v1", api_key="sk-secret")


@pytest.mark.parametrize(
    ("status", "env", "acme"),
    [
        (401, "LLM_API_KEY", "providers.acme.api_key_env"),
        (403, "LLM_API_KEY", "providers.acme.api_key_env"),
        (404, "LLM_MODEL", "deployment's name"),
        (None, "LLM_BASE_URL", "providers.acme.base_url"),
        (500, "LLM_BASE_URL", "providers.acme.base_url"),
        (429, "limit of the key", "limit of the key"),
    ],
)
def test_the_mend_is_where_the_provider_was_set(status: int | None, env: str, acme: str) -> None:
    """Variables for the endpoint of the environment, keys of the file for the others."""
    error = UpstreamError("said no", status=status)
    for provider, setting in ((ENV, env), (ACME, acme)):
        made = unavailable(error, provider, deployment("x/m"))
        assert setting in made.mend
        assert "said no" in made.message
        assert "sk-secret" not in str(made)


@pytest.mark.parametrize(("base_url", "hinted"), [("http://h/v1", False), ("http://h", True)])
def test_an_address_that_lacks_the_usual_end_is_hinted_at(base_url: str, hinted: bool) -> None:
    """The commonest mistake of all."""
    error = UpstreamError("answered 404", status=404)
    for asked in (None, deployment("env/m")):
        mend = unavailable(error, replace(ENV, base_url=base_url), asked).mend
        assert ("end in /v1" in mend) == hinted


def test_a_sentence_ends_once() -> None:
    """Servers end theirs themselves."""
    error = unavailable(UpstreamError("answered 401: Wrong key.", status=401), ACME)
    assert error.message == (
        "acme at http://acme.test/v1 refuses the key: it answered 401: Wrong key."
    )


def test_a_broken_connection_is_one_sentence() -> None:
    """Who, where, and what happened, once each."""
    error = unavailable(UpstreamError("broke the connection off", status=None), ENV)
    assert error.message == "env at http://127.0.0.1:1/v1 broke the connection off."


def test_a_model_without_tools_is_to_be_replaced() -> None:
    """What the probe saw is in the message."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    result = ProbeResult(DeploymentId("env/m"), at, "absent", False, False, True, "None called.")
    error = no_tool_support(result, ENV)
    assert error.message == "env/m cannot call tools: None called."
    assert error.mend.startswith("Choose a model with tool support in LLM_MODEL.")
    assert "turnout models probe" in error.mend
