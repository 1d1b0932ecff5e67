"""Which node or link is at fault, by trying pairs: the search and what its tries show. Pure;
whoever tries the groups is elsewhere (trainprobe.ready.isolate).
"""

from __future__ import annotations

from trainprobe.isolation.pairing import rounds_for_all
from trainprobe.isolation.search import next_round
from trainprobe.isolation.trials import (
    Link,
    LinkFault,
    NodeFault,
    Plan,
    Round,
    Shared,
    SizeFault,
    Try,
    Verdict,
)
from trainprobe.isolation.verdict import conclude

__all__ = [
    "Link",
    "LinkFault",
    "NodeFault",
    "Plan",
    "Round",
    "Shared",
    "SizeFault",
    "Try",
    "Verdict",
    "conclude",
    "next_round",
    "rounds_for_all",
]
