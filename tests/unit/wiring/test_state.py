"""What the state folder's owner keeps to themselves."""

from pathlib import Path

from turnout.core.events import LoopEnded, Notice, Reviewed, RunEnded
from turnout.runs.intake import told_with
from turnout.settings import load_settings
from turnout.wiring.state import discreet_of


def test_what_callers_read_says_where_nothing_is(tmp_path: Path) -> None:
    """Neither a repository's folder nor ours; what a review has said itself stays as it is."""
    state, shop = tmp_path / "state", tmp_path / "git" / "shop"
    (tmp_path / "turnout.toml").write_text(f'[service.repositories]\nshop = "{shop}"\n')
    settings = load_settings(directory=tmp_path, environment={"TURNOUT_HOME": str(state)})
    tell = told_with(discreet_of(settings))
    said = f"{shop}.git is locked, and {state}/mirrors is full."
    told = "shop.git is locked, and the state folder/mirrors is full."
    assert tell(RunEnded("failed", said)) == RunEnded("failed", told)
    assert tell(LoopEnded("failed", said)) == LoopEnded("failed", told)
    assert tell(Notice(said, "warning")) == Notice(told, "warning")
    assert tell(Reviewed(False, said, decided=False)) == Reviewed(False, told, decided=False)
    assert tell(Reviewed(False, said)) == Reviewed(False, said)
