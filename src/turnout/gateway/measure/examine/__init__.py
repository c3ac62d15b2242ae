"""Finding out, with some twenty requests, how well a deployment calls tools and how fast it is."""

from turnout.gateway.measure.examine.run import Examiner, ExamLimits

__all__ = ["ExamLimits", "Examiner"]
