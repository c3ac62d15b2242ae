"""The `routing` object of a response."""

from turnout.core.inference import RoutingReport
from turnout.core.json import JsonValue

__all__ = ["write_report"]


def write_report(report: RoutingReport) -> dict[str, JsonValue]:
    """Return the report under the names of the wire."""
    return {
        "model": report.model,
        "provider": report.provider,
        "deployment": report.deployment,
        "objective": report.objective,
        "task": report.task,
        "task_source": report.task_source,
        "session": report.session,
        "sticky": report.sticky,
        "fallback": report.fallback,
        "policy_revision": report.policy_revision,
        "reason": report.reason,
        "cost_micros": report.cost_micros,
        "caches": report.caches,
        "kept_warm": report.kept_warm,
        "context_tokens": report.context_tokens,
        "connection_calls": report.connection_calls,
    }
