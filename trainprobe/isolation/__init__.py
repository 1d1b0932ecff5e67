"""Finds the node or link at fault by trying pairs: the search, and the conclusion from its tries.
Pure; trainprobe.ready.isolate makes the tries.
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
