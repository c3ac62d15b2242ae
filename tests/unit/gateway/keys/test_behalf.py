"""What a worker asks of models counts as its orderer's."""

import pytest

from turnout.core.govern.keys import KeyLimits
from turnout.core.inference import BEHALF_HEADER
from turnout.errors import GatewayError
from turnout.gateway.exchange import Caller
from turnout.gateway.keys.behalf import behalf_of, token_for, with_workers

LIMITS = KeyLimits(spend_per_day=7)
CALLERS = {
    "ci": Caller("ci", "web", ("own", "team"), limits=LIMITS, role="member"),
    "boss": Caller("boss", "ops", admin=True),
}


def named(name: str) -> Caller:
    """Find a key, or say that it is shut."""
    if name not in CALLERS:
        raise GatewayError("The API key was revoked.", status=401, code="key_revoked")
    return CALLERS[name]


BEHALF_OF = behalf_of(named, lambda: "main")


def asks(key: str, project: str, policy: str | None = None) -> Caller:
    """Return whom a call counts as."""
    return BEHALF_OF({"authorization": f"Bearer {token_for(key, project, policy)}"})


def test_a_call_counts_as_the_one_who_ordered():
    """Its limits, its project, its own policy or the one that the order names."""
    assert asks("ci", "web") == CALLERS["ci"]
    chosen = asks("ci", "web", "team")
    assert (chosen.policies[0], chosen.limits) == ("team", LIMITS)
    assert asks("boss", "web", "any").policies == ("any",)
    assert asks("boss", "web").project == "web"


def test_without_keys_it_counts_as_whoever_serves():
    """They have no limits."""
    assert asks("local", "default") == Caller("local", role="approver")


def test_a_key_that_was_shut_or_lost_a_policy_pays_for_nothing():
    """401 and 403: the run ends, and says why."""
    with pytest.raises(GatewayError, match="revoked"):
        asks("gone", "web")
    with pytest.raises(GatewayError, match="no longer granted"):
        asks("ci", "web", "other")


def test_a_caller_without_policies_of_its_own_has_the_default_one_alone():
    """An order that names another is not asked on the strength of having named it."""
    assert asks("local", "default", "main").policies == ("main",)
    with pytest.raises(GatewayError, match="no longer granted"):
        asks("local", "default", "other")


WORKER = Caller("machines", "ops", role="worker")
BEHALF = token_for("ci", "web", "team")


def over_http(caller: Caller, behalf: str | None = None) -> Caller:
    """Return whom a model call counts as that comes over HTTP with a key of this caller."""
    headers = {} if behalf is None else {BEHALF_HEADER: behalf}
    return with_workers(lambda _: caller, BEHALF_OF)(headers)


def test_a_worker_on_another_machine_asks_for_whoever_ordered():
    """As one on the private socket does; so it is on one machine while there is no key at all."""
    assert over_http(WORKER, BEHALF) == asks("ci", "web", "team")
    assert over_http(Caller("local", role="approver"), BEHALF) == asks("ci", "web", "team")
    with pytest.raises(GatewayError, match="revoked"):
        over_http(WORKER, token_for("gone", "web", None))


def test_a_workers_key_asks_nothing_for_itself():
    """It stands for no project, and has neither policy nor cap."""
    with pytest.raises(GatewayError) as refused:
        over_http(WORKER)
    assert (refused.value.status, refused.value.code) == (403, "role_not_allowed")


@pytest.mark.parametrize("caller", [*CALLERS.values(), Caller("shared", role="approver")])
def test_no_other_key_asks_for_somebody_else(caller):
    """Not even that of an admin; without the header it is itself."""
    assert over_http(caller) == caller
    with pytest.raises(GatewayError) as refused:
        over_http(caller, BEHALF)
    assert (refused.value.status, refused.value.code) == (403, "role_not_allowed")
