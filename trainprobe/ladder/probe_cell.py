"""Runs one cell of a probe: until all ranks have answered, one fails, or the deadline passes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Protocol

from trainprobe.ladder.outcome import Answered, Result, of_probe
from trainprobe.ladder.pace import Pace
from trainprobe.ladder.settle import Settled, settle
from trainprobe.ladder.watch import Watch
from trainprobe.model.evidence import Ended
from trainprobe.system.interruption import Interruption


class Followed(Protocol):
    """A running probe, on this host or with ranks on several: refreshed by `tick`."""

    pace: Pace
    interruption: Interruption

    @property
    def elapsed_s(self) -> float:
        """How long it has run."""

    def tick(self) -> None:
        """Wait for news, some milliseconds at most."""

    def running(self) -> bool:
        """Whether any of its processes still runs."""

    def stopped_for_s(self) -> float:
        """The seconds for which the longest stopped process has been stopped."""

    def answer_failed(self) -> bool:
        """Whether a process has ended without the answer yes."""


def run(watch: Watch, deadline_s: float) -> Result:
    """Watch the started probe to its end and record everything."""
    missed = follow(watch, deadline_s)
    if watch.keeper.running() and not watch.interruption.asked:
        watch.look()
    if watch.keeper.alive_pids():
        watch.keeper.stop(watch.pace.stop_grace_s, watch.pace.kill_s)
    settled = settle(watch, deadline_phase="deadline" if missed else "")
    return result_of(answers_of(settled), measures_of(settled), bad_lines_of(settled), deadline_s)


def follow(watch: Followed, deadline_s: float) -> bool:
    """Wait until the probe is over. Return whether its deadline has passed."""
    fault_at: float | None = None
    while watch.running() and not watch.interruption.asked:
        watch.tick()
        if watch.elapsed_s >= deadline_s:
            return watch.running()
        if watch.stopped_for_s() >= watch.pace.stopped_s:
            return True
        if fault_at is None and watch.answer_failed():
            fault_at = time.monotonic()
        # The other ranks wait for the one that failed: they get time to report it, but not their
        # whole deadline.
        if fault_at is not None and time.monotonic() - fault_at >= watch.pace.echo_s:
            return False
    return False


def answers_of(settled: Settled) -> tuple[Answered, ...]:
    """What each process of the probe answered, and how it ended."""
    ranks = [mate.member for mate in settled.team if mate.is_rank]
    by_rank = {member.rank: settled.endings[member] for member in ranks}
    never = Ended("not_run", reason="it was never started")
    return tuple(
        Answered(rank, *events.answer, by_rank.get(rank, never), events.open_phase)
        for rank, events in settled.events.items()
    )


def measures_of(settled: Settled) -> list[dict[str, Any]]:
    """The measures, as rows of the report."""
    return [row for events in settled.events.values() for row in events.measures()]


def bad_lines_of(settled: Settled) -> int:
    """The number of malformed lines in their event files."""
    return sum(events.bad_lines for events in settled.events.values())


def result_of(
    answers: Sequence[Answered], measures: Sequence[Any], bad_lines: int, deadline_s: float
) -> Result:
    """Judge the answers, and add the measures."""
    result = of_probe(answers, deadline_s)
    says = result.says
    if bad_lines:
        says = f"{says}; " if says else ""
        says += f"{bad_lines} lines of its events are malformed"
    return Result(result.outcome, says, result.ranks, {"measures": list(measures)[:200]})
