from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.dialects import sqlite

from turnout.store.columns import EscapedText, PackedText, UtcDateTime

ANY_TEXT = st.text(st.one_of(st.characters(categories=None), st.sampled_from("\\\0\udcff0c")))
DIALECT = sqlite.dialect()


def stored(text: str) -> str | None:
    """Return what goes into the database."""
    return EscapedText().process_bind_param(text, DIALECT)


@given(ANY_TEXT)
def test_any_text_reads_back_as_it_was_stored(text):
    """The escape loses nothing."""
    assert EscapedText().process_result_value(stored(text), DIALECT) == text


@given(ANY_TEXT)
def test_a_stored_text_is_utf8_without_nul(text):
    """PostgreSQL takes nothing else."""
    assert b"\0" not in (stored(text) or "").encode()


@given(ANY_TEXT, ANY_TEXT)
def test_stored_texts_are_equal_only_where_the_texts_are(one, other):
    """A comparison in SQL means the same as one in Python."""
    assert (stored(one) == stored(other)) == (one == other)


def test_a_moment_is_stored_in_utc_and_comes_back_aware():
    """SQLite keeps no zone."""
    column = UtcDateTime()
    there = datetime(2026, 7, 1, 14, 0, tzinfo=timezone(timedelta(hours=2)))
    assert column.process_bind_param(there, DIALECT) == there
    assert column.process_result_value(datetime(2026, 7, 1, 12, 0), DIALECT) == there
    assert column.process_result_value(there, DIALECT).tzinfo is UTC


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_packed_text_reads_back_as_it_was_stored(text):
    """Compressing loses nothing."""
    packed = PackedText().process_bind_param(text, DIALECT)
    assert PackedText().process_result_value(packed, DIALECT) == text


def test_what_repeats_itself_takes_little_room():
    """A conversation holds the same files and schemas again and again."""
    packed = PackedText().process_bind_param("def f(): return 1\n" * 1_000, DIALECT)
    assert len(packed) < 500
