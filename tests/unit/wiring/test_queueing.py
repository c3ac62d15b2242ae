"""A queue as the service is set up with one."""

from pathlib import Path

import pytest

from turnout.errors import ConfigError
from turnout.settings import load_settings
from turnout.testing.model_server import ScriptedModelServer
from turnout.wiring.serving.service import Served, open_serving

QUEUE = '[service.queue]\nurl_env = "QUEUE_URL"\nkey = "queue"\n'


async def test_nothing_is_served_with_a_queue_whose_key_is_not_there(tmp_path: Path) -> None:
    """The error says how it is made: nobody sends that key."""
    (tmp_path / "turnout.toml").write_text(QUEUE)
    served = Served("127.0.0.1", 0, roles=frozenset({"api"}), consumes=True)
    async with ScriptedModelServer([], models=["m"]) as model:
        environment = {
            "TURNOUT_HOME": str(tmp_path / "home"),
            "LLM_BASE_URL": model.base_url,
            "LLM_MODEL": "m",
        }
        settings = load_settings(environment=environment, directory=tmp_path)
        with pytest.raises(ConfigError, match=r"service\.queue\.key.*no key 'queue'") as refused:
            async with open_serving(settings, served, lambda _: None):
                pytest.fail("It serves.")
    assert refused.value.mend == "Make it with `turnout keys create queue --role member`."
