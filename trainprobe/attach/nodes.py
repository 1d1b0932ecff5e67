"""One look on every node of a job, side by side: each node looks at its own part and sends its
evidence home as lines.

A node that does not answer is evidence, too.
"""

from __future__ import annotations

import functools
import re
import shlex
from typing import TYPE_CHECKING

from trainprobe.collect.collector import every_collector
from trainprobe.errors import UsageError
from trainprobe.model.evidence import LIVE_CELL
from trainprobe.model.subjects import Subject
from trainprobe.nodes.answers import Accept
from trainprobe.nodes.bundle import bundled, carrying
from trainprobe.nodes.fan_out import KIND, ask
from trainprobe.nodes.transports import kubectl_way, srun_way, ssh_way, way_in_allocation
from trainprobe.targets.kube_pods import Pod, kube_pods
from trainprobe.targets.slurm_jobs import slurm_job

if TYPE_CHECKING:
    from trainprobe.case import Case
    from trainprobe.model.progress import Progress
    from trainprobe.model.request import AttachRequest

LOOK_S = 10.0
REASONS_CAP = 4
# What a look at a job writes, besides the kinds of the collectors.
KINDS = frozenset(
    {
        "collectives",
        "job",
        "process",
        "rank.ended",
        "stacks.native",
        "stacks.python",
        "stacks.samples",
    }
)


@functools.cache
def accepted() -> Accept:
    """What a node may send of its look."""
    return Accept(
        KINDS.union(collector.kind for collector in every_collector()),
        LIVE_CELL,
        tells="job",
        cells=re.compile(r"job(?:#(?!attempt)[\w.:-]{1,80})?(?:#attempt\d{1,6})?"),
    )


class Nodes:
    """The nodes of one job and the way to them, known before anything is looked at.

    Raises UsageError where the scheduler knows no such job that runs, or there is no such way.
    """

    def __init__(self, request: AttachRequest) -> None:
        self._request = request
        self._look_s = request.timeout_s or LOOK_S
        self._words: tuple[str, ...] = ("look-here", "--timeout", f"{self._look_s:g}")
        self._ends_at: float | None = None
        self._pods: tuple[Pod, ...] = ()
        if request.slurm:
            job = slurm_job(request.slurm)
            self._ends_at = job.ends_at
            self._words += ("--slurm-job", f"{job.job}.{job.step}".rstrip("."))
            way = srun_way(job.job, job.nodes)
        elif request.kubectl:
            self._pods = kube_pods(request.kubectl, request.namespace, request.container)
            way = kubectl_way([pod for pod in self._pods if not pod.why_not])
        elif request.hosts == ("all",):
            way = way_in_allocation()
        else:
            way = ssh_way(request.hosts)
        self._way = (
            carrying(way, bundled(), request.node_python)
            if request.bundle or request.kubectl
            else way
        )

    def look(self, case: Case, progress: Progress) -> None:
        """Look on all nodes. Raises UsageError if none has a job, Interrupted after Ctrl-C."""
        way, request = self._way, self._request
        names = [*way.names, *(pod.name for pod in self._pods if pod.why_not)]
        data: dict[str, object] = {
            "by": way.by,
            "job": request.slurm,
            "command": shlex.join(request.argv),
            "nodes": names,
        }
        if self._pods:
            data["on"] = {pod.name: pod.node for pod in self._pods}
        case.add("reach", source=way.by, data=data)
        if self._ends_at is not None:
            limit = {"ends_at": self._ends_at, "source": f"scontrol show job {request.slurm}"}
            case.add(
                "deadlines",
                cell=LIVE_CELL,
                source="scontrol",
                data={"group_timeouts": [], "scheduler": limit, "checkpoints": []},
            )
        for pod in self._pods:
            if pod.why_not:
                subject = Subject("host", host=pod.name)
                case.add(
                    KIND,
                    subject=subject,
                    cell=LIVE_CELL,
                    source="kubectl",
                    outcome="unavailable",
                    reason=f"pod {pod.name} cannot be entered: {pod.why_not}",
                )
        ask(way.nodes(self._words), case, self._look_s, progress, accepted(), "attach")
        nobody_answered(case)


def nobody_answered(case: Case) -> None:
    """Raise UsageError with the nodes' reasons where none of them has found a job."""
    found = case.evidence
    if any(record.kind == "job" for record in found):
        return
    says = list(
        dict.fromkeys(
            record.reason.rstrip(".") for record in found if record.kind == KIND and record.reason
        )
    )
    more = f"; and {len(says) - REASONS_CAP} more" if len(says) > REASONS_CAP else ""
    raise UsageError(
        f"No node has shown a training job: {'; '.join(says[:REASONS_CAP])}{more}.",
        "Look on one of them: ssh NODE trainprobe attach.",
    )
