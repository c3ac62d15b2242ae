"""A deployment that fails is left alone, tried by one request, and taken back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.core.ids import DeploymentId
from turnout.gateway.exchange import UpstreamError
from turnout.gateway.measure.circuits import CircuitLimits, Circuits, Newest
from turnout.testing.clock import FrozenClock

ID = DeploymentId("acme/m")
LIMITS = CircuitLimits(in_a_row=3, fewest=10, pause=10.0, longest_pause=40.0)
DEAD = UpstreamError("broke the connection off", status=None)


class Ward:
    """Circuits on a clock that stands still, and whom they called unhealthy."""

    def __init__(self) -> None:
        self.clock = FrozenClock()
        self.told: list[str] = []
        self.circuits = Circuits(
            self.clock, LIMITS, lambda deployment, why: self.told.append(f"{deployment}: {why}")
        )

    def state(self) -> str:
        """Return what ails the deployment now; empty where nothing does."""
        ailment = self.circuits.ailing().get(ID)
        return "" if ailment is None else ailment.state

    def fail(self, times: int = 1, error: UpstreamError = DEAD) -> None:
        """Let so many requests fail."""
        for _ in range(times):
            self.circuits.failed(ID, error)


def test_failures_in_a_row_open_the_circuit_and_are_told_of_once() -> None:
    """One that was not reached is tried last at once, and not at all after three."""
    ward = Ward()
    ward.fail(2)
    assert (ward.state(), ward.told) == ("lost", [])
    ward.fail(3)
    assert ward.state() == "open"
    assert ward.told == ["acme/m: 3 requests failed in a row, the last with a broken connection"]
    assert not ward.circuits.admits(ID)


def test_an_answer_ends_the_row() -> None:
    """Now and then a failure is no illness."""
    ward = Ward()
    for _ in range(4):
        ward.fail(2, UpstreamError("x", status=500))
        for _ in range(3):
            ward.circuits.succeeded(ID)
    assert ward.state() == ""


def test_how_the_newest_request_ended_is_known() -> None:
    """Whether or not it is an illness by now; what was wrong with the request says nothing."""
    ward = Ward()
    assert ward.circuits.newest() == {}
    ward.fail(1, UpstreamError("x", status=400))
    assert ward.circuits.newest() == {}
    for error, said in (
        (DEAD, "a broken connection"),
        (UpstreamError("x", status=500), "status 500"),
        (UpstreamError("x", status=401), "status 401"),
    ):
        ward.fail(1, error)
        ward.clock.advance(2.0)
        assert ward.circuits.newest() == {ID: Newest(2.0, said)}
    ward.circuits.succeeded(ID)
    assert ward.circuits.newest() == {ID: Newest(0.0, "")}


def test_a_large_share_of_failures_opens_it_too() -> None:
    """Every other request failing is an illness, whatever the row."""
    ward = Ward()
    for _ in range(5):
        ward.circuits.succeeded(ID)
        ward.fail(1, UpstreamError("x", status=503))
    assert ward.state() == "open"
    assert ward.told == ["acme/m: 5 of 10 requests failed within 60 s, the last with status 503"]


def test_old_failures_do_not_count() -> None:
    """The share is that of the last minute."""
    ward = Ward()
    for _ in range(20):
        ward.circuits.succeeded(ID)
        ward.fail(1, UpstreamError("x", status=503))
        ward.clock.advance(30)
    assert ward.state() == ""


def test_after_the_pause_one_request_tries_for_all() -> None:
    """Its answer closes the circuit; meanwhile the others stay away."""
    ward = Ward()
    ward.fail(3)
    ward.clock.advance(10)
    assert ward.state() == ""
    assert ward.circuits.admits(ID)
    assert (ward.state(), ward.circuits.admits(ID)) == ("open", False)
    ward.circuits.succeeded(ID)
    assert (ward.state(), ward.circuits.admits(ID)) == ("", True)
    ward.fail(2, UpstreamError("x", status=500))
    assert ward.state() == ""


def test_a_failed_trial_doubles_the_pause_up_to_a_limit() -> None:
    """And nobody is told again of what is known."""
    ward = Ward()
    ward.fail(3)
    waits = [10.0]
    for _ in range(4):
        ward.clock.advance(waits[-1])
        assert ward.circuits.admits(ID)
        ward.fail()
        waits.append(ward.circuits.ailing()[ID].seconds)
    assert waits == [10, 20, 40, 40, 40]
    assert len(ward.told) == 1


def test_a_stream_that_began_is_trial_enough() -> None:
    """Others need not wait for its end."""
    ward = Ward()
    ward.fail(3)
    ward.clock.advance(10)
    assert ward.circuits.admits(ID)
    ward.circuits.answering(ID)
    assert ward.circuits.admits(ID)


def test_a_trial_that_shows_nothing_lets_the_next_request_try() -> None:
    """A client that went away, a request that was at fault itself, one that is never done."""
    ward = Ward()
    ward.fail(3)
    ward.clock.advance(10)
    assert ward.circuits.admits(ID)
    ward.circuits.abandoned(ID)
    assert ward.circuits.admits(ID)
    ward.fail(1, UpstreamError("x", status=400))
    assert ward.circuits.admits(ID)
    ward.clock.advance(LIMITS.trial)
    assert ward.circuits.admits(ID)


@pytest.mark.cases
@pytest.mark.parametrize("status", [400, 404, 409, 413, 422])
def test_a_fault_of_the_request_counts_for_nothing(status: int) -> None:
    """A client that sends nonsense does not take a model from the others."""
    ward = Ward()
    ward.fail(50, UpstreamError("x", status=status))
    assert ward.state() == ""
    assert ward.circuits.admits(ID)


@pytest.mark.parametrize("status", [401, 402, 403])
def test_a_refusal_of_our_account_makes_it_come_last_for_a_while(status: int) -> None:
    """It may be one policy's key alone that is refused."""
    ward = Ward()
    ward.fail(50, UpstreamError("x", status=status))
    assert ward.state() == "lost"
    assert str(status) in ward.circuits.ailing()[ID].why
    ward.clock.advance(LIMITS.lost)
    assert ward.state() == ""


