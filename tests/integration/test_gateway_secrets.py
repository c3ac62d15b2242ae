"""No key is ever written anywhere, be it good, bad, expired or out of money."""

import io
import logging
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.integration.limits import NOON, PATHS, PRICED, AtNoon, KeyWith, client_of

from turnout.cli.gateway.request_log import RequestLog
from turnout.core.govern.keys import KeyLimits
from turnout.core.money import Micros
from turnout.store.books import BooksStore
from turnout.store.database import open_database
from turnout.store.keys import KeysStore
from turnout.store.replies import RepliesStore
from turnout.testing.gateway import GatewaySetup, catalog_at
from turnout.testing.model_server import Refusal, ScriptedModelServer, Turn, refusing_base_url

pytestmark = pytest.mark.cases

OURS, WRONG = "tk-OURS-0123456789abcdef-secret", "tk-WRONG-fedcba9876543210-secret"
PROVIDERS = "sk-PROVIDER-00112233445566-secret"
SECRETS = (OURS, WRONG, PROVIDERS)
ECHO = Refusal(401, f"Incorrect API key provided: {PROVIDERS}.", "invalid_api_key")


async def every_request(client):
    """Ask in every shape, with the key and with a wrong one, in headers and in the address."""
    answers = []
    for shape in PATHS:
        answers += [
            await client.ask(shape),
            await client.ask(shape, stream=True),
            await client.ask(shape, headers={"authorization": f"Bearer {WRONG}"}),
            await client.ask(shape, headers={"authorization": "", "x-api-key": WRONG}),
            await client.ask(shape, headers={"authorization": "", "api-key": OURS}),
        ]
        request = client.request(shape)
        request["url"] += f"?key={WRONG}&api_key={OURS}"
        async with client.http.post(**request) as answer:
            answers.append((answer.status, dict(answer.headers), await answer.text()))
    for path in ("models", "requests/req-0", f"keys/{WRONG}", f"nowhere/{OURS}"):
        url = f"{client.gateway.base_url}/{path}?key={WRONG}"
        async with client.http.get(url, headers={"authorization": f"Bearer {OURS}"}) as answer:
            text = await answer.text()
            # The path itself is told back to whoever has sent it.
            answers.append((answer.status, dict(answer.headers), text.replace(path, "")))
    return answers


@pytest.mark.parametrize(
    ("limits", "record", "script"),
    [
        (KeyLimits(), {}, [Turn("Hi.")] * 99),
        (KeyLimits(), {}, [ECHO] * 99),
        (KeyLimits(), {"expires_at": NOON - timedelta(days=1)}, []),
        (KeyLimits(), {"revoked_at": NOON}, []),
        (KeyLimits(requests_per_minute=1), {}, [Turn("Hi.")] * 99),
        (KeyLimits(spend_per_day=Micros(1)), {}, [Turn("Hi.")] * 99),
        (KeyLimits(), {}, None),
    ],
    ids=["good", "provider-refuses", "expired", "revoked", "rate", "spend", "unreachable"],
)
async def test_keys_are_found_nowhere(tmp_path, caplog, capfd, limits, record, script):
    """Neither in answers nor in logs, receipts, the database, or what is printed."""
    caplog.set_level(logging.DEBUG)
    printed = io.StringIO()
    where = tmp_path / "turnout.db"
    with refusing_base_url() as nowhere, RequestLog(printed) as log:
        async with (
            ScriptedModelServer(script or [], api_key="") as server,
            open_database(where) as database,
        ):
            setup = GatewaySetup(
                books=BooksStore(database),
                replies=RepliesStore(database),
                clock=AtNoon(),
                on_receipt=log.note,
            )
            base = server.base_url if script is not None else nowhere
            catalog = catalog_at(base, PRICED, api_key=PROVIDERS)
            wanted = KeyWith(limits, record, setup, KeysStore(database), OURS)
            async with client_of(catalog, wanted) as client:
                answers = await every_request(client)
                # The write-ahead log is still there while it is open.
                files = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    texts = [f"{part}" for answer in answers for part in answer]
    seen = "\n".join([*texts, caplog.text, printed.getvalue(), *capfd.readouterr()])
    assert len(files) > 4_096
    for secret in SECRETS:
        assert secret not in seen
        assert secret.encode() not in files
        assert secret[4:20] not in seen


async def test_the_values_that_hold_keys_do_not_show_them():
    """Tracebacks and logs show values as they are printed."""
    catalog = catalog_at("http://127.0.0.1:1/v1", PRICED, api_key=PROVIDERS)
    assert PROVIDERS not in repr(catalog)
    assert PROVIDERS not in repr(replace(next(iter(catalog.providers.values())), name="x"))
