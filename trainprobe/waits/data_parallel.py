"""One process over several GPUs by threads: a trouble of its own where nobody asked for it, also
where every rung passed.
"""

from __future__ import annotations

from trainprobe.facts import DataParallelMade, Facts, Plan, Rung
from trainprobe.waits.suspects import SuspectGroup


def spread(facts: Facts, cell: str = "") -> DataParallelMade | None:
    """The wrapper over several GPUs that was seen in a cell (in any where none is named) of one
    process.

    A line of the user's own counts only where several ranks were asked for: then it is not what was
    meant.
    """
    plan = facts.one(Plan)
    several = plan is not None and (
        max(plan.nproc, plan.world_size) > 1
        or (plan.gpus_requested or 0) > 1
        or plan.planned.get("ranks", 1) > 1
    )
    found = [
        made
        for made in facts.of(DataParallelMade)
        if made.devices > 1 and (not cell or made.cell == cell) and (made.unasked or several)
    ]
    return next((made for made in found if not _has_ranks(facts, made.cell)), None)


def _has_ranks(facts: Facts, cell: str) -> bool:
    """Has more than one process of the cell wrapped its model? Then there are ranks, each with
    GPUs of its own, which is another fault.
    """
    return len({made.pid for made in facts.of(DataParallelMade, cell=cell)}) > 1


def spread_groups(facts: Facts) -> tuple[SuspectGroup, ...]:
    """One group where a passing command spread over several GPUs by threads."""
    made = spread(facts)
    rung = next(
        (rung for rung in facts.of(Rung) if made is not None and rung.cell == made.cell), None
    )
    if made is None or rung is None:
        return ()
    says = (
        f"one process spreads over {made.devices} GPUs by threads: nn.DataParallel, made at"
        f" {made.by.where if made.by is not None else 'an unknown place'}"
    )
    return (
        SuspectGroup(
            rung.cell,
            rung.probe,
            (),
            "failed-first",
            says,
            "check",
            evidence=made.evidence,
            world_size=1,
        ),
    )
