"""How long a main thread has waited, also where somebody looked at it meanwhile, and for how long
it has got no further.

A look that stops a process (py-spy, a debugger) wakes each of its threads for a moment, so that the
scheduler's own age of the sleep begins anew. Two things survive that: the silence of the
connections to the other ranks, and the count of voluntary switches, which rises by two with each
such look and by more with each wait that ended (seen on Linux 6.18 with py-spy 0.4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trainprobe.collect.collectors.sockets import Connection
from trainprobe.facts.jobs import Job
from trainprobe.facts.main_threads import MainThread
from trainprobe.facts.processes import ProcessState
from trainprobe.model.facts import Fact
from trainprobe.stacks.rules import RPC
from trainprobe.stacks.stillness import Track, slept_through, stillness

IN_COLLECTIVE = "comm-wait"
LATE_S = 0.5
"""Connections that were looked at so long before the last look say nothing of the time in
between.
"""


def join_sleep(facts: list[Fact]) -> list[Fact]:
    """Raise `asleep_s` of processes that are seen to have waited for longer, and judge the
    stillness of each.
    """
    mains = {(fact.cell, fact.pid): fact for fact in facts if isinstance(fact, MainThread)}
    jobs = {fact.cell: fact for fact in facts if isinstance(fact, Job)}
    silent: dict[tuple[str, int], list[Connection]] = {}
    for fact in facts:
        if (
            isinstance(fact, Connection)
            and fact.peer_rank is not None
            and fact.silent_s is not None
            and fact.peer_pid != fact.pid
        ):
            silent.setdefault((fact.cell, fact.pid), []).append(fact)
    return [
        (
            _aged(
                fact,
                mains.get((fact.cell, fact.pid)),
                silent.get((fact.cell, fact.pid), []),
                jobs.get(fact.cell),
            )
            if isinstance(fact, ProcessState)
            else fact
        )
        for fact in facts
    ]


def _aged(
    process: ProcessState,
    main: MainThread | None,
    peers: Sequence[Connection],
    job: Job | None,
) -> ProcessState:
    track = _track(process, main, peers, job)
    ages = [process.asleep_s] if process.asleep_s is not None else []
    evidence = process.evidence
    if slept_through(track) and track.same_place:
        ages.append(track.span_s)
    # torch's RPC answers through shared memory: its connections are silent whatever it does
    joins = main is not None and main.leaf == IN_COLLECTIVE and main.op != RPC
    if joins and main is not None and main.moved is not True and peers:
        last = min(peers, key=lambda one: one.silent_s or 0.0)
        ages.append(last.silent_s or 0.0)
        evidence = tuple(dict.fromkeys((*evidence, *last.evidence)))
    # the kernel counts a connection's silence from before its first byte: nobody waits for longer
    # than it lives
    if process.age_s is not None:
        ages = [min(age_s, process.age_s) for age_s in ages]
    return replace(
        process, asleep_s=max(ages, default=None), evidence=evidence, stillness=stillness(track)
    )


def _track(
    process: ProcessState,
    main: MainThread | None,
    peers: Sequence[Connection],
    job: Job | None,
) -> Track:
    # Who polls a key talks to the store all the time, and to nobody else.
    store = job.store_ports if job is not None else frozenset[str]()
    carry = [
        one
        for one in peers
        if not {one.local.rpartition(":")[2], one.remote.rpartition(":")[2]} & store
    ]
    since_s = [
        max(0.0, (process.looked_at or 0.0) - one.at) if one.at and process.looked_at else 0.0
        for one in carry
    ]
    return Track(
        same_place=None if main is None or main.moved is None else not main.moved,
        looks=process.looks,
        span_s=process.looked_s or 0.0,
        asleep_s=process.asleep_s,
        switches=process.switches,
        cpu_s=process.cpu_s,
        runs=process.state == "R",
        silent_s=min(
            ((one.silent_s or 0.0) + since for one, since in zip(carry, since_s, strict=True)),
            default=None,
        ),
        telling=job is not None
        and job.backend == "gloo"
        and all(since <= LATE_S for since in since_s),
        age_s=process.age_s,
    )
