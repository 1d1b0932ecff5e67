"""A launcher that says that all its workers are done, while the log of another host ends with the
loss of a peer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from trainprobe.facts import Facts, LogEvent, LogJob, LogProgress
from trainprobe.waits.log_suspects import ids_of, log_group
from trainprobe.waits.suspects import SuspectGroup

# torch/distributed/elastic/agent/server/api.py and pytorch/elastic before it
_ALL_DONE = re.compile(r"(?i)\ball workers (?:successfully )?finished|worker group success")


def left_alone(
    told: Sequence[LogProgress], events: Sequence[LogEvent]
) -> tuple[LogProgress, LogEvent] | None:
    """(the launcher's word, the other's loss); None where each log tells of an end, or none does.
    An agent ends with its own workers, and each host has one.
    """
    done = [one for one in told if one.finished and _ALL_DONE.search(one.finished_line)]
    ended = {_file(one.seen_at) for one in told if one.finished}
    lost = [
        event
        for event in events
        if event.event == "connection-closed" and _file(event.seen_at) not in ended
    ]
    return (done[0], lost[-1]) if done and lost else None


def alone_group(facts: Facts, job: LogJob) -> SuspectGroup | None:
    """The workers of the host that is done."""
    told = facts.of(LogProgress, cell=job.cell)
    alone = left_alone(told, facts.of(LogEvent, cell=job.cell))
    if alone is None:
        return None
    done, lost = alone
    says = (
        f"One launcher says that its workers are done ({done.seen_at}), and others have lost a peer"
        f" and tell of no end ({lost.seen_at})"
    )
    return log_group(job, "left", says, "hang", ids_of(alone))


def _file(seen_at: str) -> str:
    return seen_at.rpartition(":")[0]
