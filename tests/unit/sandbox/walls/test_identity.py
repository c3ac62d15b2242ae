"""Which uid a sandbox gets when root starts it."""

import pytest

from turnout.errors import SandboxUnavailableError
from turnout.sandbox.walls.identity import identity_within

WHOLE = "         0          0 4294967295\n"
CONTAINER = "0 100000 65536\n"


def test_each_run_gets_a_uid_of_its_own() -> None:
    """High uids that nobody else uses, never root's, and one gid in common."""
    found = [identity_within(WHOLE) for _ in range(50)]
    assert len({each.uid for each in found}) == 50
    assert len({each.gid for each in found}) == 1
    assert all(1_879_048_192 < each.uid < 2_147_000_000 for each in found)


def test_a_container_gives_what_it_has() -> None:
    """Within a smaller map the uids are near its end."""
    found = identity_within(CONTAINER)
    assert 60_000 < found.uid < 65_535
    assert found.gid == 65_535


def test_too_small_a_map_is_an_error_with_a_mend() -> None:
    """Root of a user namespace with a single uid cannot drop it."""
    with pytest.raises(SandboxUnavailableError, match="65536"):
        identity_within("0 1000 1\n")
