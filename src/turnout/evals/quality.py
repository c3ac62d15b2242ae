"""An evaluation as evidence of how good its models are."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from turnout.core.govern.evidence import QualityResult
from turnout.evals.trial import Trial

__all__ = ["qualities"]


def qualities(trials: Sequence[Trial], source: str, at: datetime) -> Iterator[QualityResult]:
    """Yield what the trials show of each model at coding.

    Trials that several models worked on, or that could not be graded, show nothing of one.
    """
    graded = [t for t in trials if t.grade != "infrastructure" and len(t.models) == 1]
    for model in sorted({trial.models[0] for trial in graded}):
        own = [trial for trial in graded if trial.models == (model,)]
        solved = sum(trial.grade == "resolved" for trial in own)
        yield QualityResult(model, "coding", solved, len(own), at, source)