def test_a_retry_after_is_a_rest_until_then() -> None:
    """Nobody asks before, and it is no illness."""
    ward = Ward()
    ward.fail(9, UpstreamError("x", status=429, retry_after=7.0))
    ailment = ward.circuits.ailing()[ID]
    assert (ailment.state, ailment.seconds) == ("resting", 7.0)
    assert not ward.circuits.admits(ID)
    ward.clock.advance(7)
    assert ward.state() == ""
    assert ward.told == []


def test_a_retry_after_of_days_is_not_believed() -> None:
    """A header cannot take a deployment away for good."""
    ward = Ward()
    ward.fail(1, UpstreamError("x", status=429, retry_after=1e9))
    assert ward.circuits.ailing()[ID].seconds == LIMITS.longest_rest


def test_a_limit_without_a_time_makes_it_come_last() -> None:
    """It may serve again at any moment."""
    ward = Ward()
    ward.fail(9, UpstreamError("x", status=429))
    assert ward.state() == "lost"


@given(
    st.lists(
        st.sampled_from([None, 400, 401, 429, 500, "ok", "gone", "admits", "answering", "wait"]),
        max_size=60,
    )
)
def test_no_course_of_things_keeps_a_deployment_away_for_good(course: list[object]) -> None:
    """After the longest pause it is always asked again."""
    ward = Ward()
    for step in course:
        match step:
            case "ok":
                ward.circuits.succeeded(ID)
            case "gone":
                ward.circuits.abandoned(ID)
            case "admits":
                ward.circuits.admits(ID)
            case "answering":
                ward.circuits.answering(ID)
            case "wait":
                ward.clock.advance(11)
            case int() | None:
                ward.fail(1, UpstreamError("x", status=step, retry_after=99.0))
        ailment = ward.circuits.ailing().get(ID)
        assert ailment is None or ailment.seconds > 0
    ward.clock.advance(LIMITS.longest_rest)
    assert ward.circuits.ailing() == {}
    assert ward.circuits.admits(ID)
