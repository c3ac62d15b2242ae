"""Patches as SWE-bench's own harness takes them."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Prediction", "predictions_json", "predictions_lines"]


@dataclass(frozen=True, slots=True)
class Prediction:
    """What one trial made of one instance."""

    instance_id: str
    model_name: str
    """Name of the arm: the harness keeps apart by it what several made."""
    patch: str
    """Unified diff; empty where nothing was changed."""


def predictions_json(predictions: Iterable[Prediction]) -> str:
    """Return `preds.json`: one object, keyed by instance; the first of an instance counts."""
    found: dict[str, dict[str, str]] = {}
    for each in predictions:
        found.setdefault(each.instance_id, _entry(each))
    return f"{json.dumps(found, indent=2)}\n"


def predictions_lines(predictions: Iterable[Prediction]) -> str:
    """Return `preds.jsonl`: an object a line."""
    return "".join(f"{json.dumps(_entry(each))}\n" for each in predictions)


def _entry(prediction: Prediction) -> dict[str, str]:
    return {
        "instance_id": prediction.instance_id,
        "model_name_or_path": prediction.model_name,
        "model_patch": prediction.patch,
    }
