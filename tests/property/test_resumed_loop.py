"""Whatever a model said and wherever its record ends, a run goes on as if it had not stopped."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.test_agent_loop import ARGUMENTS, NAMES, REFUSALS, SURFACE_NAMES, TEXT
from tests.unit.agent.resuming import FILES, Gateway, Story, interrupted

from turnout.agent.base import AgentConfig
from turnout.core.events import LoopEnded, ToolCallDone
from turnout.core.tasks import SurfaceName
from turnout.testing.turns import Call, Refusal, Turn

# Ids that cannot be used get new ones by chance, which two runs do not share.
CALLS = st.builds(Call, NAMES, ARGUMENTS)
TURNS = st.builds(
    Turn,
    text=TEXT,
    calls=st.lists(CALLS, max_size=4).map(tuple),
    finish_reason=st.sampled_from([None, None, None, "length", "content_filter"]),
)
ANSWERS = st.integers(0, 29).flatmap(lambda n: TURNS if n else REFUSALS)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(ANSWERS, min_size=1, max_size=8),
    SURFACE_NAMES,
    ANSWERS,
    st.sampled_from([200, 100_000]),
    st.integers(0, 200),
)
async def test_a_record_may_end_anywhere(
    turns: list[Turn | Refusal],
    surface: SurfaceName,
    summary: Turn | Refusal,
    window: int,
    place: int,
) -> None:
    """The same events follow under the same keys; but what a crash has hit is said to be so."""
    config = AgentConfig(max_steps=len(turns), window=window)
    story = Story(turns, surface, config)
    gateway = Gateway(turns, summary)
    whole, seen, _ = await story.told(gateway, FILES)
    cut = place % len(whole)
    record, files = whole[:cut], seen[cut - 1] if cut else FILES
    lost = interrupted(record)
    followed, _, sandbox = await story.told(gateway, files, record)

    assert isinstance(followed[-1], LoopEnded)
    assert gateway.faults == []
    if lost is None:
        assert [*record, *followed] == whole
        assert gateway.changed == []
        assert sandbox.files == seen[-1]
    else:
        first = next(event for event in followed if isinstance(event, ToolCallDone))
        assert (first.result.call_id, first.result.is_error) == (lost.call.id, True)
