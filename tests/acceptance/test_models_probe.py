"""`turnout models probe` and what it and an evaluation leave for routing."""

from dataclasses import replace

from tests.acceptance.command import Command
from tests.knowing import exercise_of, knowing

from turnout.testing.model_server import RecordedRequest, Refusal, ScriptedModelServer, Turn

CATALOG = """
[providers.p]
base_url = "{base_url}"
[[deployments]]
model = "skilled"
provider = "p"
price = {{ input_usd = "0.1", output_usd = "0.4" }}
[[deployments]]
model = "clumsy"
provider = "p"
price = {{ input_usd = "0.1", output_usd = "0.4" }}
"""


def clumsy(request: RecordedRequest) -> Turn:
    """Call one tool where several were to be called."""
    turn = knowing(request)
    exercise = exercise_of(request)
    if exercise is not None and exercise.check == "parallel calls":
        return replace(turn, calls=turn.calls[:1])
    return turn


def both(request: RecordedRequest) -> Turn:
    """Answer for two models."""
    return clumsy(request) if request.model == "clumsy" else knowing(request)


async def test_every_deployment_is_measured_and_the_result_kept(turnout: Command) -> None:
    """Rates, sizes, latencies for people and as JSON; another command knows them already."""
    async with ScriptedModelServer(both, answers_probes=False) as server:
        command = turnout.configured(CATALOG.format(base_url=server.base_url))
        told = await command("models", "probe")
        asked = await command("models", "probe", "clumsy", "--json")
    assert told.code == 0, told.err
    assert "p/skilled: tool support confirmed. It calls tools." in told.out
    assert "parallel calls   0 of 3  (last: called get_weather)" in told.out
    assert "tool success     1.00 of 22 requests" in told.out
    assert "first token      p50" in told.out
    (found,) = asked.object["deployments"]
    assert (found["deployment"], found["tools"]) == ("p/clumsy", "confirmed")
    assert (found["examined"]["passed"], found["examined"]["samples"]) == (19, 22)
    assert asked.err == ""


async def test_one_that_cannot_be_asked_is_named_and_the_rest_is_probed(turnout: Command) -> None:
    """The command says so with its exit code as well."""

    def half(request: RecordedRequest) -> Turn | Refusal:
        return Refusal(401) if request.model == "clumsy" else knowing(request)

    async with ScriptedModelServer(half, answers_probes=False) as server:
        command = turnout.configured(CATALOG.format(base_url=server.base_url))
        done = await command("models", "probe", "--json")
    assert done.code == 1
    skilled, refused = done.object["deployments"]
    assert skilled["examined"]["tool_success"] == 1.0
    assert "refuses the key" in refused["error"]


async def test_wrong_names_and_nothing_to_probe_are_errors(turnout: Command) -> None:
    """2 for usage, 4 for an environment that has no models."""
    nothing = await turnout("models", "probe")
    assert nothing.code == 4
    assert "LLM_BASE_URL" in nothing.err
    command = turnout.configured(CATALOG.format(base_url="http://127.0.0.1:1/v1"))
    unknown = await command("models", "probe", "skiled")
    assert unknown.code == 2
    assert "Did you mean `skilled`?" in unknown.err
    assert (await command("models", "probe", "--max-spend-usd", "much")).code == 2
