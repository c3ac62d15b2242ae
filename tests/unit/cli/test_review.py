"""What `turnout review` takes, before anything is worked on."""

import json

import pytest

from turnout.cli.main import run


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere.patch",), "is no file, and no range of commits"),
        (("a..b", "--base", "c"), "has its own base"),
        (("a..b", "--server", "http://127.0.0.1:9"), "No repository is named"),
        (("a..b", "--server", "nowhere", "--repo", "shop"), "must be an http"),
        (("a..b", "--server", "http://h", "--repo", "shop", "--model", "m"), "what --model says"),
        ((), "Missing argument 'DIFF'"),
    ],
)
def test_what_cannot_be_reviewed_is_wrong_usage(
    arguments: tuple[str, ...],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """2, and what to do."""
    monkeypatch.delenv("TURNOUT_SERVER", raising=False)
    assert run(["review", *arguments, "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert said in error["message"]


def test_a_diff_that_is_no_text_is_for_this_machine_alone(
    tmp_path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A service takes JSON."""
    (tmp_path / "change.patch").write_bytes(b"--- a/a\n+++ b/a\n@@ -1 +1 @@\n-\xff\n+b\n")
    asked = ("review", str(tmp_path / "change.patch"), "--repo", "shop")
    assert run([*asked, "--server", "http://127.0.0.1:9", "--json"]) == 2
    assert "not all UTF-8" in json.loads(capsys.readouterr().out)["error"]["message"]
