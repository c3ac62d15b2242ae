"""What the cookies of the console are signed with."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from turnout.errors import UnfitError
from turnout.wiring.console.secret import signing_secret


def test_every_process_of_a_state_folder_has_the_same_secret(tmp_path: Path) -> None:
    """Though all begin at once; its user alone can read it, and nothing else is left there."""
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: signing_secret(tmp_path), range(32)))
    (secret,) = found
    assert len(secret) == 32
    (kept,) = tmp_path.iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_a_secret_that_was_cut_off_is_made_anew(tmp_path: Path) -> None:
    """A short one could be guessed."""
    first = signing_secret(tmp_path)
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(first[:5])
    second = signing_secret(tmp_path)
    assert len(second) == 32
    assert second != first
    assert signing_secret(tmp_path) == second


def test_a_folder_that_takes_no_secret_is_told(tmp_path: Path) -> None:
    """The environment is not fit then."""
    with pytest.raises(UnfitError, match=r"console\.secret"):
        signing_secret(tmp_path / "missing")
