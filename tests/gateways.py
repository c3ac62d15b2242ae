"""A gateway before a scripted server, in one block."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from turnout.gateway.catalog import Deployment
from turnout.gateway.dialog.conversation import Shape
from turnout.testing.exchange import deployment
from turnout.testing.gateway import GatewaySetup, RunningGateway, catalog_at, running_gateway
from turnout.testing.responses import ScriptedResponsesServer

__all__ = ["MODEL", "served"]

MODEL = deployment("p/m")


@asynccontextmanager
async def served(
    server: Any, *deployments: Deployment, setup: GatewaySetup | None = None
) -> AsyncIterator[tuple[Any, RunningGateway]]:
    """Start a scripted server of chat completions or responses, and a gateway before it."""
    shape: Shape = "responses" if isinstance(server, ScriptedResponsesServer) else "chat"
    async with server:
        catalog = catalog_at(server.base_url, *(deployments or (MODEL,)), shape=shape)
        async with running_gateway(catalog, setup) as gateway:
            yield server, gateway
