"""The one room that names the concrete class behind every port, and joins the others."""

from turnout.wiring.rooms import (
    ModelSource,
    OpenGateway,
    examine_models,
    examine_sandbox,
    list_models,
    open_gateway,
    open_records,
    open_service,
    sandbox_driver,
)

__all__ = [
    "ModelSource",
    "OpenGateway",
    "examine_models",
    "examine_sandbox",
    "list_models",
    "open_gateway",
    "open_records",
    "open_service",
    "sandbox_driver",
]
