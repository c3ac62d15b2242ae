"""Runs mini-swe-agent on one checkout, by the Python of an environment that has it.

    PYTHON mini.py CHECKOUT BASE_URL MODEL SECONDS < task

Its own text-based configuration, every command in its own bubblewrap environment without network.
Prints one JSON object: how it ended, its model calls, and the diff in base64.
"""

import json
import sys
from pathlib import Path

import yaml
from minisweagent import package_dir
from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.extra.bubblewrap import (
    BubblewrapEnvironment,
    BubblewrapEnvironmentConfig,
)
from minisweagent.models.litellm_textbased_model import LitellmTextbasedModel

_DIFF = "git add -A >/dev/null 2>&1; git diff --cached --binary HEAD | base64 -w0"


def main(checkout: str, base_url: str, model: str, seconds: str) -> None:
    """Work, then say what came of it."""
    config = yaml.safe_load((Path(package_dir) / "config" / "mini_textbased.yaml").read_text())
    walls = [*BubblewrapEnvironmentConfig().wrapper_args, "--unshare-net", "--unshare-pid"]
    walls += ["--ro-bind", sys.prefix, sys.prefix]
    path = f"{sys.prefix}/bin:/usr/local/bin:/usr/bin:/bin"
    variables = {
        **config["environment"]["env"],
        "PATH": path,
        "PYTHONPATH": f"{checkout}/src:{checkout}",
    }
    environment = BubblewrapEnvironment(
        cwd=checkout, env=variables, timeout=120, wrapper_args=walls
    )
    language_model = LitellmTextbasedModel(
        model_name=f"openai/{model}",
        cost_tracking="ignore_errors",
        observation_template=config["model"]["observation_template"],
        format_error_template=config["model"]["format_error_template"],
        model_kwargs={
            "drop_params": True,
            "api_base": base_url,
            "api_key": "unused",
            "timeout": float(seconds),
        },
    )
    settings = {k: v for k, v in config["agent"].items() if k.endswith("_template")}
    agent = DefaultAgent(
        language_model,
        environment,
        **settings,
        step_limit=40,
        cost_limit=0.0,
        wall_time_limit_seconds=int(float(seconds)),
    )
    ended = "broken"
    try:
        ended = agent.run(sys.stdin.read()).get("exit_status", "")
    finally:
        diff = environment.execute({"command": _DIFF})["output"].strip()
        print(json.dumps({"ended": ended, "calls": agent.n_calls, "diff": diff}))


if __name__ == "__main__":
    main(*sys.argv[1:])
