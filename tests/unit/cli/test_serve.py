"""What `turnout serve` calls repositories."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from turnout.cli.gateway.service import command, named_places
from turnout.errors import UsageError


def test_a_repository_is_called_like_its_folder_or_as_is_said(tmp_path: Path) -> None:
    """Where links lead to is where it is."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "shop")
    named = named_places([str(tmp_path / "link"), f"api={tmp_path}"])
    assert named == {"shop": str(tmp_path / "shop"), "api": str(tmp_path)}


@pytest.mark.parametrize("given", [["a/shop", "b/shop"], ["a b=x"], ["=x"], ["/"]])
def test_a_name_that_cannot_be_is_refused(given: list[str]) -> None:
    """Before anything is served."""
    with pytest.raises(UsageError):
        named_places(given)


def test_the_command_refuses_such_a_name(tmp_path: Path) -> None:
    """And begins nothing."""
    runner = CliRunner(env={"TURNOUT_HOME": str(tmp_path / "home")})
    with pytest.raises(UsageError, match="name of a repository"):
        runner.invoke(command, ["--repo", "a b=x"], catch_exceptions=False, standalone_mode=False)
    assert not (tmp_path / "home").exists()
