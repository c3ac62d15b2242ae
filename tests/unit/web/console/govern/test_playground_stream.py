"""An answer in the playground as it comes: shown, stopped, and waited for in vain."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from tests.unit.web.console.govern.governed import HOSTILE, Governed
from tests.unit.web.console.seen import SECRET

from turnout.core.ids import ModelId, RequestId, ToolCallId
from turnout.gateway.dialog.events import (
    CallDelta,
    CallOpened,
    Piece,
    ReasoningDelta,
    TextDelta,
)
from turnout.gateway.exchange import StreamDelta
from turnout.gateway.server import serve
from turnout.web.console.doors import COOKIE, Signer
from turnout.web.console.govern.trying.coming import Coming, Patience

PATIENCE = 20.0
SHOWN = HOSTILE.replace("\u202e", "\\u202e").replace("<", "&lt;").replace(">", "&gt;")
SHOWN = SHOWN.replace("'", "&#39;").replace('"', "&#34;")


@asynccontextmanager
async def asking(governed: Governed) -> AsyncIterator[aiohttp.ClientResponse]:
    """Send the form as its page does, and return the answer as it comes."""
    person = governed.person()
    headers = {"cookie": f"{COOKIE}={person.cookie}", "hx-request": "true"}
    form = {"csrf": Signer(SECRET).csrf(person.cookie), "prompt": "Why?", "optimize": "cost"}
    async with (
        serve(governed.console.app, host="127.0.0.1", port=0) as bound,
        aiohttp.ClientSession(headers=headers) as http,
        http.post(f"{bound.base_url}/console/playground", data=form) as answer,
    ):
        yield answer


async def moment() -> None:
    """Let others go on."""
    await asyncio.sleep(0.01)


async def until(answer: aiohttp.ClientResponse, wanted: str) -> str:
    """Return what has come once some text is in it."""
    seen = ""
    async with asyncio.timeout(PATIENCE):
        while wanted not in seen:
            line = await answer.content.readline()
            assert line, f"it ended without {wanted!r}: {seen}"
            seen += line.decode().removeprefix("data: ")
    return seen


async def test_an_answer_is_shown_as_it_comes() -> None:
    """That it is asked, then its text, and in the end all of it with its decision."""
    governed = Governed()
    governed.upstream.goes_on.clear()
    async with asking(governed) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        begun = await until(answer, "</section>")
        assert "so far: the model waits for the first word." in begun
        assert "up to 3 min without a word, 15 min in all." in begun
        first = await until(answer, "</span>")
        assert '<span hx-swap-oob="beforeend:#coming-text">It is ' in first
        assert "small answers, 6 characters" in first
        governed.upstream.goes_on.set()
        rest = await until(answer, "Candidates")
        assert f"It is {SHOWN}" in rest
        assert "<script>alert" not in rest
        assert "p/small: the lowest expected cost" in rest
        assert "10 in, 5 out" in rest
    (receipt,) = governed.books.receipts.receipts.values()
    assert (receipt.key, receipt.status) == ("boss", "ok")


async def test_leaving_the_page_stops_the_model() -> None:
    """Its receipt says so."""
    governed = Governed()
    governed.upstream.goes_on.clear()
    async with asking(governed) as answer:
        await until(answer, "</span>")
        answer.close()
        async with asyncio.timeout(PATIENCE):
            while not governed.books.receipts.receipts:
                await moment()
    (receipt,) = governed.books.receipts.receipts.values()
    assert receipt.status == "cancelled"


async def test_a_model_that_is_away_is_told_on_the_stream() -> None:
    """With the decision behind it."""
    governed = Governed()
    governed.upstream.away = True
    async with asking(governed) as answer:
        told = await until(answer, "Candidates")
    assert "is not there" in told
    assert "as far as it came" not in told


def test_a_form_that_is_wrong_is_told_at_once() -> None:
    """Without a stream, as where nothing comes piece by piece."""
    person = Governed().person()
    csrf = Signer(SECRET).csrf(person.cookie)
    answer = person.client.post(
        "/console/playground",
        data={"csrf": csrf, "prompt": " "},
        headers={"hx-request": "true"},
    )
    assert answer.status_code == 400
    assert "The prompt is empty." in answer.text
    assert "<html" not in answer.text


async def coming(*pieces: Piece, forever: bool) -> AsyncGenerator[StreamDelta, None]:
    """Answer so, and then say nothing more, or stop."""
    for piece in pieces:
        yield StreamDelta(piece, ModelId("m"))
    if forever:
        await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("patience", "said"),
    [
        (Patience(silent=0.05, tick=0.01), "said nothing for 0.05 s, and was stopped."),
        (Patience(longest=0.05, tick=0.01), "was not over after 0.05 s, and was stopped."),
    ],
)
async def test_a_model_that_takes_too_long_is_stopped(patience: Patience, said: str) -> None:
    """What had come by then is kept, and is not taken for the whole."""
    heard = Coming(RequestId("req-1"), patience)
    pieces = [
        Piece((ReasoningDelta("Hm."),)),
        Piece((TextDelta("Half"), CallOpened(0, ToolCallId("c"), "look"), CallDelta(0, "{"))),
    ]
    hearing = asyncio.create_task(heard.hear(coming(*pieces, forever=True)))
    async with asyncio.timeout(PATIENCE):
        while await heard.moves(hearing):
            pass
    hearing.cancel()
    await asyncio.wait([hearing])
    error = heard.ended_by(hearing)
    assert isinstance(error, TimeoutError)
    assert said in str(error)
    answer = heard.answer(None, whole=False)
    assert answer is not None
    assert (answer.text, answer.thoughts, answer.finish) == ("Half", "Hm.", "cut off")
    assert [(call.name, call.arguments) for call in answer.calls] == [("look", "{")]


async def test_each_piece_is_told_once() -> None:
    """However often the page is told how far it is."""
    heard = Coming(RequestId("req-1"), Patience(tick=0.01))
    await heard.hear(coming(Piece((TextDelta("one "),)), Piece((TextDelta("two"),)), forever=False))
    first, second = heard.seen(), heard.seen()
    assert (first.news, second.news) == ("one two", "")
    assert (second.characters, second.state, second.model) == (7, "answers", "m")
