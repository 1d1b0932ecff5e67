"""The mechanisms of failure, by family. Importing a module enters what it defines."""

from tests.gallery.live.generated.fault import ALL
from tests.gallery.live.generated.mechanisms import (
    calls,
    ended,
    file_locks,
    healthy,
    process_locks,
    queues,
    services,
    signals,
    slow,
    start,
)

__all__ = [
    "ALL",
    "calls",
    "ended",
    "file_locks",
    "healthy",
    "process_locks",
    "queues",
    "services",
    "signals",
    "slow",
    "start",
]
