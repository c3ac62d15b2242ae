"""Identifiers, each its own type so that one is never passed for another."""

import secrets
from typing import NewType

__all__ = [
    "DeploymentId",
    "ModelId",
    "ProviderName",
    "RequestId",
    "RunId",
    "SessionId",
    "ToolCallId",
    "new_request_id",
    "new_run_id",
    "new_tool_call_id",
]

RunId = NewType("RunId", str)
"""One execution of a task: `run-` and twelve hexadecimal digits."""

SessionId = NewType("SessionId", str)
"""Groups the model calls of a run at the gateway; equals the run id for our agent."""

RequestId = NewType("RequestId", str)
"""One request at the gateway: `req-` and sixteen hexadecimal digits."""

ToolCallId = NewType("ToolCallId", str)
"""A tool call as the model named it; unique within a conversation."""

ModelId = NewType("ModelId", str)
"""Weights, whoever serves them."""

ProviderName = NewType("ProviderName", str)
"""A company or server that serves models."""

DeploymentId = NewType("DeploymentId", str)
"""A model at a provider, written `provider/model`."""


def new_run_id() -> RunId:
    """Return a run id that was not used before."""
    return RunId(f"run-{secrets.token_hex(6)}")


def new_request_id() -> RequestId:
    """Return a request id that was not used before."""
    return RequestId(f"req-{secrets.token_hex(8)}")


def new_tool_call_id() -> ToolCallId:
    """Return a tool-call id for a call whose model gave none."""
    return ToolCallId(f"call_{secrets.token_hex(12)}")
