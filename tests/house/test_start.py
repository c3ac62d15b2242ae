"""What a user waits for before anything happens."""

import subprocess
import sys
import time

IMPORT_SECONDS = 0.1
HELP_SECONDS = 0.3
TRIES = 12


def best_of(tries: int, *argv: str) -> float:
    """Return the fastest of several runs: the machine's noise only ever adds."""
    best = float("inf")
    for _ in range(tries):
        start = time.perf_counter()
        subprocess.run([sys.executable, *argv], check=True, capture_output=True, timeout=60)
        best = min(best, time.perf_counter() - start)
    return best


def test_importing_the_package_takes_no_time() -> None:
    """`import turnout` stays within its budget beyond the bare interpreter."""
    bare = best_of(TRIES, "-c", "pass")
    assert best_of(TRIES, "-c", "import turnout") - bare <= IMPORT_SECONDS


def test_help_appears_at_once() -> None:
    """`turnout --help` stays within its budget."""
    assert best_of(TRIES, "-m", "turnout", "--help") <= HELP_SECONDS


def test_help_loads_no_room() -> None:
    """Only the command line itself is imported before a command is chosen."""
    probe = (
        "import sys, turnout.cli.main; "
        "print([m for m in sys.modules if m.startswith('turnout.') and "
        "m.split('.')[1] not in ('cli', 'errors')])"
    )
    run = subprocess.run(
        [sys.executable, "-c", probe], check=True, capture_output=True, text=True, timeout=60
    )
    assert run.stdout.strip() == "[]"


def test_commands_that_only_look_load_no_engine() -> None:
    """What runs agents, serves models or lists prices is for the commands that do."""
    probe = (
        "import sys, turnout.cli.runs; "
        "print({'turnout.gateway.engine', 'turnout.runs.worker', 'turnout.sandbox.bubblewrap', "
        "'genai_prices', 'starlette'} & set(sys.modules))"
    )
    run = subprocess.run(
        [sys.executable, "-c", probe], check=True, capture_output=True, text=True, timeout=60
    )
    assert run.stdout.strip() == "set()"
