"""Custom tools as functions, and thoughts that go back to their maker."""

import pytest

from turnout.gateway.dialog.conversation import Call, Conversation, Reasoning, Text, ToolSpec, Turn
from turnout.gateway.dialog.custom import as_function, unwrap, wrap
from turnout.gateway.dialog.thoughts import Thought, with_thoughts

CALL = Call("c1", "f", "{}")


@pytest.mark.parametrize("text", ["", "x", 'a "quoted"\nline', "ü \\ {}", '{"input": "nested"}'])
def test_a_free_text_survives_being_wrapped(text):
    """Whatever it holds."""
    assert unwrap(wrap(text)) == text


@pytest.mark.parametrize("arguments", ["", "{", "[]", '{"other": 1}', '{"input": 3}', "plain"])
def test_arguments_without_an_input_stay_as_they_are(arguments):
    """What the model meant is not guessed."""
    assert unwrap(arguments) == arguments


def test_only_custom_tools_become_functions():
    """With one required text."""
    function = as_function(ToolSpec("patch", "Patch.", type="custom"))
    assert (function.type, function.name, function.description) == ("function", "patch", "Patch.")
    assert function.parameters is not None
    assert function.parameters["required"] == ["input"]
    plain = ToolSpec("f", parameters={"type": "object"})
    assert as_function(plain) is plain


@pytest.mark.parametrize(
    ("said", "kept", "sent"),
    [
        ((), (Reasoning("Hm."),), ["Hm."]),
        ((Reasoning("Mine."),), (Reasoning("Hm."),), ["Mine."]),
        ((Reasoning("Hm."),), (Reasoning("Hm.", "sig"),), ["Hm.sig"]),
        ((Reasoning("Hm.", "own"),), (Reasoning("Hm.", "sig"),), ["Hm.own"]),
        ((Reasoning("Other.", maker="q"),), (Reasoning("Hm."),), ["Hm."]),
    ],
)
def test_what_a_client_dropped_of_a_thought_is_restored(said, kept, sent):
    """The words, or their proof; what it kept whole is its own."""
    turn = Turn("assistant", (*said, Text("So."), CALL))
    known = {CALL.id: Thought("m", kept)}
    heard = with_thoughts(Conversation((turn,)), known, "m", wanted=True).turns[0].parts
    thoughts = [part for part in heard if isinstance(part, Reasoning)]
    assert [part.text + part.signature for part in thoughts] == sent
    assert heard[len(thoughts) :] == (Text("So."), CALL)
    for model, wanted in (("other", True), ("m", False)):
        bare = with_thoughts(Conversation((turn,)), known, model, wanted=wanted)
        assert bare.turns[0].parts == (Text("So."), CALL)
