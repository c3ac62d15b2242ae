"""What several commands share."""

import json

import pytest

from turnout.cli.options import say_json


def test_json_survives_every_terminal_and_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    """A name of a file may be half a character, a terminal may know none beyond ASCII."""
    value = {"path": "caf\udce9", "text": "é 漢"}
    say_json(value)
    said = capsys.readouterr().out
    assert said.isascii()
    assert json.loads(said) == value
