"""Tokens that are fetched in time, once, and missed for as short as can be."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from turnout.gateway.exchange import UpstreamError
from turnout.gateway.providers.accounts.azure import EntraSource
from turnout.gateway.providers.accounts.tokens import Token, TokenError, Tokens
from turnout.testing.clock import FrozenClock

SECRET = "s3cret-of-the-client"


class Numbered:
    """Gives a new token each time, or none."""

    def __init__(self) -> None:
        self.given = 0
        self.fails = False

    async def fetch(self) -> Token:
        """Return the next token, good for an hour."""
        await asyncio.sleep(0)
        if self.fails:
            raise TokenError("closed")
        self.given += 1
        return Token(f"token-{self.given}", 3_600)


async def test_a_token_is_fetched_once_for_all_who_want_it() -> None:
    """Fifty at a time, and again within the hour."""
    source, clock = Numbered(), FrozenClock()
    tokens = Tokens(source, clock)
    assert set(await asyncio.gather(*(tokens.value() for _ in range(50)))) == {"token-1"}
    clock.advance(3_200)
    assert await tokens.value() == "token-1"
    assert source.given == 1


async def test_a_token_is_replaced_before_it_ends() -> None:
    """A request that is under way must not outlive it."""
    source, clock = Numbered(), FrozenClock()
    tokens = Tokens(source, clock)
    await tokens.value()
    clock.advance(3_301)
    assert await tokens.value() == "token-2"


async def test_the_old_token_serves_while_no_new_one_is_given() -> None:
    """To its end; then it is an error, and then there is a token again."""
    source, clock = Numbered(), FrozenClock()
    tokens = Tokens(source, clock)
    await tokens.value()
    source.fails = True
    clock.advance(3_400)
    assert await tokens.value() == "token-1"
    clock.advance(201)
    with pytest.raises(UpstreamError, match="closed") as failure:
        await tokens.value()
    assert failure.value.status == 401
    source.fails = False
    assert await tokens.value() == "token-2"


def test_a_token_does_not_show_itself() -> None:
    """In a log or a traceback."""
    assert SECRET not in repr(Token(SECRET, 1.0))


@asynccontextmanager
async def entra(status: int, body: object) -> AsyncIterator[tuple[str, list[dict[str, str]]]]:
    """Answer for the directory; yield its address and the forms that it gets."""
    forms: list[dict[str, str]] = []

    async def handle(request: web.Request) -> web.Response:
        forms.append(
            {"path": request.path, **{k: str(v) for k, v in (await request.post()).items()}}
        )
        return web.json_response(body, status=status)

    app = web.Application()
    app.router.add_post("/{path:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}", forms
    await runner.cleanup()


async def test_entra_is_asked_by_client_credentials() -> None:
    """For the scope of Azure's AI services; the seconds may be text."""
    answer = {"token_type": "Bearer", "expires_in": "3599", "access_token": "token-1"}
    async with entra(200, answer) as (authority, forms):
        token = await EntraSource("tenant", "client", SECRET, authority=authority).fetch()
    assert token == ("token-1", 3_599)
    assert forms == [
        {
            "path": "/tenant/oauth2/v2.0/token",
            "grant_type": "client_credentials",
            "client_id": "client",
            "client_secret": SECRET,
            "scope": "https://cognitiveservices.azure.com/.default",
        }
    ]


@pytest.mark.parametrize(
    ("status", "body"),
    [(401, {"error": "invalid_client", "error_description": SECRET}), (200, {}), (200, [])],
)
async def test_a_refusal_of_entra_says_why_without_the_secret(status: int, body: object) -> None:
    """Its description may repeat what was sent."""
    async with entra(status, body) as (authority, _):
        with pytest.raises(TokenError, match=f"answered {status}") as failure:
            await EntraSource("tenant", "client", SECRET, authority=authority).fetch()
    assert SECRET not in str(failure.value)
