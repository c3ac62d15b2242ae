"""What a summary of a long output may not lose."""

from dataclasses import replace

from tests.unit.agent.workshop import Workshop

from turnout.testing.model_client import ScriptedModelClient
from turnout.testing.sandbox import result as result_of
from turnout.testing.turns import Call, Turn


async def test_failing_tests_that_a_summary_lacks_are_named() -> None:
    """What the model has named is not named again."""
    output = (
        "FAILED a.py::test_told\nFAILED a.py::test_lost - boom\n" + "progress\n" * 2_000
    ).encode()
    workshop = Workshop(surface="shell")
    workshop = replace(workshop, script=lambda sandbox: sandbox.answer("", result_of(output)))
    turns = [
        Turn(calls=(Call("run", {"command": "pytest"}),)),
        Turn(calls=(Call("finish", {"summary": "Seen."}),)),
    ]
    summary = Turn("a.py::test_told fails.")
    run = await workshop.work(ScriptedModelClient(*turns, others={"summary": summary}))
    assert "[failing too: a.py::test_lost]\n" in run.results[0]
    assert run.results[0].endswith("progress\n")
