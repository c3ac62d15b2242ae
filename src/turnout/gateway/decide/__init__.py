"""Which deployments may serve a request, and in which order; pure."""

from turnout.gateway.decide.choose import decide

__all__ = ["decide"]
