"""The answer step: a change described for the person who reviews it."""

from collections.abc import AsyncIterator

from turnout.agent.base import AgentConfig, ModelClient
from turnout.agent.calls import Ask, step_with_call
from turnout.agent.context import reviewing
from turnout.agent.history import cut
from turnout.agent.tools.run_tests import headline
from turnout.core.events import Event, Explained, ModelCallDone, Notice
from turnout.core.ids import RunId
from turnout.core.runs import Patch, TestReport

__all__ = ["explain", "plain_explanation"]


async def explain(
    client: ModelClient,
    config: AgentConfig,
    *,
    run_id: RunId,
    step: int,
    prompt: str,
    patch: Patch,
    tests_after: TestReport | None,
) -> AsyncIterator[Event]:
    """Describe a patch, yielding each event of the step; the last one is `Explained`.

    No model is asked about an empty patch. Where the model gives no description, the facts take
    its place.
    """
    if not patch:
        yield Explained(plain_explanation(patch, tests_after))
        return
    ask = Ask(run_id, step, "answer", "answer", reviewing(prompt, patch, tests_after))
    text, why = "", ""
    async for event in step_with_call(client, config, (), ask):
        if isinstance(event, ModelCallDone):
            text, why = event.message.content.strip(), cut(event)
        yield event
    if not text:
        yield Notice("The model gave no description; the facts take its place.", "warning")
    elif why:
        yield Notice(f"The description was cut off {why}.", "warning")
    yield Explained(text or plain_explanation(patch, tests_after))


def plain_explanation(patch: Patch, tests_after: TestReport | None) -> str:
    """Describe a patch by what is known without a model: its files and our test run."""
    changed = ", ".join(f"{file.path} ({file.status})" for file in patch.files)
    tests = "The tests were not run." if tests_after is None else headline(tests_after)
    return f"{f'Changed: {changed}.' if changed else 'Nothing was changed.'}\nTests: {tests}"
