"""Templates escape whatever they are given, without an exception."""

import re
from pathlib import Path

import pytest

import turnout.web.console

FOLDER = Path(turnout.web.console.__file__).parent / "templates"
AROUND = re.compile(r"\|\s*(?:safe|forceescape)\b|\bautoescape\b|\bMarkup\b")


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.html")), ids=lambda path: path.name)
def test_no_template_goes_around_the_escaping(path: Path) -> None:
    """Markup is made in code, where it is seen what it is made of."""
    assert not AROUND.search(path.read_text(encoding="utf-8"))
