"""Runs one cell of the user's own command by the policy, and judges how it came out."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from trainprobe.collect.thread_history import CellLooks
from trainprobe.ladder.cell_record import CellRecord, record_of
from trainprobe.ladder.outcome import Outcome, Result, of_script
from trainprobe.ladder.pace import Pace
from trainprobe.ladder.policy import Decision, Now, decide, ends_at, outgrown, quiet_long
from trainprobe.ladder.settle import settle
from trainprobe.ladder.standstill import Standstill, asymmetric
from trainprobe.ladder.watch import Watch
from trainprobe.model.evidence import Ended
from trainprobe.model.ranks import name_ranks
from trainprobe.system.interruption import Interruption

USAGE_ERROR = 2  # argparse and click end with it
REASONS = {
    "stopped": "fault",
    "fault": "fault",
    "left": "stall",
    "time_up": "stall",
    "outgrown": "stall",
}


class Followed(Protocol):
    """A running cell, on this host or on several: refreshed by `tick`, looked at by `look`."""

    pace: Pace
    interruption: Interruption
    quiet_s: float

    def tick(self) -> None:
        """Wait for news, some milliseconds at most."""

    def now(self) -> Now:
        """What the policy needs."""

    def look(self) -> CellLooks:
        """Look at everybody who lives."""


def run(watch: Watch, *, largest: bool, hard_s: float) -> Result:
    """Watch the started command until the policy ends the cell, and write everything down."""
    decision, now, clear = follow(watch, largest=largest, hard_s=hard_s)
    if watch.keeper.alive_pids():
        watch.keeper.stop(watch.pace.stop_grace_s, watch.pace.kill_s)
    record = record_of(watch, settle(watch))
    return concluded(watch, record, decision, now, clear=clear, hard_s=hard_s)


def concluded(
    watch: Followed, record: CellRecord, decision: Decision, now: Now, *, clear: bool, hard_s: float
) -> Result:
    """Judge a cell that is over. `decision`, `now` and `clear` are what `follow` returned."""
    silent_s = now.at - now.sign_at
    out_of_time = now.at >= hard_s or silent_s >= watch.pace.stall_s
    cut_off = watch.pace.to_its_end and decision.what == "passed" and out_of_time
    result = _result(record, decision, now, cut_off=cut_off)
    passed_alive = now.sign_at and result.outcome == "passed"
    quiet_s = max(watch.quiet_s, silent_s) if passed_alive else watch.quiet_s
    rhythm = {
        "first_sign_s": record.first_sign_s,
        "quiet_s": round(quiet_s, 2),
        "steps": min((rank.steps for rank in now.ranks), default=0),
    }
    more = {
        "elapsed_s": round(now.at, 2),
        "silent_s": round(max(0.0, silent_s), 2),
        "rhythm": rhythm,
        "to_its_end": decision.what == "ended",
        "usage_error": _refused_arguments(record),
        **result.more,
    }
    tells_all = result.outcome == "timed_out" and clear and len(now.ranks) > 1
    return replace(result, more=more, tells_all=tells_all)


def _refused_arguments(record: CellRecord) -> bool:
    """Whether nothing ran, and every rank that ended by itself has the exit code of a usage
    error.
    """
    own = [ended for ended in record.endings.values() if not ended.by_us and ended.signal != 15]
    return (
        not record.ran
        and bool(own)
        and all(ended.how == "exited" and ended.code == USAGE_ERROR for ended in own)
    )


def follow(watch: Followed, *, largest: bool, hard_s: float) -> tuple[Decision, Now, bool]:
    """Watch until the policy ends the cell. Return the last decision, what it rested on, and
    whether it is clear who holds up whom.
    """
    standstill = Standstill()
    while True:
        watch.tick()
        now = watch.now()
        if watch.interruption.asked:
            return Decision("passed", ""), now, False
        decision = decide(now, watch.pace, largest=largest, hard_s=hard_s)
        if decision.what == "go_on":
            continue
        if decision.what != "look":
            return decision, now, False
        looked = watch.look()
        clear = decision.why == "stopped" or asymmetric(
            looked, {rank.rank: rank for rank in now.ranks if rank.ended is not None}
        )
        if decision.why in ("stopped", "fault"):
            return decision, now, clear
        verdict = standstill.judge(looked, quiet_long=quiet_long(now, watch.pace))
        if verdict == "still":
            return decision, now, clear
        if outgrown(now, watch.pace):
            return Decision("look", "outgrown", decision.ranks), now, clear
        end_s = ends_at(watch.pace, hard_s) if verdict == "look_again" else watch.pace.run_s
        if now.at >= min(end_s, hard_s):
            return Decision("passed", "time_up", decision.ranks), now, False


def _result(record: CellRecord, decision: Decision, now: Now, *, cut_off: bool) -> Result:
    endings = record.endings
    crashed = of_script(endings, record.launcher, command=record.command)
    if crashed is not None:
        reason = "fault" if decision.what == "look" else "ended"
        return replace(crashed, more={"stopped_because": reason})
    if decision.what == "ended":
        return _ended_by_itself(record)
    if decision.what == "passed":
        return _cut_off(decision, now) if cut_off else _passed(decision, now)
    left = [rank for rank, ended in endings.items() if not ended.by_us]
    stuck = sorted(set(decision.ranks) or {rank for rank in endings if rank not in left})
    more = {"stopped_because": _because(decision, now), "outgrown": decision.why == "outgrown"}
    return Result("timed_out", _stall_says(decision, now, endings), tuple(stuck), more)


def _because(decision: Decision, now: Now) -> str:
    if decision.why in ("time_up", "outgrown") and not now.sign_at:
        return "first_output"
    return REASONS.get(decision.why, decision.why)


def _stall_says(decision: Decision, now: Now, endings: dict[int, Ended]) -> str:
    who = name_ranks(decision.ranks, "a rank")
    if decision.why == "stopped":
        return f"{who} was stopped by a signal and did not go on"
    if decision.why == "left":
        others = name_ranks((rank for rank in endings if rank not in decision.ranks), "a rank")
        return f"{who} ended with exit code 0 while {others} still ran and made no progress"
    if decision.why == "outgrown":
        silent_s = now.at - now.sign_at
        return (
            f"no progress for {silent_s:.0f} s while it computes: longer than smaller cells suggest"
        )
    if not now.sign_at:
        return f"no output and no step within {now.at:.0f} s"
    return f"no progress for {now.at - now.sign_at:.0f} s"


def _cut_off(decision: Decision, now: Now) -> Result:
    """The time of the climb or of the cell ran out while its silence was still within the limit:
    neither passed nor failed.
    """
    says = (
        f"its time limit of {now.at:.0f} s was reached; it was still running, without a sign of"
        f" life for {now.at - now.sign_at:.0f} s"
    )
    return Result("not_measured", says, (), {"stopped_because": decision.why or "interrupted"})


def _passed(decision: Decision, now: Now) -> Result:
    steps = min((rank.steps for rank in now.ranks), default=0)
    if decision.why == "steps_seen":
        says = f"every rank made at least {steps} steps"
    elif steps:
        says = f"{steps} steps on every rank within {now.at:.0f} s, and no fault"
    else:
        says = (
            f"no step was seen within {now.at:.0f} s; its ranks still run, and there was no fault"
        )
    return Result("passed", says, (), {"stopped_because": decision.why or "interrupted"})


def _ended_by_itself(record: CellRecord) -> Result:
    """Exit code 0 is an answer only where steps were seen, or where none can be expected."""
    ended, more = "ended by itself with exit code 0", {"stopped_because": "ended"}
    empty = tuple(rank.rank for rank in record.ranks if not rank.steps and rank.empty)
    if empty:
        says = f"{ended} before any step was seen: its loader gave no batch"
        if len(empty) < len(record.ranks):
            says = f"{name_ranks(empty)} {says}"
        return Result("failed", says, empty, more)
    outcome: Outcome = "passed"
    ranks: tuple[int, ...] = ()
    steps = max([*(rank.steps for rank in record.ranks), record.printed])
    if steps:
        says = f"{ended} after {steps} steps"
    elif record.collectives or any(rank.worked for rank in record.ranks):
        says = f"{ended}; it made no optimizer step, but batches or collectives"
    elif any(rank.uncounted for rank in record.ranks):
        says = f"{ended}; its steps are compiled and could not be counted"
    elif any(rank.torch for rank in record.ranks):
        outcome, says = "failed", f"{ended} before any step was seen"
        ranks = tuple(rank.rank for rank in record.ranks)
    elif any(rank.witnessed for rank in record.ranks):
        outcome, says = "not_measured", f"{ended}; it did not use torch, so no steps can be counted"
    else:
        outcome = "not_measured"
        says = f"{ended}; nothing watched it from inside, and its output shows no step"
    return Result(outcome, says, ranks, more)
