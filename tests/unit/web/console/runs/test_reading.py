"""Diffs cut into lines, and text made harmless: whatever comes, nothing is lost or obeyed."""

import re
from html import unescape

from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from turnout.web.console.hostile import excerpt, visible
from turnout.web.console.runs.diff.colours import coloured, lexer_for
from turnout.web.console.runs.diff.reading import pairs_of, read_diff

TEXTS = st.text(max_size=60)
LINES = st.lists(TEXTS.filter(lambda text: "\n" not in text), max_size=8)


@given(st.lists(st.sampled_from(["+", "-", " ", "@", "\\", "d", "\n", "a"]), max_size=200))
def test_no_diff_is_too_broken_to_be_shown(parts: list[str]) -> None:
    """Every line of it is a hunk's, a note, or what repeats the path."""
    files = read_diff("".join(parts).encode())
    assert sum(file.size for file in files) <= "".join(parts).count("\n") + 1


@given(st.binary(max_size=300))
def test_a_diff_may_hold_any_bytes(body: bytes) -> None:
    """Bytes that are no text become escapes."""
    head = b"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -0,0 +1 @@\n+"
    (file,) = read_diff(head + body.replace(b"\n", b"") + b"\n")
    (hunk,) = file.hunks
    assert hunk.lines[0].text == body.replace(b"\n", b"").decode(errors="backslashreplace")


@given(LINES, LINES, LINES)
def test_lines_keep_their_numbers_and_stand_beside_each_other(
    same: list[str], gone: list[str], came: list[str]
) -> None:
    """What was deleted stands beside what came for it; no line is there twice."""
    olds, news = len(same) + len(gone), len(same) + len(came)
    body = [*(f" {x}" for x in same), *(f"-{x}" for x in gone), *(f"+{x}" for x in came)]
    if not body:
        return
    text = "\n".join([f"@@ -5,{olds} +7,{news} @@", *body, ""])
    (file,) = read_diff(text.encode(errors="surrogatepass"))
    (hunk,) = file.hunks
    assert [line.old for line in hunk.lines if line.old] == list(range(5, 5 + olds))
    assert [line.new for line in hunk.lines if line.new] == list(range(7, 7 + news))
    pairs = list(pairs_of(hunk.lines))
    assert [pair.old for pair in pairs if pair.old] == [x for x in hunk.lines if x.kind != "added"]
    assert [pair.new for pair in pairs if pair.new] == [
        x for x in hunk.lines if x.kind != "deleted"
    ]
    assert len(pairs) == len(same) + max(len(gone), len(came))


@given(st.lists(st.text(max_size=40).filter(lambda x: "\n" not in x), max_size=12))
def test_colours_add_marks_and_nothing_else(lines: list[str]) -> None:
    """As many lines as before, each with its own characters, escaped."""
    shown = coloured(lines, lexer_for("src/a.py"))
    assert [unescape(re.sub("<[^>]*>", "", line)) for line in shown] == list(map(visible, lines))


def test_long_code_stays_plain() -> None:
    """Lexers are not made for hostile text."""
    line = "x = 1 # " + "y" * 2_000
    assert coloured([line], lexer_for("a.py")) == [escape(line)]
    assert lexer_for("a.nothing-like-this") is None


def test_renames_deletions_and_binaries_are_named() -> None:
    """By both paths, by what becomes of them, and with git's own words."""
    diff = (
        b"diff --git a/old.py b/new.py\nsimilarity index 90%\n"
        b"rename from old.py\nrename to new.py\n"
        b"diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n"
        b"@@ -1 +0,0 @@\n-x\n"
        b"diff --git a/p.png b/p.png\nindex 1..2 100644\nBinary files a/p.png and b/p.png differ\n"
    )
    renamed, gone, binary = read_diff(diff)
    assert (renamed.was, renamed.path, renamed.status) == ("old.py", "new.py", "renamed")
    assert (gone.path, gone.status, gone.deleted) == ("gone", "deleted", 1)
    assert (binary.path, binary.notes) == ("p.png", ["Binary files a/p.png and b/p.png differ"])


@given(st.text(alphabet="ab\u00fc\U0001f6e4 \"\\\t\n'/", min_size=1, max_size=12))
def test_names_that_git_quotes_are_read_as_they_are(name: str) -> None:
    """Whatever is in them, with hunks, with none, and where they are renamed."""
    short = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}
    plain = name.isascii() and not set(name) & set(short)

    def said(path: str) -> str:
        octal = "".join(
            short.get(c) or (c if c.isascii() else "".join(f"\\{b:03o}" for b in c.encode()))
            for c in path
        )
        return path if plain else f'"{octal}"'

    both = f"diff --git {said(f'a/{name}')} {said(f'b/{name}')}\n"
    hunk = f"--- {said(f'a/{name}')}\n+++ {said(f'b/{name}')}\n@@ -1 +1 @@\n-x\n+y\n"
    moved = f"rename from old\nrename to {said(name)}\n"
    files = read_diff(f"{both}{hunk}{both}old mode 1\n{both}{moved}".encode())
    assert [file.path for file in files] == [name] * 3


@given(st.text())
def test_no_character_hides_or_turns_others(text: str) -> None:
    """Line breaks and tabs stay, and what is visible by itself; the rest is written out."""
    shown = visible(text)
    shown.encode()
    assert not any(c in shown for c in "\u202e\u2066\u200b\u200f\x1b\r\x00\x85\ufeff\u2028")
    assert visible(shown) == shown


@given(st.text(), st.integers(1, 5), st.integers(1, 20), st.integers(1, 50))
def test_an_excerpt_is_bounded_and_counts_what_it_leaves_out(
    text: str, lines: int, width: int, chars: int
) -> None:
    """Nothing is left out of a text that fits."""
    part = excerpt(text, lines, width, chars)
    assert part.text.count("\n") < lines
    assert all(len(line) <= width + 2 for line in part.text.split("\n"))
    assert len(part.text) <= chars + 3 * lines
    assert (part.left_out == 0) == (part.text in {text, text.removesuffix("\n")})
    whole = excerpt(text, text.count("\n") + 1, len(text) + 1, len(text) + 1)
    assert (whole.text, whole.left_out) == (text.removesuffix("\n"), 0)
