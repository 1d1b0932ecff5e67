"""The ladder's own rungs with ranks across the nodes, in what is left of the time: what a job does first, it does here once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trainprobe.errors import UsageError
from trainprobe.ladder.climb import climb
from trainprobe.ladder.planning import make_plan
from trainprobe.model.request import DiagnoseRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainprobe.case import Case
    from trainprobe.config import Settings
    from trainprobe.model.progress import Progress
    from trainprobe.model.request import ReadyRequest
    from trainprobe.nodes.way import Way

ALWAYS = ("gloo_control",)
ON_GPUS = ("basic_cuda", "single_gpu", "nccl_collectives")
WITH_TIME = ("import_memory",)
MOST_RANKS_EACH = 8
END_S = 5.0  # for a climb to end what it has started when its time is over


def names_of(request: ReadyRequest) -> tuple[str, ...]:
    """The rungs of a budget, in the order of the climb."""
    names = (*ALWAYS, *(ON_GPUS if request.gpus else ()))
    return names if request.budget == "quick" else (*WITH_TIME, *names)


def climb_nodes(
    request: ReadyRequest, way: Way, nodes: Sequence[str], case: Case, *, left_s: float, settings: Settings, progress: Progress
) -> list[tuple[str, str]]:
    """Climb with ranks on each of `nodes` for at most `left_s`, and return what could not be, with the reason. Raises Interrupted."""
    ranks = min(request.gpus or request.nproc or 1, MOST_RANKS_EACH)
    asked = DiagnoseRequest(
        nodes=tuple(nodes),
        nproc=None if request.gpus else ranks,
        gpus=ranks if request.gpus else None,
        interpreter=request.interpreter,
        only=names_of(request),
        timeout_s=max(1.0, left_s - END_S),
        device="cuda" if request.gpus else "cpu",
    )
    try:
        plan = make_plan(asked, settings, way=way)
    except UsageError as error:
        return [(name, error.says) for name in names_of(request)]
    if plan.interpreter.torch is None:
        reason = plan.interpreter.reason or "torch is not there"
        return [(name, reason) for name in names_of(request)]
    whole = tuple(replace(rung, sizes=rung.sizes[-1:]) for rung in plan.rungs)  # pairs of nodes have been tried before
    climb(replace(plan, rungs=whole), case, progress, settings)
    return []
