"""TOML of strangers is read in little time, or refused."""

import time

import pytest

from turnout.core.toml import TomlError, read_toml

EVADING = 'b = {a = """x"""", ' + "c." * 3_000 + "d = 1}"
"""The fourth quote belongs to the text: whoever thinks that another begins misses the key."""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a." * 30_000 + "b = 1", "a key has more than 64 parts"),
        ("[" + "a." * 30_000 + "b]", "a key has more than 64 parts"),
        ("x = 1\n" + '\'a\' . "b\\"." . ' * 3_000 + "c = 1", "64 parts (at line 2)"),
        ("x = {" + "a . " * 3_000 + "b = 1}", "a key has more than 64 parts"),
        ("x = [{" + "a." * 3_000 + "b = 1}]", "a key has more than 64 parts"),
        ("x = '''\n'''''\n" + "a." * 3_000 + "b = 1", "a key has more than 64 parts"),
        (EVADING, "a key has more than 64 parts"),
        ("x = " + "[" * 5_000, "nests too deep"),
        ("x = " + "{a = " * 5_000, "nests too deep"),
        ("x = " + "9" * 5_000, "Exceeds the limit"),
        ("x = 0x" + "f" * 5_000, "more than 1,000 digits"),
        ("x = 0b" + "1_" * 5_000 + "1", "more than 1,000 digits"),
        ("x" * (2**22 + 1), "characters"),
        ("x = ", "Invalid value"),
    ],
    ids=lambda value: value[:20],
)
def test_what_would_take_long_is_refused_before_it_is_read(text: str, said: str) -> None:
    """In no time, with what is wrong."""
    began = time.process_time()
    with pytest.raises(TomlError, match=said.replace("(", r"\(").replace(")", r"\)")):
        read_toml(text)
    assert time.process_time() - began < 0.3


@pytest.mark.parametrize(
    "text",
    [
        'x = "' + "a." * 5_000 + '"',
        "x = '" + "a." * 5_000 + "'",
        "x = '''\n" + "a.b\n" * 5_000 + "'''",
        'x = """' + 'a.""b' * 5_000 + '"""""',
        "# " + "a." * 5_000 + "\nx = 1",
        "x = [" + "1.5, " * 5_000 + "]",
        "".join(f"a{n}.b.c = {n}\n" for n in range(1_000)),
    ],
    ids=lambda value: value[:20],
)
def test_dots_that_belong_to_no_key_do_not_count(text: str) -> None:
    """Nor do those of many keys together."""
    assert read_toml(text)


def test_what_is_read_is_what_the_text_says() -> None:
    """Whole."""
    text = 'a.b = "c"\n[d."e.f"]\ng = [1, 2.5]\n'
    assert read_toml(text) == {"a": {"b": "c"}, "d": {"e.f": {"g": [1, 2.5]}}}
