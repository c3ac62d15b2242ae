"""One line for each request, and never a wait for whoever reads it."""

import io
import json
import logging
import threading
from dataclasses import replace
from datetime import UTC, datetime

from turnout.cli.gateway.lines import JsonLines, TextLines
from turnout.cli.gateway.request_log import RequestLog
from turnout.core.ids import DeploymentId, ModelId, ProviderName, RequestId, RunId
from turnout.core.inference import RoutingReport
from turnout.core.money import Micros
from turnout.core.observe.news import RunNews
from turnout.core.observe.working import Working, working_on
from turnout.core.receipts import Receipt
from turnout.core.usage import Usage

ROUTING = RoutingReport(
    model=ModelId("m"),
    provider=ProviderName("p"),
    deployment=DeploymentId("p/m"),
    objective="latency",
    task="coding",
    task_source="request",
    session=None,
    sticky=False,
    fallback=False,
    policy_revision=0,
    reason="",
    cost_micros=None,
)
RECEIPT = Receipt(
    request_id=RequestId("req-1"),
    at=datetime(2026, 1, 1, 12, 3, 4, tzinfo=UTC),
    session=None,
    key="team",
    status="ok",
    http_status=200,
    error_code=None,
    asked_model="auto",
    call_kind=None,
    decision=None,
    routing=ROUTING,
    attempts=(),
    usage=Usage(),
    cost_micros=Micros(1_200_000),
    latency_ms=812,
    ttft_ms=None,
    tools_declared=(),
    tools_called=(),
)

line_of = TextLines().request


def test_a_line_says_who_answered_how_long_it_took_and_what_it_cost() -> None:
    """The time is this machine's."""
    time, _, rest = line_of(RECEIPT).partition("  ")
    assert len(time) == len("12:03:04")
    assert rest == "req-1  m  200  812 ms  $1.20"


def test_an_unknown_price_and_a_fallback_are_said() -> None:
    """Both are what a user looks for."""
    odd = replace(RECEIPT, cost_micros=None, routing=replace(ROUTING, fallback=True))
    assert line_of(odd).endswith("m  200  812 ms  unpriced  fallback")


def test_an_answer_that_was_given_before_is_said() -> None:
    """It cost nothing, which would look odd."""
    assert line_of(replace(RECEIPT, replay_of="req-0")).endswith("  replayed")


def test_a_failure_is_named_by_its_code() -> None:
    """In the place of the model; a name that steers the terminal is shown, not obeyed."""
    failed = replace(RECEIPT, routing=None, http_status=503, error_code="no_eligible_model")
    assert "  no_eligible_model  503  " in line_of(failed)
    assert "\x1b" not in line_of(replace(failed, error_code=None, asked_model="\x1b[2J"))


def test_what_becomes_of_a_run_is_a_line_too() -> None:
    """With the time of day."""
    stream = io.StringIO()
    with RequestLog(stream) as log:
        log.tell(RunNews("run.ended", "run-1", "p", "k", "Run run-1 has\x1b[2J ended."))
    time, _, rest = stream.getvalue().partition("  ")
    assert len(time) == len("12:03:04")
    assert rest.endswith(" ended.\n")
    assert "\x1b" not in rest


def test_every_line_is_written_before_the_log_is_closed() -> None:
    """In order."""
    stream = io.StringIO()
    with RequestLog(stream) as log:
        for number in range(3):
            log.note(replace(RECEIPT, request_id=RequestId(f"req-{number}")))
    assert [line.split()[1] for line in stream.getvalue().splitlines()] == [
        "req-0",
        "req-1",
        "req-2",
    ]


def test_every_line_for_programs_is_one_json_object() -> None:
    """With time, level and event, and whose it is; hostile names stay inside their strings."""
    stream, words = io.StringIO(), "a\nb\x1b\udcff"
    with RequestLog(stream, JsonLines()) as log:
        log.note(replace(RECEIPT, session="s-1", asked_model=words))
        log.note(replace(RECEIPT, status="refused", http_status=403, error_code="no_role"))
        log.tell(RunNews("run.ended", "run-1", "web", "ci", "It has ended."))
        log.say("making sure of what the models can do")
    request, refused, ended, sentence = map(json.loads, stream.getvalue().splitlines())
    assert sentence["message"] == "making sure of what the models can do"
    assert all({"time", "level", "event"} <= set(line) for line in (request, ended, sentence))
    assert (request["event"], request["level"], request["key"]) == ("request", "info", "team")
    assert (request["session"], request["asked_model"]) == ("s-1", words)
    assert request["time"] == "2026-01-01T12:03:04.000+00:00"
    assert (refused["level"], refused["error"]) == ("warning", "no_role")
    assert (ended["event"], ended["run_id"], ended["project"]) == ("run.ended", "run-1", "web")


def test_what_is_logged_while_a_run_is_worked_on_says_which() -> None:
    """In both formats, with what was raised; a logger that is not heard any more is not written."""
    logger = logging.getLogger("turnout.tests.request_log")
    streams = []
    for words in (JsonLines(), TextLines()):
        stream = io.StringIO()
        streams.append(stream)
        with RequestLog(stream, words) as log, log.hearing_loggers():
            try:
                raise ValueError("no\x1b such")
            except ValueError as error:
                with working_on(Working(RunId("run-7"), "web", "ci")):
                    logger.warning("It %s.", "broke", exc_info=error)
            logger.warning("Nobody's.")
        logger.warning("Unheard.")
    broke, others = map(json.loads, streams[0].getvalue().splitlines())
    assert (broke["run_id"], broke["key"], broke["message"]) == ("run-7", "ci", "It broke.")
    assert broke["exception"].endswith("ValueError: no\x1b such")
    assert broke["logger"] == "turnout.tests.request_log"
    assert "run_id" not in others
    text = streams[1].getvalue()
    assert "WARNING  It broke.  [run-7]\n" in text
    assert "\x1b" not in text
    assert "Unheard" not in text


class Stuck(io.StringIO):
    """A pipe that nobody reads."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()

    def write(self, text: str) -> int:
        """Wait until somebody reads."""
        self.go.wait()
        return super().write(text)


def test_a_reader_that_does_not_read_holds_nothing_up() -> None:
    """Lines beyond those that may wait are dropped."""
    stream = Stuck()
    with RequestLog(stream) as log:
        for _ in range(3_000):
            log.note(RECEIPT)
        stream.go.set()
    assert 1_000 <= len(stream.getvalue().splitlines()) <= 1_002
