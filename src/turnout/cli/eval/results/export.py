"""`turnout eval export`: patches for SWE-bench's own harness."""

import os
from collections.abc import Sequence
from pathlib import Path

import click

from turnout.cli.terminal import plural, safe
from turnout.errors import UsageError
from turnout.evals.instances.export import Prediction, predictions_json, predictions_lines
from turnout.evals.trials.model import Trial
from turnout.evals.trials.store import read_trials

__all__ = ["export"]


@click.command(
    "export",
    epilog="\b\nExamples:\n"
    "  turnout eval export tasks.results.jsonl --arm auto -o preds.json\n"
    "  turnout eval export tasks.results.jsonl -o preds.jsonl",
)
@click.argument("results", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--arm", metavar="NAME", help="Patches of this arm alone.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("preds.json"),
    show_default=True,
    metavar="FILE",
    help="One JSON object, or an object a line where it ends in .jsonl.",
)
def export(*, results: Path, arm: str | None, output: Path) -> None:
    """Write the patches of RESULTS as predictions that SWE-bench's own harness takes.

    Of several tries at an instance the first counts. One JSON object holds one arm.
    """
    chosen = _first_tries(_of(arm, read_trials(results)))
    arms = sorted({trial.arm for trial in chosen})
    lines = output.suffix == ".jsonl"
    if len(arms) > 1 and not lines:
        raise UsageError(
            f"{results} holds several arms: {', '.join(arms)}.",
            mend="Choose one with --arm, or write to a file that ends in .jsonl.",
        )
    made = [Prediction(trial.instance_id, trial.arm, trial.diff) for trial in chosen]
    text = predictions_lines(made) if lines else predictions_json(made)
    _write(output, text)
    click.echo(safe(f"{plural(len(made), 'prediction')} in {output}"))


def _of(arm: str | None, trials: Sequence[Trial]) -> tuple[Trial, ...]:
    chosen = tuple(trial for trial in trials if arm in (None, trial.arm))
    if not chosen:
        known = ", ".join(sorted({trial.arm for trial in trials})) or "none"
        raise UsageError(f"There is no trial of {arm or 'any arm'}.", mend=f"Arms: {known}.")
    return chosen


def _first_tries(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    found: dict[tuple[str, str], Trial] = {}
    for trial in sorted(trials, key=lambda each: each.attempt):
        found.setdefault((trial.arm, trial.instance_id), trial)
    return tuple(found.values())


def _write(path: Path, text: str) -> None:
    made = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        made.write_text(text, "utf-8")
        made.replace(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error}.") from None
    finally:
        made.unlink(missing_ok=True)
