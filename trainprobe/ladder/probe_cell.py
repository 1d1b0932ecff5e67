"""Runs one cell of a probe: until all have answered, one of them fails, or the deadline has passed."""

from __future__ import annotations

import time

from trainprobe.ladder import events
from trainprobe.ladder.outcome import Answered, Result, of_probe
from trainprobe.ladder.settle import Settled, settle
from trainprobe.ladder.watch import Watch
from trainprobe.model.evidence import Ended


def run(watch: Watch, deadline_s: float) -> Result:
    """Watch the started probe to its end and write everything down."""
    missed = _wait(watch, deadline_s)
    if watch.keeper.running() and not watch.interruption.asked:
        watch.look()
    if watch.keeper.alive_pids():
        watch.keeper.stop(watch.pace.stop_grace_s, watch.pace.kill_s)
    settled = settle(watch, deadline_phase="deadline" if missed else "")
    return result_of(settled, deadline_s)


def _wait(watch: Watch, deadline_s: float) -> bool:
    """Return when nothing is left to wait for; True when that is because the deadline has passed."""
    fault_at: float | None = None
    while watch.keeper.running() and not watch.interruption.asked:
        watch.tick()
        if watch.elapsed_s >= deadline_s:
            return watch.keeper.running()
        if watch.stopped_for_s() >= watch.pace.stopped_s:
            return True
        if fault_at is None and _somebody_failed(watch):
            fault_at = time.monotonic()
        # The others wait for it now: they get the time to say so themselves, but not their whole deadline.
        if fault_at is not None and time.monotonic() - fault_at >= watch.pace.echo_s:
            return False
    return False


def _somebody_failed(watch: Watch) -> bool:
    for spec in watch.launch.specs:
        ended = watch.keeper.children[spec.key].ended
        if ended is not None and events.read(watch.launch.events[spec.rank]).answer[0] != "yes":
            return True
    return False


def result_of(settled: Settled, deadline_s: float) -> Result:
    """Judge the answers, and add what was measured."""
    answered = []
    by_rank = {mate.member.rank: settled.endings[mate.member] for mate in settled.team if mate.is_rank}
    for rank, said in settled.events.items():
        answer, says = said.answer
        answered.append(Answered(rank, answer, says, by_rank.get(rank, Ended("not_run", reason="it was never started")), said.open_phase))
    result = of_probe(answered, deadline_s)
    measures = [row for said in settled.events.values() for row in said.measures()]
    bad_lines = sum(said.bad_lines for said in settled.events.values())
    says = result.says
    if bad_lines:
        says = f"{says}; {bad_lines} lines of its events are nonsense" if says else f"{bad_lines} lines of its events are nonsense"
    return Result(result.outcome, says, result.ranks, {"measures": measures[:200]})
