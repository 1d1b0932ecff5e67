"""A launcher that was sent a signal before anything failed: by a Ctrl-C, or from outside."""

from __future__ import annotations

from dataclasses import replace

from trainprobe.facts import Facts, LogEvent, LogJob, LogProgress
from trainprobe.waits.absentees import given_up
from trainprobe.waits.collective_waits import timed_out
from trainprobe.waits.log_suspects import log_group
from trainprobe.waits.suspects import SuspectGroup

PRESSED_SIGNALS = frozenset({"2", "SIGINT"})
_SIGNALS = {1: "SIGHUP", 3: "SIGQUIT", 9: "SIGKILL", 10: "SIGUSR1", 12: "SIGUSR2", 15: "SIGTERM"}


def interrupted(facts: Facts, job: LogJob) -> SuspectGroup | None:
    """Somebody pressed Ctrl-C, as the launcher says that was sent it, and nothing had failed."""
    sent = [
        event
        for event in facts.of(LogEvent, cell=job.cell)
        if event.event == "launcher-signalled"
        and event.captured.get("signal", "").removeprefix("Signals.") in PRESSED_SIGNALS
    ]
    if not sent or timed_out(facts, job.cell) or given_up(facts, job.cell):
        return None
    told = facts.of(LogProgress, cell=job.cell)
    step = max((one.step for one in told if one.step is not None), default=None)
    after = f" after step {step}" if step is not None else ""
    says = f"Somebody pressed Ctrl-C{after} ({sent[0].seen_at}), and nothing had failed before"
    return replace(log_group(job, "stuck-inside", says, "hang", sent[0].evidence), waits=True)


def signalled(facts: Facts, job: LogJob) -> SuspectGroup | None:
    """The launcher says that it was sent a signal and ends its workers, and nothing had failed."""
    sent = [
        event
        for event in facts.of(LogEvent, cell=job.cell)
        if event.event == "launcher-signalled"
        and event.captured.get("signal", "").removeprefix("Signals.") not in PRESSED_SIGNALS
    ]
    if not sent or timed_out(facts, job.cell) or given_up(facts, job.cell):
        return None
    says = (
        f"The launcher was sent {_signal_name(sent[0].captured.get('signal', ''))} and ended its"
        f" workers ({sent[0].seen_at}), and nothing had failed before"
    )
    return log_group(job, "failed-first", says, "crash", sent[0].evidence)


def _signal_name(told: str) -> str:
    """`SIGHUP` of `Signals.SIGHUP`, and of `1`, as Python prints it from 3.11 on."""
    number = int(told) if told.isdecimal() else 0
    return _SIGNALS.get(number, told.removeprefix("Signals.") or "a signal")
