"""What of a Markdown text nobody sees."""

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.runs.forges.unseen import as_read, without_unseen


@pytest.mark.parametrize(
    "character",
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u180e\u200b\u2064\u3164\ufe0f\ufeff\uffa0\U0001d173"
    "\U000e0041\U000e0100\ud800\x07",
)
def test_characters_without_a_look_are_not_there(character: str) -> None:
    """Whatever Unicode calls default-ignorable, spelled as an entity too."""
    assert without_unseen(f"a{character}b") == "ab"
    if unicodedata.category(character) not in {"Cs", "Cc"}:
        assert as_read(f"a&#{ord(character)};&#x{ord(character):x};b") == "ab"


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a\n\n[//]: # (obey me)\n\nb", "a\n\n\n\nb"),
        ("[x]: <> 'obey\nme'\nb", "\nb"),
        ('> - [x]:\n>   https://a.example.org\n>   "obey me"\nb', "\nb"),
        ('[a](https://a.example.org "obey me")', "[a](https://a.example.org)"),
        ('[a](b((c)) "obey \\") me")', "[a](b((c)))"),
        ("[a](<obey me>)", "[a]()"),
        ("![obey [me]](a.png) b", "![image](a.png) b"),
        ("![obey me][p]\n\n[p]: a.png", "![image][p]\n\n"),
        ("![obey me]\n\n[obey me]: a.png", "![image]\n\n"),
        ('<img alt="obey > me" width=0>b', "<img>b"),
        ("<a title='obey me'\nx>b</a>", "<a>b</a>"),
        ("<style>obey me</style>b<?obey me?><!A obey me><![CDATA[> obey me]]>", "b"),
        ("a[^1]\n\n[^1]: b\n\n[^2]: obey\nme\n\n    obey me\n\nc", "a[^1]\n\n[^1]: b\n\n\n\nc"),
        ("a<!-- obey me -->b<!-\u200b- obey me", "ab"),
        ("<div>\n```\n\n[x]: # (obey me)\n```", "<div>\n```\n\n\n```"),
        ("<pre>\n\n```\n</pre>\n[x]: # (obey me)", "<pre>\n\n```\n</pre>\n"),
        ("\u200b```\n[x]: # (obey me)", "```\n"),
        ("<!--\n-->```\n[x]: # (obey me)", "```\n"),
        ("- ```\n[x]: # (obey me)", "- ```\n"),
        ("```\na\n```\n[x]: # (obey me)", "```\na\n```\n"),
    ],
)
def test_markdown_that_does_not_show_is_left_out(text: str, read: str) -> None:
    """Whatever hides behind code that is none stays out, too."""
    assert as_read(text) == read


@pytest.mark.parametrize(
    "text",
    [
        "Fails:\n```php\n<?php\n[INFO]: started\n<a title='x'>![a](b)\n```\nb",
        "~~~~\n[x]: # (a)\n~~~\n![a](b)\n~~~~~\n",
        "let v = vec![1, 2]; a[0] = b[1] (c) & `x < y`; List<String>",
        "See [the page](https://a.example.org/b_(c)), #12, a&lt;b and [^1].",
        "[ERROR]: the total is wrong\n- [x] done",
    ],
)
def test_what_shows_stays(text: str) -> None:
    """Code above all."""
    assert as_read(text) == text


@given(st.text(alphabet="a []()<>!\"'\\`~:#^/-=\n\u200b", max_size=200))
def test_nothing_is_read_that_was_not_written(text: str) -> None:
    """Of any text at most the words for pictures are new, and nothing of it is unseen."""
    read = as_read(text)
    assert read is not None
    assert len(read) <= len(text) + 7 * text.count("![")
    assert without_unseen(read) == read


@pytest.mark.parametrize(
    "evil",
    ['<a b="', "![", "[x](", "[^a]: b\n", "<style>", "[a]: (", "&#", '](a "', "> - 1. ", "[^"],
)
def test_a_text_made_to_take_long_does_not(evil: str) -> None:
    """As long as what is looked at of one; where it could take long it is not shown."""
    began = time.process_time()
    for text in ((evil * 60_000)[:60_000], evil * 999 + 'x"' * 25_000, evil * 999 + "x" * 50_000):
        as_read(text)
    assert time.process_time() - began < 3
