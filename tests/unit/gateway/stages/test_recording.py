"""What is written down, and how much of it strangers can cause."""

from turnout.gateway.stages.recording import Strangers


def test_strangers_fill_no_disk() -> None:
    """So many refusals a minute are written down, and again as many in the next."""
    strangers = Strangers(2)
    assert [strangers.admit(moment) for moment in (0.0, 1.0, 2.0, 60.0)] == [
        True,
        True,
        False,
        True,
    ]
