"""Patches as SWE-bench's own harness takes them."""

import json

from turnout.evals.instances.export import Prediction, predictions_json, predictions_lines

ONE = Prediction("o__n-1", "auto", "diff\n")
TWO = Prediction("o__n-2", "auto", "")


def test_one_object_is_keyed_by_instance() -> None:
    """An empty patch is a prediction as well; of two for one instance the first counts."""
    found = json.loads(predictions_json([ONE, TWO, Prediction("o__n-1", "auto", "later")]))
    assert found == {
        "o__n-1": {
            "instance_id": "o__n-1",
            "model_name_or_path": "auto",
            "model_patch": "diff\n",
        },
        "o__n-2": {"instance_id": "o__n-2", "model_name_or_path": "auto", "model_patch": ""},
    }


def test_lines_hold_the_same() -> None:
    """One prediction each, of as many arms as there are."""
    lines = predictions_lines([ONE, Prediction("o__n-1", "model:m", "other")]).splitlines()
    assert [json.loads(line)["model_name_or_path"] for line in lines] == ["auto", "model:m"]
