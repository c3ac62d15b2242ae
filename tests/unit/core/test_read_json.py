"""JSON of strangers is read only so deep that it can be written again."""

from collections.abc import Callable

import orjson
import pytest

from turnout.core.json import DEEPEST, TooDeepError, read_json


def _nested(levels: int, opening: str = "[", closing: str = "]") -> str:
    return opening * levels + closing * levels


@pytest.mark.parametrize("encode", [str, str.encode], ids=["text", "bytes"])
def test_what_is_read_can_be_written_inside_of_more(encode: Callable[[str], str]) -> None:
    """The deepest that is read still goes into the envelopes of every shape."""
    value = read_json(encode(_nested(DEEPEST)))
    for _ in range(254 - DEEPEST):
        value = {"inside": value}
    assert orjson.dumps(value).count(b"[") == DEEPEST


@pytest.mark.parametrize("levels", [DEEPEST + 1, 300, 1_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":[', "]}")])
def test_what_nests_deeper_is_refused(levels: int, opening: str, closing: str) -> None:
    """As an error of the parser, so that whoever minds broken JSON minds it too."""
    with pytest.raises(orjson.JSONDecodeError):
        read_json(_nested(levels, opening, closing))


def test_many_values_beside_each_other_are_not_deep() -> None:
    """Only levels count."""
    assert read_json("[" + ",".join(["[]"] * 1_000) + "]") == [[]] * 1_000
    with pytest.raises(TooDeepError, match="deeper than 200 levels"):
        read_json(_nested(DEEPEST + 1))
