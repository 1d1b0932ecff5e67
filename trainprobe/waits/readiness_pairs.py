"""What the traffic between pairs of nodes adds to the readiness of a job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainprobe.facts import Facts
from trainprobe.waits.suspects import SuspectGroup


def pair_groups(facts: Facts) -> tuple[SuspectGroup, ...]:
    """A group for each node and each link that fails with known-good partners."""
    del facts
    return ()


def untried(facts: Facts, nodes: Sequence[str]) -> tuple[str, ...]:
    """A sentence where several nodes were asked and no traffic between them was tried."""
    del facts, nodes
    return ()


def pair_rows(facts: Facts, nodes: Sequence[str]) -> list[dict[str, Any]]:
    """The traffic between nodes as rows of the report's checks."""
    del facts, nodes
    return []


def isolation_told(facts: Facts) -> dict[str, Any]:
    """What the search among pairs of nodes found, in plain data; empty where there was none."""
    del facts
    return {}
