"""Which deployments may serve a request, and in which order; pure."""

from turnout.gateway.decide.choose import Decider, decide
from turnout.gateway.decide.eligible import PRICE_MEND, mend_of
from turnout.gateway.decide.reasons import none_eligible

__all__ = ["PRICE_MEND", "Decider", "decide", "mend_of", "none_eligible"]
