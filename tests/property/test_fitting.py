import asyncio
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from turnout.sandbox.workspace.fitting import most_that_fit

NAMES = [f"p{number}" for number in range(40)]


@given(st.integers(0, 40), st.sets(st.sampled_from(NAMES), max_size=4))
def test_everything_that_fits_by_itself_is_kept(size, misfits):
    """Misfits alone are left out, the order stays, and few questions are asked."""
    asked = 0

    async def fit(part: Sequence[str]) -> bool:
        nonlocal asked
        asked += 1
        return not misfits & set(part)

    wanted = NAMES[:size]
    found = asyncio.run(most_that_fit(wanted, fit))
    assert found == [name for name in wanted if name not in misfits]
    assert asked <= 1 + 3 * 6 * len(misfits)


@given(st.integers(0, 12), st.sets(st.tuples(st.sampled_from(NAMES[:12]), st.sampled_from(NAMES))))
def test_what_is_returned_fits_together(size, quarrels):
    """Whatever conflicts with whatever, the answer has no conflict in it."""

    async def fit(part: Sequence[str]) -> bool:
        return not any(one in part and other in part for one, other in quarrels)

    found = asyncio.run(most_that_fit(NAMES[:size], fit))
    assert asyncio.run(fit(found))
    assert set(found) <= set(NAMES[:size])
