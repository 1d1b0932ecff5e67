"""Connections between ranks that rest, of which thousands of ranks have millions: once they have
told for how long the ranks are silent, nobody asks for more than some of them.
"""

from __future__ import annotations

from trainprobe.collect.collectors.sockets import Connection
from trainprobe.facts.processes import ProcessState
from trainprobe.model.facts import Fact


def without_resting(facts: list[Fact]) -> list[Fact]:
    """Leave out the connections between two ranks over which nothing moves and in whose descriptor
    no rank waits. Of each address of a process one stays: from there it is reached.
    """
    ranks: set[tuple[str, int]] = set()
    awaited: set[tuple[str, int, int]] = set()
    for fact in facts:
        if isinstance(fact, ProcessState):
            awaited.update((fact.cell, fact.pid, fd) for fd in fact.blocked.descriptors)
            if fact.role == "rank":
                ranks.add((fact.cell, fact.pid))
    known: set[tuple[str, int, str]] = set()
    kept: list[Fact] = []
    for fact in facts:
        if isinstance(fact, Connection) and _rests(fact):
            address = (fact.cell, fact.pid, fact.local.rpartition(":")[0])
            between_ranks = (fact.cell, fact.pid) in ranks and (fact.cell, fact.peer_pid) in ranks
            told = (fact.cell, fact.pid, fact.fd) not in awaited and address in known
            known.add(address)
            if between_ranks and told:
                continue
        kept.append(fact)
    return kept


def _rests(fact: Connection) -> bool:
    moves = fact.rx_queue or fact.tx_queue or fact.retransmits or fact.timer
    return fact.state == "ESTAB" and fact.peer_rank is not None and not moves
