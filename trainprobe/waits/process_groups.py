"""A job of several groups of processes, such as the steps of SLURM, each a world of its own:
which of them speaks, and how the others are.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainprobe.facts import Job
from trainprobe.model.diagnosis import Verdict
from trainprobe.model.evidence import LIVE_CELL
from trainprobe.waits.live import LiveView

_SEVERITY: Sequence[Verdict] = ("hung", "crashed", "slow", "at-risk", "undetermined", "healthy")


def worst_first(views: Sequence[LiveView]) -> tuple[LiveView, ...]:
    """The group that is ill speaks for the job."""
    return tuple(sorted(views, key=lambda view: (_SEVERITY.index(view.verdict), view.conclusive)))


def other_groups(views: Sequence[LiveView]) -> tuple[str, ...]:
    """One sentence for each group but the first: which it is, and how it is."""
    if not views:
        return ()
    first = _name(views[0].job)
    return tuple(
        f"{_name(view.job)} ({len(view.ranks)} {'rank' if len(view.ranks) == 1 else 'ranks'}) is"
        f" judged apart from {first}: {view.verdict}, {view.says}"
        for view in views[1:]
        if view.job.cell.startswith(LIVE_CELL)
    )


def _name(job: Job) -> str:
    label = job.cell.partition("#")[2]
    step = label.removeprefix("step")
    return (
        f"step {step}" if step != label else f"the job at {label}" if label else "the largest job"
    )
