"""What the first line of a commit says of it."""

import pytest

from turnout.evals.instances.clone import Commit
from turnout.evals.mine.titles import reads_like_a_fix, title_of


def commit(subject: str, body: str = "", parents: int = 1) -> Commit:
    """Return a commit that says this."""
    return Commit("c" * 40, ("p" * 40,) * parents, "2024-01-01", subject, body)


@pytest.mark.parametrize(
    "title",
    [
        "Fix off-by-one in Bits length check",
        "fix(parser): handle empty input",
        "🐛 FIX: CLI crash on non-utf8 character",
        "Raise a clear ValueError for negative n in chunked()",
        "Don't lose the last page",
        "Allow hyphen in field name",
    ],
)
def test_a_title_that_names_what_was_wrong_reads_like_a_fix(title: str) -> None:
    """Whatever its style."""
    assert reads_like_a_fix(title)


@pytest.mark.parametrize(
    "title",
    [
        "",
        "Add a logo",
        "chore: fix the linter",
        "docs(api): correct an example",
        "Release 1.2.3 with fixes",
        "Fix typing of parse()",
        "Bump ruff to fix errors",
        "Rename handle to handler",
        'Revert "Fix crash"',
        "Fix a docstring",
    ],
)
def test_upkeep_and_features_do_not(title: str) -> None:
    """Even where a word of repair is in it."""
    assert not reads_like_a_fix(title)


@pytest.mark.parametrize(
    ("subject", "title"),
    [
        ("Fix #387: Handle obj=None.", "Handle obj=None"),
        ("Handle  slices\t(#128)", "Handle slices"),
        ("allow hyphen in field name. closes #86", "allow hyphen in field name"),
        ("Fixes #12", "Fixes #12"),
    ],
)
def test_numbers_of_issues_are_no_part_of_a_task(subject: str, title: str) -> None:
    """Unless nothing else is said."""
    assert title_of(commit(subject)) == title


def test_a_title_is_no_book() -> None:
    """It is cut; blank lines before the text of a merge are passed over."""
    assert len(title_of(commit("Fix " + "x" * 9_000))) == 300
    assert len(title_of(commit("Merge pull request #7", "y" * 9_000, 2))) == 300


def test_a_merge_is_about_what_it_brings_in() -> None:
    """As its text says, else the commit that it merges."""
    merge = "Merge pull request #7 from ada/patch-1"
    assert title_of(commit(merge, "\nFix add\n\nmore", 2)) == "Fix add"
    assert title_of(commit(merge, "", 2), "Fix sub") == "Fix sub"
    assert title_of(commit(merge, "", 2)) == ""
    assert title_of(commit("Merge sort loses items", "", 1)) == "Merge sort loses items"
