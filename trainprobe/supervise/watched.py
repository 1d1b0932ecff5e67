"""What was seen of a job, from its start to its end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainprobe.collect.members import Member
    from trainprobe.model.evidence import Ended
    from trainprobe.targets.jobs import LiveJob


@dataclass
class Watched:
    """What was seen of a job: `endings` are those of its ranks and launcher, in their order.

    `status` is the wait status of the command. `steps` holds the newest step of each rank.
    `policy` is what was done to it: "", kill or requeue. `asked_to_end`: by a signal that was not
    ours. `alarms` counts the stalls that were reported.
    """

    status: int = 0
    job: LiveJob | None = None
    endings: list[tuple[Member, Ended]] = field(default_factory=list)
    policy: str = ""
    asked_to_end: bool = False
    alarms: int = 0
    steps: dict[str, int] = field(default_factory=dict)
    looks: int = 0
    looks_cpu_s: float = 0.0
