from hypothesis import given
from tests.samples import any_event, values

from turnout.core.events import Notice, TestsRan, decode_event, encode_event
from turnout.core.receipts import Receipt, decode_receipt, encode_receipt
from turnout.core.runs import TestReport


@given(any_event())
def test_every_event_reads_back_as_it_was_written(event):
    """Bytes, NUL and lone surrogates included."""
    assert decode_event(encode_event(event)) == event


@given(any_event())
def test_an_events_text_holds_nothing_that_a_database_refuses(event):
    """Printable ASCII alone fits a text column of any encoding."""
    text = encode_event(event)
    assert text.isascii()
    assert text.isprintable()


@given(values(Receipt))
def test_every_receipt_reads_back_as_it_was_written(receipt):
    """Whatever was refused, cut or unpriced."""
    assert decode_receipt(encode_receipt(receipt)) == receipt


def test_a_text_of_ten_megabytes_reads_back():
    """No length is too much."""
    event = Notice("é\0" * 5_000_000)
    assert decode_event(encode_event(event)) == event


def test_an_infinite_figure_stays_infinite():
    """It must not turn into a null that cannot be read."""
    event = TestsRan("before", TestReport("pytest", None, (), (), float("inf"), "", timed_out=True))
    assert decode_event(encode_event(event)) == event
