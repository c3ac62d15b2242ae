"""What more threads are worth to the local model, alone and beside other work.

A function to be given back with one change is asked of one thread, of as many as there are by
default, and of as many that spin as long as OpenMP's own default says, in turns, each where nothing
else runs and beside a process that never rests. The ratios are of tokens a second to one thread.
Needs the local model.
"""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from functools import partial
from pathlib import Path

import aiohttp

from children import bound, end_on_term
from frame import Batch, Figures, Options, interleave, parse_options, percentile, report
from turnout.localmodel.models import find_installed, models_folder
from turnout.localmodel.serve import LocalServer
from turnout.settings import load_settings

FUNCTION = '''\
def settle(accounts, transfers, *, fee=0, strict=False):
    """Apply transfers to accounts and return the balances and what was refused."""
    balances = {account.number: account.balance for account in accounts}
    refused = []
    for transfer in sorted(transfers, key=lambda each: (each.day, each.number)):
        source = balances.get(transfer.source)
        target = balances.get(transfer.target)
        if source is None or target is None:
            if strict:
                raise KeyError(transfer.number)
            refused.append((transfer.number, "unknown account"))
            continue
        amount = transfer.amount + fee
        if source <= amount:
            refused.append((transfer.number, "not enough"))
            continue
        balances[transfer.source] = source - amount
        balances[transfer.target] = target + transfer.amount
    return balances, refused
'''
REPEAT = (
    "Bug: a transfer of the whole balance is refused.\n\n"
    f"```python\n{FUNCTION}```\n\n"
    "Reply with ONE ```python block that contains the complete corrected function."
)
USUAL_SPIN = 300_000
"""How often OpenMP looks for work by default."""


async def tokens_a_second(
    session: aiohttp.ClientSession, server: LocalServer, prompt: str, most: int
) -> Sequence[float]:
    """Ask once; return one sample of tokens a second, reading the prompt left out by a first go."""
    asked = {
        "model": server.model_name,
        "messages": [{"role": "user", "content": prompt}],
        "temperature": 0,
        "max_tokens": most,
    }
    began = time.perf_counter()
    async with session.post(f"{server.base_url}/chat/completions", json=asked) as response:
        response.raise_for_status()
        told = await response.json()
    return [told["usage"]["completion_tokens"] / (time.perf_counter() - began)]


async def medians(cases: Mapping[str, Batch], options: Options) -> dict[str, float]:
    """Take all cases in turns and return the median of each."""
    rounds = await interleave(cases, rounds=options.pick(5, 1))
    return {name: round(percentile(samples, 0.5), 2) for name, samples in rounds.items()}


@contextmanager
def never_resting() -> Iterator[None]:
    """Keep one core busy."""
    process = subprocess.Popen(bound((sys.executable, "-c", "while True: pass"), "KILL"))
    try:
        yield
    finally:
        process.kill()
        process.wait()


async def threads(options: Options, model: Path) -> Figures:
    """Ask servers of one thread and of several, in turns, alone and beside a busy process."""
    most = options.pick(160, 24)
    found: dict[str, float] = {}
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession())
        servers = {
            "one": await stack.enter_async_context(LocalServer(model, threads=1)),
            "default": await stack.enter_async_context(LocalServer(model)),
            "spinning": await stack.enter_async_context(LocalServer(model, spin=USUAL_SPIN)),
        }
        ask = partial(tokens_a_second, session)
        for where in ("alone", "busy"):
            cases: dict[str, Batch] = {
                f"{name}_{where}": partial(ask, server, REPEAT, most)
                for name, server in servers.items()
            }
            with ExitStack() as others:
                if where == "busy":
                    others.enter_context(never_resting())
                found |= await medians(cases, options)
    ratios = {
        f"{name}_{where}_ratio": round(found[f"{name}_{where}"] / found[f"one_{where}"], 2)
        for name in ("default", "spinning")
        for where in ("alone", "busy")
    }
    return {**found, **ratios}


async def main() -> None:
    """Measure and report."""
    end_on_term()
    options = parse_options("What are more threads worth to the local model?")
    installed = find_installed(models_folder(load_settings().home))
    facts = {"model": installed.path.stem if installed else None}
    if installed is None:
        report("local_speed", options, {"default_alone_ratio": None}, facts=facts)
        return
    report("local_speed", options, await threads(options, installed.path), facts=facts)


if __name__ == "__main__":
    asyncio.run(main())
