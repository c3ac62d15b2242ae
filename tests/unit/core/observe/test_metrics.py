"""Metrics, as Prometheus reads them."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from turnout.core.observe.metrics import Metrics


def read(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Return what Prometheus' own reader makes of them: figures by name and labels."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(metrics.text())
        for sample in family.samples
    }


def test_figures_are_read_as_they_were_counted() -> None:
    """Counters, gauges and histograms, with and without labels."""
    metrics = Metrics()
    runs = metrics.counter("runs_total", "Runs.", ("outcome",))
    runs.add("answered")
    runs.add("answered", by=2)
    metrics.counter("plain_total", "Plain.").add()
    metrics.gauge("up", "Up.").set({(): 1})
    took = metrics.histogram("took_seconds", "Took.", ("kind",), bounds=(1.0, 2.5))
    for figure in (0.5, 1.0, 2.0, 9.0):
        took.observe(figure, "act")
    found = read(metrics)
    assert found[("runs_total", (("outcome", "answered"),))] == 3
    assert found[("plain_total", ())] == 1
    assert found[("up", ())] == 1
    buckets = {dict(labels)["le"]: v for (name, labels), v in found.items() if "bucket" in name}
    assert buckets == {"1": 2, "2.5": 3, "+Inf": 4}
    assert found[("took_seconds_sum", (("kind", "act"),))] == 12.5
    assert found[("took_seconds_count", (("kind", "act"),))] == 4


@example(["\udcff", "a\\", 'b"', "c\n"])
@given(st.lists(st.text(max_size=30), min_size=1, max_size=5, unique=True))
def test_no_label_can_break_out_of_its_quotes(values: list[str]) -> None:
    """Names of tools are what a model wrote."""
    metrics = Metrics()
    counter = metrics.counter("calls_total", "Calls.", ("tool",))
    for value in values:
        counter.add(value)
    assert sum(read(metrics).values()) == len(values)


def test_however_many_labels_come_a_metric_stays_small() -> None:
    """What is beyond is counted together; what was known before goes on."""
    metrics = Metrics()
    counter = metrics.counter("calls_total", "Calls.", ("tool", "error"))
    for number in range(5_000):
        counter.add(f"tool-{number}" * 100, "")
    counter.add("tool-0" * 100, "")
    found = read(metrics)
    assert len(found) == 201
    assert found[("calls_total", (("error", "other"), ("tool", "other")))] == 4_800
    assert max(len(dict(labels)["tool"]) for _, labels in found) == 100


def test_a_gauge_forgets_what_it_is_not_told_again() -> None:
    """What is not known now is not shown as it was."""
    metrics = Metrics()
    gauge = metrics.gauge("runs", "Runs.", ("state",))
    gauge.set({("queued",): 3, ("running",): 1})
    gauge.set({("queued",): math.inf})
    assert read(metrics) == {("runs", (("state", "queued"),)): math.inf}


def test_two_metrics_of_one_name_are_a_defect() -> None:
    """So are values that do not fit the labels."""
    metrics = Metrics()
    counter = metrics.counter("a_total", "A.", ("b",))
    with pytest.raises(ValueError, match="two metrics"):
        metrics.gauge("a_total", "A.")
    with pytest.raises(ValueError, match="has the labels"):
        counter.add()
