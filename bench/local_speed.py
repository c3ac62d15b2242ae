"""How much faster the local model repeats what stands in its prompt, and what that costs else.

Corrected code repeats most of what it corrects. Two servers of the same model, one thread each,
answer the same two prompts in turns, one that drafts from the prompt and one that does not: a
function to be given back with one change, and a question that is answered in words of its own.
Greedy both, so that both say the same; the ratio is of tokens a second. Needs the local model.
"""

import asyncio
import time
from collections.abc import Sequence
from functools import partial

import aiohttp

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
SAY = "Explain in prose, without any code, how a hash table deals with collisions."


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


async def measured(options: Options, drafting: LocalServer, plain: LocalServer) -> Figures:
    """Ask both in turns and return the rates and their ratios."""
    most = options.pick(320, 48)
    async with aiohttp.ClientSession() as session:
        ask = partial(tokens_a_second, session)
        cases: dict[str, Batch] = {
            "repeat_drafted": partial(ask, drafting, REPEAT, most),
            "repeat_plain": partial(ask, plain, REPEAT, most),
            "say_drafted": partial(ask, drafting, SAY, most // 2),
            "say_plain": partial(ask, plain, SAY, most // 2),
        }
        rounds = await interleave(cases, rounds=options.pick(5, 1))
    rates = {name: round(percentile(samples, 0.5), 2) for name, samples in rounds.items()}
    return {
        **rates,
        "repeat_ratio": round(rates["repeat_drafted"] / rates["repeat_plain"], 2),
        "say_ratio": round(rates["say_drafted"] / rates["say_plain"], 2),
    }


async def main() -> None:
    """Measure and report."""
    options = parse_options("Does drafting from the prompt make the local model faster?")
    installed = find_installed(models_folder(load_settings().home))
    facts = {"model": installed.path.stem if installed else None}
    if installed is None:
        report("local_speed", options, {"repeat_ratio": None}, facts=facts)
        return
    async with (
        LocalServer(installed.path, threads=1) as drafting,
        LocalServer(installed.path, threads=1, drafting=False) as plain,
    ):
        figures = await measured(options, drafting, plain)
    report("local_speed", options, figures, facts=facts)


if __name__ == "__main__":
    asyncio.run(main())
