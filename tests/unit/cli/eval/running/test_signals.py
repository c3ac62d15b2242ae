"""Ctrl-C while an evaluation goes on."""

import asyncio
import os
import signal

import pytest

from turnout.cli.eval.running.signals import Signals


class Evaluation:
    """Is told to stop."""

    def __init__(self):
        self.why = []
        self.said = []
        self.told = asyncio.Event()

    def stop(self, why):
        """Keep why."""
        self.why.append(why)

    def say(self, text):
        """Keep what is said."""
        self.said.append(text)
        self.told.set()


async def interrupted(evaluation, signals, *, asks=True):
    """Go on until left, as an evaluation does that is interrupted twice."""
    with signals.caught():
        if asks:
            signals.asks(evaluation.stop, evaluation.say)
        os.kill(os.getpid(), signal.SIGINT)
        if asks:
            await evaluation.told.wait()
            assert not signals.leaving
            os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()


@pytest.mark.parametrize("asks", [True, False])
async def test_the_first_begins_no_more_trials_and_the_second_leaves_those_under_way(asks):
    """Before any could begin there is nothing to wait for."""
    evaluation, made = Evaluation(), []

    async def main():
        made.append(Signals())
        await interrupted(evaluation, made[0], asks=asks)

    async with asyncio.timeout(10):
        (ended,) = await asyncio.gather(asyncio.create_task(main()), return_exceptions=True)
    assert isinstance(ended, asyncio.CancelledError)
    assert (made[0].stopped, made[0].leaving) == (True, True)
    assert evaluation.why == (["Interrupted."] if asks else [])
    assert len(evaluation.said) == asks
    made[0].arrived()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
