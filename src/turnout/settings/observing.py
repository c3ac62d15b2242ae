"""How the service is watched over: `[observe]`, and OpenTelemetry's own variables."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote, urlsplit

from turnout.core.observe.options import ObserveOptions
from turnout.settings.tables import ObserveTable

__all__ = ["observe_options"]

_ENDPOINT: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
_TRACES_ENDPOINT: Final = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
_SPOKEN: Final = "http/protobuf"
_SERVICE: Final = "service.name"


def observe_options(table: ObserveTable, env: Mapping[str, str]) -> ObserveOptions:
    """Return how the service is watched over.

    Where spans go is set by the variables that every program with OpenTelemetry knows. They are
    often set for all programs of a machine, so that one which does not fit here fails nothing.
    """
    url, doubt = _traces_url(env)
    headers = env.get("OTEL_EXPORTER_OTLP_TRACES_HEADERS") or env.get("OTEL_EXPORTER_OTLP_HEADERS")
    return ObserveOptions(
        traces_url=url,
        traces_doubt=doubt,
        traces_headers={name.lower(): value for name, value in _pairs(headers or "").items()},
        resource=_resource(env),
        content=table.content,
        propagate=table.propagate,
        metrics_variable=table.metrics_key_env,
    )


def _traces_url(env: Mapping[str, str]) -> tuple[str | None, str]:
    """Return where spans go, and why nowhere though a place was named."""
    off = env.get("OTEL_SDK_DISABLED", "").lower() == "true"
    own, common = env.get(_TRACES_ENDPOINT, "").strip(), env.get(_ENDPOINT, "").strip()
    if off or not (own or common) or env.get("OTEL_TRACES_EXPORTER", "otlp").strip() != "otlp":
        return None, ""
    named = _TRACES_ENDPOINT if own else _ENDPOINT
    url = own or f"{common.rstrip('/')}/v1/traces"
    spoken = env.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or env.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    if spoken and spoken.strip() != _SPOKEN:
        return None, f"{named} is set for the protocol {spoken.strip()!r}; Turnout speaks {_SPOKEN}"
    try:
        parts = urlsplit(url)
        fits = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        fits = False
    return (url, "") if fits else (None, f"{named} is not an http or https URL")


def _resource(env: Mapping[str, str]) -> Mapping[str, str]:
    said = {_SERVICE: "turnout", **_pairs(env.get("OTEL_RESOURCE_ATTRIBUTES", ""))}
    name = env.get("OTEL_SERVICE_NAME", "").strip()
    return {**said, _SERVICE: name} if name else said


def _pairs(text: str) -> dict[str, str]:
    """Return what `name=value,name=value` says; what is no pair is left out."""
    found: dict[str, str] = {}
    for pair in text.split(","):
        name, equals, value = pair.partition("=")
        if equals and name.strip():
            found[unquote(name.strip())] = unquote(value.strip())
    return found
