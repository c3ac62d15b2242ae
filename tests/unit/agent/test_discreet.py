"""No model reads a secret of the process, whatever brought it."""

from tests.unit.agent.workshop import Workshop

from turnout.agent.discreet import DiscreetClient
from turnout.core.ids import ToolCallId
from turnout.core.inference import ModelRequest, RoutingAsk
from turnout.core.messages import AssistantMessage, SystemMessage, ToolMessage, UserMessage
from turnout.core.secrecy.redactor import Redactor
from turnout.core.tools import ToolCall
from turnout.testing.model_client import ScriptedModelClient
from turnout.testing.turns import Call, Turn

SECRET = 'sk-"0123456789'
REDACTOR = Redactor({"LLM_API_KEY": SECRET})
ESCAPED = SECRET.replace('"', '\\"')


async def test_every_text_of_a_conversation_is_told_without_it() -> None:
    """Also what the model itself said, and what is sent back as it came."""
    call = ToolCall(ToolCallId("c"), "run", f'{{"command": "{ESCAPED}"}}')
    client = ScriptedModelClient(Turn("Done."))
    messages = (
        SystemMessage(SECRET),
        UserMessage(f"Use {SECRET}."),
        AssistantMessage(SECRET, (call,), SECRET, f'{{"content": "{ESCAPED}"}}'),
        ToolMessage(ToolCallId("c"), SECRET),
    )
    ask = ModelRequest(messages, "act", RoutingAsk(), "key")
    await DiscreetClient(client, REDACTOR).call(ask)
    (sent,) = client.requests
    assert "0123456789" not in str(sent)
    assert str(sent).count("[LLM_API_KEY]") == 7
    assert sent.messages[1] == UserMessage("Use [LLM_API_KEY].")


async def test_what_a_tool_brings_back_is_told_without_it() -> None:
    """Be it a file or an error; the file itself stays as it is."""
    workshop = Workshop({"a.py": f"key = '{SECRET}'\n"})
    read = Call("read_file", {"path": "a.py"})
    missing = Call("read_file", {"path": f"{SECRET}.py"})
    client = ScriptedModelClient(Turn(calls=(read,)), Turn(calls=(missing,)), Turn("Done."))
    run = await workshop.work(DiscreetClient(client, REDACTOR))
    assert "0123456789" not in str(client.requests)
    assert "key = '[LLM_API_KEY]'" in str(client.requests[-1])
    assert SECRET in run.text("a.py")
