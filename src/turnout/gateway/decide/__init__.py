"""Which deployments may serve a request, and in which order; pure."""

from turnout.gateway.decide.choose import decide
from turnout.gateway.decide.eligible import mend_of

__all__ = ["decide", "mend_of"]
