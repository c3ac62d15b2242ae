"""What a process that serves says of itself, one line each: for people, or for programs."""

import logging
import traceback
from datetime import UTC, datetime
from typing import Literal, Protocol

from turnout.cli.terminal import safe
from turnout.core.json import JsonObject, JsonValue, ascii_json
from turnout.core.money import format_usd
from turnout.core.observe.news import RunNews
from turnout.core.observe.working import working
from turnout.core.receipts import Receipt

__all__ = ["JsonLines", "Lines", "LogFormat", "TextLines", "lines_of"]

LogFormat = Literal["text", "json"]


class Lines(Protocol):
    """How things are said; no line holds a prompt, an answer or a key."""

    def request(self, receipt: Receipt) -> str:
        """Return the line of a request at the gateway."""
        ...

    def news(self, news: RunNews) -> str:
        """Return the line of what becomes of a run."""
        ...

    def sentence(self, text: str) -> str:
        """Return the line of what a person is told who waits for the process to serve."""
        ...

    def record(self, record: logging.LogRecord) -> str:
        """Return the line of what the code itself has to say, without a line break at its end."""
        ...


class TextLines:
    """Lines for people, that cannot steer a terminal."""

    def request(self, receipt: Receipt) -> str:
        """Return time, id, model or error, status, duration and cost of a request."""
        cost = "unpriced" if receipt.cost_micros is None else format_usd(receipt.cost_micros)
        parts = [
            f"{receipt.at.astimezone():%H:%M:%S}",
            receipt.request_id,
            receipt.error_code or receipt.model or receipt.asked_model,
            str(receipt.http_status),
            f"{receipt.latency_ms} ms",
            cost,
        ]
        if receipt.routing is not None and receipt.routing.fallback:
            parts.append("fallback")
        if receipt.replay_of is not None:
            parts.append("replayed")
        return safe("  ".join(parts))

    def news(self, news: RunNews) -> str:
        """Return the sentence with the time of day."""
        return safe(f"{datetime.now():%H:%M:%S}  {news.text}")

    def sentence(self, text: str) -> str:
        """Return it as it is."""
        return safe(text)

    def record(self, record: logging.LogRecord) -> str:
        """Return time, level and message; with it the run and, below, what was raised."""
        on = working()
        run = "" if on is None else f"  [{on.run_id}]"
        at = datetime.fromtimestamp(record.created)
        head = safe(f"{at:%H:%M:%S}  {record.levelname}  {record.getMessage()}{run}")
        raised = _raised(record)
        return "\n".join([head, *map(safe, raised.splitlines())])


class JsonLines:
    """One JSON object a line, each with `time`, `level` and `event`."""

    def request(self, receipt: Receipt) -> str:
        """Return what a receipt says, the words of client and model left out."""
        routing = receipt.routing
        return _line(
            receipt.at,
            "info" if receipt.status == "ok" else "warning",
            "request",
            {
                "request_id": receipt.request_id,
                "session": receipt.session,
                "project": receipt.project,
                "key": receipt.key,
                "policy": receipt.policy or None,
                "api": receipt.shape,
                "status": receipt.status,
                "http_status": receipt.http_status,
                "error": receipt.error_code,
                "asked_model": receipt.asked_model,
                "model": receipt.model,
                "deployment": None if routing is None else routing.deployment,
                "fallback": routing is not None and routing.fallback,
                "replay_of": receipt.replay_of,
                "input_tokens": receipt.usage.input_tokens,
                "output_tokens": receipt.usage.output_tokens,
                "cost_micros": receipt.cost_micros,
                "latency_ms": receipt.latency_ms,
                "ttft_ms": receipt.ttft_ms,
                "traceparent": receipt.traceparent or None,
            },
        )

    def news(self, news: RunNews) -> str:
        """Return what becomes of a run, by the name of its event."""
        run = {"run_id": news.run_id, "project": news.project, "key": news.key}
        return _line(datetime.now(UTC), "info", news.event, {**run, "message": news.text})

    def sentence(self, text: str) -> str:
        """Return it as a message."""
        return _line(datetime.now(UTC), "info", "log", {"message": text})

    def record(self, record: logging.LogRecord) -> str:
        """Return a message with the run that it is about, and what was raised."""
        said: dict[str, JsonValue] = {"logger": record.name, "message": record.getMessage()}
        on = working()
        if on is not None:
            said |= {"run_id": on.run_id, "project": on.project, "key": on.key}
        if raised := _raised(record):
            said["exception"] = raised
        at = datetime.fromtimestamp(record.created, UTC)
        return _line(at, record.levelname.lower(), "log", said)


def lines_of(format_: LogFormat) -> Lines:
    """Return how things are said in a format."""
    return JsonLines() if format_ == "json" else TextLines()


def _line(at: datetime, level: str, event: str, said: JsonObject) -> str:
    time = at.astimezone(UTC).isoformat(timespec="milliseconds")
    return ascii_json({"time": time, "level": level, "event": event, **said})


def _raised(record: logging.LogRecord) -> str:
    if not record.exc_info or record.exc_info[1] is None:
        return ""
    return "".join(traceback.format_exception(record.exc_info[1])).rstrip()
