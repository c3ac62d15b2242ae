"""Where spans go, for a process that serves and for one that works on a single run."""

import importlib
from contextlib import AsyncExitStack
from typing import Any

from turnout import __version__
from turnout.core.observe.options import ObserveOptions
from turnout.core.observe.spans import SpanSink
from turnout.runs.ports import Report

__all__ = ["open_traces"]


async def open_traces(
    options: ObserveOptions, stack: AsyncExitStack, report: Report
) -> SpanSink | None:
    """Return what sends spans until `stack` ends; None: they go nowhere.

    Where a place is set and nothing can be sent there, `report` is told why.
    """
    if options.traces_doubt:
        report(f"No traces are sent: {options.traces_doubt}.")
    if options.traces_url is None:
        return None
    try:
        module: Any = importlib.import_module("turnout.web.observe.otlp")
    except ImportError:
        report("No traces are sent: that takes the extra `otel`: pip install 'turnout[otel]'")
        return None
    sink = module.OtlpSpans(options, __version__)
    stack.push_async_callback(sink.close)
    traces: SpanSink = sink
    return traces
