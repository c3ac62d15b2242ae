"""Keys of an evaluation's own gateway, for commands."""

import pytest
from tests.samples import receipt
from tests.unit.evals.trials.parts import COMMAND

from turnout.errors import GatewayError
from turnout.gateway.exchange import Caller
from turnout.wiring.evaluation.leases import ProgramLeases


def leases():
    """Return what gives keys out."""
    made = ProgramLeases(lambda arm, name: Caller(name, project=arm.name))
    made.base_url = "http://127.0.0.1:1"
    return made


def sent(token):
    """Return the headers of a client."""
    return {"authorization": f"Bearer {token}"}


def test_a_key_opens_the_gateway_as_long_as_its_command_runs():
    """And nobody else's, nor none at all."""
    subject = leases()
    with subject.lease(COMMAND, "abc") as one, subject.lease(COMMAND, "def") as other:
        token = one.variables["OPENAI_API_KEY"]
        assert subject.authenticate(sent(token)) == Caller("evaluation-abc", project="mini")
        assert other.variables["OPENAI_API_KEY"] != token
        assert token not in repr(one)
        assert token not in repr(subject)
    for wrong in (token, "", "x"):
        with pytest.raises(GatewayError) as caught:
            subject.authenticate(sent(wrong))
        assert caught.value.status == 401


def test_clients_of_every_api_are_told_where_models_are():
    """Those of Messages add the path themselves."""
    with leases().lease(COMMAND, "abc") as lease:
        told = lease.variables
    assert told["OPENAI_BASE_URL"] == told["LLM_BASE_URL"] == "http://127.0.0.1:1/v1"
    assert told["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:1"


def test_a_call_is_counted_for_the_command_that_made_it():
    """And for none where nobody runs under that key."""
    subject = leases()
    with subject.lease(COMMAND, "abc") as one, subject.lease(COMMAND, "def") as other:
        subject.saw(receipt(key="evaluation-abc"))
        subject.saw(receipt(key="evaluation"))
    assert [len(each.receipts) for each in (one, other)] == [1, 0]
