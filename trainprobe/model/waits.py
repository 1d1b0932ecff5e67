"""The wait-for graph: nodes that can wait or be waited for, and the edges between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Mapping, Tuple

NodeKind = Literal[
    "thread",
    "process",
    "rank",
    "stream",
    "collective",
    "lock",
    "queue",
    "peer",
    "filesystem",
    "service",
    "scheduler",
]
SuspectHow = Literal[
    "never-joined", "stuck-inside", "left", "failed-first", "not-visible", "slow", "cycle"
]


@dataclass(frozen=True)
class Node:
    """`key` tells two nodes of one kind apart: a rank's number, a pid, a lock's path, a
    collective's name.
    """

    kind: NodeKind
    key: str

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


@dataclass(frozen=True)
class Wait:
    """`waiter` waits for `awaited`; `how` says it in words, `weight` below 1 where the awaited
    is only likely.
    """

    waiter: Node
    awaited: Node
    how: str
    since_s: float = 0.0
    weight: float = 1.0
    evidence: Tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
