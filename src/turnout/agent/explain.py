"""The answer step: a change described for the person who reviews it."""

import re
from collections.abc import AsyncIterator

from turnout.agent.base import AgentConfig, ModelClient
from turnout.agent.context import reviewing
from turnout.agent.loop.calls import Ask, step_with_call
from turnout.agent.loop.state import cut
from turnout.agent.tools.run_tests import headline
from turnout.core.events import Event, Explained, ModelCallDone, Notice
from turnout.core.ids import RunId
from turnout.core.runs import Patch, TestReport

__all__ = ["explain", "plain_explanation"]

_NAMED = 20
_UNDERLINED = re.compile(r"[^\s,:;()`]+(?:::?[^\s,:;()`]+)*")


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
    async for event in step_with_call(client, config, ask):
        if isinstance(event, ModelCallDone):
            text, why = event.message.content.strip(), cut(event)
        yield event
    if not text:
        yield Notice("The model gave no description; the facts take its place.", "warning")
    elif why:
        yield Notice(f"The description was cut off {why}.", "warning")
    yield Explained(text or plain_explanation(patch, tests_after))


def plain_explanation(
    patch: Patch,
    tests_after: TestReport | None,
    *,
    tests_before: TestReport | None = None,
    reason: str = "",
) -> str:
    """Describe a patch in Markdown by what is known without a model.

    `reason` is the strategy's own word on what it changed; it comes first.
    """
    facts = [_changed(patch)]
    if mended := _mended(tests_before, tests_after):
        facts.append(mended)
    tests = "The tests were not run." if tests_after is None else headline(tests_after)
    facts.append(f"Tests: {_names_as_code(tests)}")
    listed = "\n".join(f"- {fact}" for fact in facts)
    return f"{_names_as_code(reason)}\n\n{listed}" if reason else listed


def _changed(patch: Patch) -> str:
    changed = ", ".join(f"`{file.path}` ({file.status})" for file in patch.files)
    return f"Changed: {changed}." if changed else "Nothing was changed."


def _mended(before: TestReport | None, after: TestReport | None) -> str:
    if before is None or after is None:
        return ""
    passed = frozenset(after.passed)
    mended = [test for test in before.failed if test in passed]
    if not mended:
        return ""
    named = ", ".join(f"`{test}`" for test in mended[:_NAMED])
    more = f" and {len(mended) - _NAMED} more" if len(mended) > _NAMED else ""
    return f"Failed before, passes now: {named}{more}."


def _names_as_code(text: str) -> str:
    """Mark what Markdown would take for emphasis, such as `__init__`, as code."""
    return _UNDERLINED.sub(lambda found: f"`{found[0]}`" if "_" in found[0] else found[0], text)
