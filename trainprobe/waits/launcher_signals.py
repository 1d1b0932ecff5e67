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
    sent = _first_sent(facts, job.cell, pressed=True)
    if sent is None:
        return None
    told = facts.of(LogProgress, cell=job.cell)
    step = max((one.step for one in told if one.step is not None), default=None)
    after = f" after step {step}" if step is not None else ""
    says = f"Somebody pressed Ctrl-C{after} ({sent.seen_at}), and nothing had failed before"
    return replace(log_group(job, "stuck-inside", says, "hang", sent.evidence), waits=True)


def signalled(facts: Facts, job: LogJob) -> SuspectGroup | None:
    """The launcher says that it was sent a signal and ends its workers, and nothing had failed."""
    sent = _first_sent(facts, job.cell, pressed=False)
    if sent is None:
        return None
    says = (
        f"The launcher was sent {_signal_name(sent.captured.get('signal', ''))} and ended its"
        f" workers ({sent.seen_at}), and nothing had failed before"
    )
    return log_group(job, "failed-first", says, "crash", sent.evidence)


def _first_sent(facts: Facts, cell: str, *, pressed: bool) -> LogEvent | None:
    """The launcher's first word of such a signal; None also where anything had failed before."""
    sent = [
        event
        for event in facts.of(LogEvent, cell=cell)
        if event.event == "launcher-signalled"
        and pressed
        is (event.captured.get("signal", "").removeprefix("Signals.") in PRESSED_SIGNALS)
    ]
    failed = sent and (timed_out(facts, cell) or given_up(facts, cell))
    return sent[0] if sent and not failed else None


def _signal_name(told: str) -> str:
    """`SIGHUP` of `Signals.SIGHUP`, and of `1`, as Python prints it from 3.11 on."""
    number = int(told) if told.isdecimal() else 0
    return _SIGNALS.get(number, told.removeprefix("Signals.") or "a signal")
