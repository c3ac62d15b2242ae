"""The frame of the benches measures in turns and reports one object."""

import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

_PLACE = Path(__file__).parents[3] / "bench" / "frame.py"


@pytest.fixture(scope="module")
def frame() -> ModuleType:
    """Load the module; `bench` is a folder of scripts, not a package."""
    spec = importlib.util.spec_from_file_location("frame", _PLACE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(_PLACE.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(_PLACE.parent))
    return module


async def test_no_case_always_comes_first(frame: ModuleType) -> None:
    """A busy moment must not fall on the same one each time."""
    order: list[str] = []

    def case(name: str) -> object:
        async def batch() -> Sequence[float]:
            order.append(name)
            return [1.0]

        return batch

    cases = {name: case(name) for name in "abc"}
    samples = await frame.interleave(cases, rounds=3, warm_up=1)
    assert "".join(order) == "abc" + "abc" + "bca" + "cab"
    assert samples == {name: [[1.0]] * 3 for name in "abc"}


def test_percentiles_are_of_all_rounds(frame: ModuleType) -> None:
    """The median is that of the rounds, so that one bad round does not move it."""
    rounds = [[1.0, 1.0], [2.0, 2.0], [900.0, 900.0]]
    assert frame.percentile(rounds, 0.5) == 2.0
    assert frame.percentile(rounds, 0.99) == 900.0


def test_the_report_ends_with_one_object(
    frame: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Our figures first, peers nested with ratios, null for a peer that is not there."""
    options = frame.Options(quick=True, json=True)
    peers = {"one": {"p50_ms": 4.0}, "two": None}
    frame.report("thing", options, {"p50_ms": 2.0}, peers=peers, folder=tmp_path)
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert next(iter(result)) == "p50_ms"
    assert result["peers"] == {"one": {"p50_ms": 4.0, "ratio": {"p50_ms": 0.5}}, "two": None}
    assert list(tmp_path.iterdir()) == []


def test_a_full_run_is_kept_under_its_date(frame: ModuleType, tmp_path: Path) -> None:
    """Results can be compared over time."""
    frame.report("thing", frame.Options(quick=False, json=False), {"n": 1}, folder=tmp_path)
    (kept,) = tmp_path.iterdir()
    assert kept.name.endswith("-thing.json")
    assert json.loads(kept.read_text())["n"] == 1
