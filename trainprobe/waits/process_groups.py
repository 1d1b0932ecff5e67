"""A job of several groups of processes, such as the steps of SLURM, each a world of its own:
which of them speaks, and how the others are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Verdict
from trainprobe.model.evidence import LIVE_CELL
from trainprobe.waits.groups import by_mode, suspect_groups
from trainprobe.waits.live import live_views
from trainprobe.waits.situation import Situation

_SEVERITY: Sequence[Verdict] = ("hung", "crashed", "slow", "at-risk", "undetermined", "healthy")


def live_situation(facts: Facts) -> Situation | None:
    """The worlds of a job that runs, or of which dumps are left, as one: the one that is ill
    speaks for the job. None where there is no such job.
    """
    views = sorted(
        live_views(facts), key=lambda view: (_SEVERITY.index(view.verdict), view.conclusive)
    )
    if not views:
        return None
    groups = [group for view in views for group in view.groups]
    return replace(
        views[0],
        groups=tuple(by_mode([*groups, *suspect_groups(facts)])),
        remarks=(*views[0].remarks, *_other_groups(views)),
    )


def _other_groups(views: Sequence[Situation]) -> tuple[str, ...]:
    """One sentence for each group but the first: which it is, and how it is."""
    first = _name(views[0])
    return tuple(
        f"{_name(view)} ({len(view.ranks)} {'rank' if len(view.ranks) == 1 else 'ranks'}) is"
        f" judged apart from {first}: {view.verdict}, {view.says}"
        for view in views[1:]
        if view.cell.startswith(LIVE_CELL)
    )


def _name(view: Situation) -> str:
    label = view.cell.partition("#")[2]
    step = label.removeprefix("step")
    return (
        f"step {step}" if step != label else f"the job at {label}" if label else "the largest job"
    )
