"""An evaluation as it happens: a table that stays on a terminal, plain lines elsewhere."""

from collections.abc import Callable, Iterator
from typing import Final, Protocol, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from turnout.cli.terminal import plural, safe, takes_colour
from turnout.core.clock import Clock
from turnout.core.money import Micros, format_usd
from turnout.evals.trials.board import ArmStanding, Board, Running
from turnout.evals.trials.model import Trial

__all__ = ["Watch", "board_lines", "trial_line", "watch_on"]

_REFRESH: Final = 2
"""Redraws per second."""
_EVERY: Final = 60.0
"""Seconds between two tables where lines stand."""
_MOST_RUNNING: Final = 8


class Watch(Protocol):
    """Shows how far an evaluation is."""

    def say(self, text: str) -> None:
        """Show a line of its own."""
        ...

    def ended(self, trial: Trial) -> None:
        """Show what became of a unit."""
        ...

    def close(self) -> None:
        """Leave the screen to what follows."""
        ...


def board_lines(board: Board, now: float) -> Iterator[str]:
    """Yield a line for each arm, then one for each unit that is worked on."""
    left = board.seconds_left
    width = max((len(name) for name in board.arms), default=0)
    for arm in board.arms.values():
        yield _arm_line(arm, width)
    if left is not None and board.done < board.total:
        yield f"about {_duration(left)} left"
    running = list(board.oldest())
    for each in running[:_MOST_RUNNING]:
        yield _running_line(each, now)
    if len(running) > _MOST_RUNNING:
        yield f"  and {len(running) - _MOST_RUNNING} more"


def trial_line(trial: Trial, board: Board) -> str:
    """Return what became of a unit, in one line."""
    name = trial.instance_id if len(board.arms) == 1 else f"{trial.instance_id}, {trial.arm}"
    if trial.attempt > 1:
        name = f"{name}, try {trial.attempt}"
    ended = f" ({trial.outcome}, {plural(trial.steps, 'step')}, {trial.seconds:.0f} s)"
    detail = "" if trial.grade == "resolved" else f": {trial.detail}"
    shown = f"{trial.grade}{ended if trial.outcome else ''}{detail}"
    return f"[{board.done}/{board.total}] {name}: {shown}"


def watch_on(stream: TextIO, board: Board, clock: Clock, *, colour: bool) -> Watch:
    """Return what suits a stream: a table that stays on a terminal, plain lines elsewhere."""
    if stream.isatty():
        allowed = takes_colour(stream, allowed=colour)
        console = Console(file=stream, no_color=not allowed, highlight=False)
        return _LiveWatch(console, board, clock)

    def write(line: str) -> None:
        stream.write(f"{line}\n")
        stream.flush()

    return _PlainWatch(write, board, clock)


class _PlainWatch:
    """Writes a line for each unit that has ended, and now and then how far the arms are."""

    def __init__(self, write: Callable[[str], None], board: Board, clock: Clock) -> None:
        self._write = write
        self._board = board
        self._clock = clock
        self._told = clock.monotonic()

    def say(self, text: str) -> None:
        self._write(safe(text))

    def ended(self, trial: Trial) -> None:
        self.say(trial_line(trial, self._board))
        now = self._clock.monotonic()
        if now - self._told >= _EVERY:
            self._told = now
            for line in board_lines(self._board, now):
                self.say(f"  {line}")

    def close(self) -> None:
        """Do nothing: every line stands."""


class _LiveWatch:
    """Lines as they come, above a table that is drawn anew."""

    def __init__(self, console: Console, board: Board, clock: Clock) -> None:
        self._console = console
        self._board = board
        self._clock = clock
        self._live = Live(
            console=console,
            get_renderable=self._table,
            refresh_per_second=_REFRESH,
            transient=True,
        )
        self._live.start()

    def say(self, text: str) -> None:
        self._console.print(Text(safe(text)))

    def ended(self, trial: Trial) -> None:
        style = "green" if trial.grade == "resolved" else ""
        self._console.print(Text(safe(trial_line(trial, self._board)), style=style))

    def close(self) -> None:
        self._live.stop()

    def _table(self) -> Text:
        lines = board_lines(self._board, self._clock.monotonic())
        return Text("\n".join(safe(line) for line in lines), no_wrap=True, overflow="ellipsis")


def _arm_line(arm: ArmStanding, width: int) -> str:
    rate = ""
    if arm.graded:
        low, high = arm.interval.low, arm.interval.high
        rate = f" ({low:.0%} to {high:.0%})"
    spent = format_usd(arm.spent) + (" and more" if arm.unpriced and arm.spent else "")
    cost = "unpriced" if arm.unpriced and not arm.spent else spent
    left = f"{arm.done}/{arm.total} done"
    return f"{arm.name:{width}}  {left}, {arm.resolved} resolved{rate}, {cost}"


def _running_line(running: Running, now: float) -> str:
    unit = running.unit
    parts = [f"  {unit.instance_id} · {unit.arm}"]
    if running.step:
        parts.append(f"step {running.step}")
    if running.tool:
        parts.append(running.tool)
    parts.append(_duration(now - running.since))
    if running.cost:
        parts.append(format_usd(Micros(running.cost)))
    return " · ".join(parts)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
