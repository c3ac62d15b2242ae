"""Which deployments may serve a request, and in which order; pure."""

from turnout.gateway.decide.choose import Decider, decide
from turnout.gateway.decide.eligible import mend_of
from turnout.gateway.decide.reasons import none_eligible

__all__ = ["Decider", "decide", "mend_of", "none_eligible"]
