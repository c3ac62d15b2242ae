"""What every bench shares: options, interleaved measuring, ratios, and one way to report.

A bench is a script that answers one question: `python bench/NAME.py [--quick] [--json]`.
It measures its cases in turns, so that a busy moment of the machine falls on all of them, and
ends with `report`. A full run also leaves a dated file in `bench/results/`.
"""

import argparse
import importlib.metadata
import json
import os
import platform
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from children import end_on_term

__all__ = ["Batch", "Figures", "Options", "interleave", "parse_options", "percentile", "report"]

Batch = Callable[[], Awaitable[Sequence[float]]]
"""Measures one case a few times and returns the samples, in milliseconds."""

Figures = Mapping[str, float | int | str | None]

_RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asked for."""

    quick: bool
    """At most 45 seconds, for checking that the bench works; nothing is kept."""
    json: bool
    """One JSON object on the last line of standard output."""

    def pick(self, full: int, quick: int) -> int:
        """Return the amount of work for this run."""
        return quick if self.quick else full


def parse_options(question: str) -> Options:
    """Read the two options that every bench takes; from now on SIGTERM ends it in order."""
    end_on_term()
    parser = argparse.ArgumentParser(description=question)
    parser.add_argument("--quick", action="store_true", help="45 seconds at most; keep no result")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    found = parser.parse_args()
    return Options(quick=found.quick, json=found.json)


async def interleave(
    cases: Mapping[str, Batch], *, rounds: int, warm_up: int = 1
) -> dict[str, list[list[float]]]:
    """Measure the cases in turns and return each one's samples, round by round.

    Every round starts with another case, so that none always comes first.
    """
    names = list(cases)
    for _ in range(warm_up):
        for name in names:
            await cases[name]()
    samples: dict[str, list[list[float]]] = {name: [] for name in names}
    for turn in range(rounds):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            samples[name].append(list(await cases[name]()))
    return samples


def percentile(rounds: Sequence[Sequence[float]], share: float) -> float:
    """Return a percentile of all samples together; the median of the rounds' medians at 0.5."""
    if share == 0.5:
        return median(median(samples) for samples in rounds)
    ordered = sorted(value for samples in rounds for value in samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def report(
    name: str,
    options: Options,
    figures: Figures,
    *,
    peers: Mapping[str, Figures | None] | None = None,
    facts: Figures | None = None,
    folder: Path = _RESULTS,
) -> None:
    """Print the figures, and keep them where the run was a full one.

    `peers` holds what others measured in the same run, None for one that is not installed;
    each figure that we share with a peer also becomes a ratio, ours to theirs.
    """
    at = datetime.now(UTC).replace(microsecond=0)
    result = {
        **figures,
        "peers": {
            peer: None if theirs is None else {**theirs, "ratio": _ratios(figures, theirs)}
            for peer, theirs in (peers or {}).items()
        },
        "bench": name,
        "at": at.isoformat(),
        "quick": options.quick,
        "facts": {**_machine(), **(facts or {})},
    }
    width = max(len(key) for key in figures)
    for key, value in figures.items():
        print(f"{key:<{width}}  {value}")
    for peer, theirs in (peers or {}).items():
        print(f"{peer}: {'not installed' if theirs is None else dict(theirs)}")
    if not options.quick:
        folder.mkdir(exist_ok=True)
        kept = folder / f"{at:%Y-%m-%d}-{name}.json"
        kept.write_text(json.dumps(result, indent=2) + "\n")
        print(f"kept in {kept}")
    if options.json:
        print(json.dumps(result))


def _ratios(ours: Figures, theirs: Figures) -> dict[str, float]:
    shared: dict[str, float] = {}
    for key, value in ours.items():
        other = theirs.get(key)
        if isinstance(value, int | float) and isinstance(other, int | float) and other:
            shared[key] = round(value / other, 3)
    return shared


def _machine() -> dict[str, str | int | None]:
    return {
        "cpus": os.cpu_count(),
        "load_1m": f"{os.getloadavg()[0]:.1f}",
        "python": platform.python_version(),
        "kernel": platform.release().partition("-")[0],
        "turnout": importlib.metadata.version("turnout"),
    }
