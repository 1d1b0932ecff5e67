"""Stores that a job made for itself, beside the one that its launcher told the ranks of."""

from __future__ import annotations

from dataclasses import replace

from trainprobe.collect.collectors.sockets import Connection
from trainprobe.facts.jobs import Job
from trainprobe.model.facts import Fact


def join_own_stores(facts: list[Fact]) -> list[Fact]:
    """Tell each job the ports of its own stores: who keeps one is a client of it, too, and no other
    process connects to itself over TCP.
    """
    ports: dict[str, set[str]] = {}
    for fact in facts:
        if isinstance(fact, Connection) and fact.peer_pid == fact.pid and fact.kind == "tcp":
            ends = (fact.local, fact.remote)
            ports.setdefault(fact.cell, set()).update(end.rpartition(":")[2] for end in ends)
    return [
        replace(fact, own_stores=frozenset(ports[fact.cell]))
        if isinstance(fact, Job) and fact.cell in ports
        else fact
        for fact in facts
    ]
