"""Counters, gauges and histograms, and the text in which Prometheus reads them.

However many different labels come, each metric holds a bounded number of them.
"""

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final, Literal

__all__ = ["CONTENT_TYPE", "SECONDS", "Counter", "Gauge", "Histogram", "Metrics"]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

SECONDS: Final = tuple(0.01 * 2**power for power in range(18))
"""Upper bounds from 10 ms to 22 minutes, those of the GenAI conventions and on from there."""

_MOST: Final = 200
"""Different labels of one metric; what comes beyond is counted together, each label `other`."""
_OTHER: Final = "other"
_LONGEST_VALUE: Final = 100

_Values = tuple[str, ...]


class _Metric:
    """What has a name, and values by label."""

    kind: Literal["counter", "gauge", "histogram"]

    def __init__(self, name: str, help_: str, labels: Sequence[str]) -> None:
        self.name = name
        self.labels = tuple(labels)
        self._help = help_
        self._known: set[_Values] = set()

    def text(self) -> Iterator[str]:
        """Yield the lines that say it all."""
        yield f"# HELP {self.name} {self._help}"
        yield f"# TYPE {self.name} {self.kind}"
        yield from self._lines()

    def _lines(self) -> Iterator[str]:
        raise NotImplementedError

    def _place(self, values: _Values) -> _Values:
        if values in self._known:
            return values
        if len(values) != len(self.labels):
            raise ValueError(f"{self.name} has the labels {self.labels}")
        short = tuple(value[:_LONGEST_VALUE] for value in values)
        if short not in self._known and len(self._known) >= _MOST:
            return (_OTHER,) * len(values)
        self._known.add(short)
        return short

    def _line(self, values: _Values, figure: float, suffix: str = "", more: str = "") -> str:
        shown = [f'{n}="{_escaped(v)}"' for n, v in zip(self.labels, values, strict=True)]
        inner = ",".join([*shown, *([more] if more else [])])
        return (
            f"{self.name}{suffix}{{{inner}}} {_figure(figure)}"
            if inner
            else (f"{self.name}{suffix} {_figure(figure)}")
        )


class Counter(_Metric):
    """What only grows."""

    kind = "counter"

    def __init__(self, name: str, help_: str, labels: Sequence[str] = ()) -> None:
        super().__init__(name, help_, labels)
        self._counts: dict[_Values, float] = {}

    def add(self, *values: str, by: float = 1) -> None:
        """Count; one value for each label."""
        place = self._place(values)
        self._counts[place] = self._counts.get(place, 0) + by

    def _lines(self) -> Iterator[str]:
        for values, count in sorted(self._counts.items()):
            yield self._line(values, count)


class Gauge(_Metric):
    """What goes up and down: it is set whole, before each time that it is read."""

    kind = "gauge"

    def __init__(self, name: str, help_: str, labels: Sequence[str] = ()) -> None:
        super().__init__(name, help_, labels)
        self._now: dict[_Values, float] = {}

    def set(self, figures: Mapping[_Values, float]) -> None:
        """Forget what was, and hold this; keys have one value for each label."""
        self._known.clear()
        self._now = {self._place(values): figure for values, figure in figures.items()}

    def _lines(self) -> Iterator[str]:
        for values, figure in sorted(self._now.items()):
            yield self._line(values, figure)


class Histogram(_Metric):
    """How often a figure was how large."""

    kind = "histogram"

    def __init__(
        self,
        name: str,
        help_: str,
        labels: Sequence[str] = (),
        *,
        bounds: Sequence[float] = SECONDS,
    ) -> None:
        """`bounds` are the upper ends of its buckets, the lowest first."""
        super().__init__(name, help_, labels)
        self._bounds = tuple(bounds)
        self._counts: dict[_Values, list[int]] = {}
        self._sums: dict[_Values, float] = {}

    def observe(self, figure: float, *values: str) -> None:
        """Count a figure; one value for each label."""
        place = self._place(values)
        counts = self._counts.setdefault(place, [0] * (len(self._bounds) + 1))
        counts[bisect_left(self._bounds, figure)] += 1
        self._sums[place] = self._sums.get(place, 0.0) + figure

    def _lines(self) -> Iterator[str]:
        ends = [*self._bounds, math.inf]
        for values, counts in sorted(self._counts.items()):
            for end, count in zip(ends, accumulate(counts), strict=True):
                yield self._line(values, count, "_bucket", f'le="{_figure(end)}"')
            yield self._line(values, self._sums[values], "_sum")
            yield self._line(values, sum(counts), "_count")


class Metrics:
    """All metrics of a process."""

    def __init__(self) -> None:
        self._all: dict[str, _Metric] = {}

    def counter(self, name: str, help_: str, labels: Sequence[str] = ()) -> Counter:
        """Return a new counter."""
        made = Counter(name, help_, labels)
        self._add(made)
        return made

    def gauge(self, name: str, help_: str, labels: Sequence[str] = ()) -> Gauge:
        """Return a new gauge."""
        made = Gauge(name, help_, labels)
        self._add(made)
        return made

    def histogram(
        self,
        name: str,
        help_: str,
        labels: Sequence[str] = (),
        *,
        bounds: Sequence[float] = SECONDS,
    ) -> Histogram:
        """Return a new histogram."""
        made = Histogram(name, help_, labels, bounds=bounds)
        self._add(made)
        return made

    def text(self) -> str:
        """Return everything as Prometheus reads it."""
        lines = [line for metric in self._all.values() for line in metric.text()]
        return "\n".join([*lines, ""])

    def _add(self, metric: _Metric) -> None:
        if metric.name in self._all:
            raise ValueError(f"there are two metrics {metric.name}")
        self._all[metric.name] = metric


def _figure(figure: float) -> str:
    if math.isinf(figure):
        return "+Inf" if figure > 0 else "-Inf"
    return str(int(figure)) if figure == int(figure) and abs(figure) < 2**53 else f"{figure:.9g}"


def _escaped(text: str) -> str:
    plain = text.encode(errors="replace").decode()
    return plain.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
