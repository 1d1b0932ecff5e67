"""How long a main thread has waited, also where somebody looked at it meanwhile.

A look that stops a process (py-spy, a debugger) wakes each of its threads for a moment, so that the scheduler's own age of the sleep
begins anew. Two things survive that: the silence of the connections to the other ranks, and the count of voluntary switches, which rises
by two with each such look and by more with each wait that ended (seen on Linux 6.18 with py-spy 0.4).
"""

from __future__ import annotations

from dataclasses import replace

from trainprobe.facts.main_threads import MainThread
from trainprobe.facts.processes import ProcessState
from trainprobe.facts.sockets import Connection
from trainprobe.model.facts import Fact

SWITCHES_PER_LOOK = 2
IDLE_SHARE = 0.02  # CPU seconds per second that a thread which is only looked at may use
IN_COLLECTIVE = "comm-wait"


def join_sleep(facts: list[Fact]) -> list[Fact]:
    """Raise `asleep_s` of processes that are seen to have waited for longer."""
    mains = {(fact.cell, fact.pid): fact for fact in facts if isinstance(fact, MainThread)}
    silent: dict[tuple[str, int], list[Connection]] = {}
    for fact in facts:
        if isinstance(fact, Connection) and fact.peer_rank is not None and fact.silent_s is not None:
            silent.setdefault((fact.cell, fact.pid), []).append(fact)
    return [_aged(fact, mains.get((fact.cell, fact.pid)), silent.get((fact.cell, fact.pid), [])) if isinstance(fact, ProcessState) else fact for fact in facts]


def _aged(process: ProcessState, main: MainThread | None, connections: list[Connection]) -> ProcessState:
    ages = [process.asleep_s] if process.asleep_s is not None else []
    evidence = process.evidence
    if slept_through(process) and main is not None and main.moved is False:
        ages.append(process.looked_s or 0.0)
    peers = [one for one in connections if one.peer_pid != process.pid]
    if main is not None and main.leaf == IN_COLLECTIVE and main.moved is not True and peers:
        last = min(peers, key=lambda one: one.silent_s or 0.0)
        ages.append(last.silent_s or 0.0)
        evidence = tuple(dict.fromkeys((*evidence, *last.evidence)))
    if process.age_s is not None:  # the kernel counts a connection's silence from before its first byte: nobody waits for longer than it lives
        ages = [min(age_s, process.age_s) for age_s in ages]
    age_s = max(ages, default=None)
    return process if age_s == process.asleep_s else replace(process, asleep_s=age_s, evidence=evidence)


def slept_through(process: ProcessState) -> bool:
    """Say whether the main thread ran between the looks for nothing but the looks themselves."""
    if process.switches is None or process.looked_s is None or process.state == "R":
        return False
    return process.switches <= SWITCHES_PER_LOOK * (process.looks - 1) and (process.cpu_s or 0.0) <= max(0.01, IDLE_SHARE * process.looked_s)
