"""Selects the nodes and the way to reach them: those of the SLURM job around us, those that the
user names, or this host alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from trainprobe.errors import UsageError
from trainprobe.model.request import ReadyRequest
from trainprobe.nodes.transports import Way, here_way, srun_way, ssh_way, way_in_allocation
from trainprobe.targets.host_names import host_names

ALL = ("all",)


def leads(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this task asks all nodes: the batch script, salloc's shell, a lone task, or the first
    task of a step.
    """
    step = environ.get("SLURM_STEP_ID", "")
    return not (step.isdigit() and _several(environ) and environ.get("SLURM_PROCID", "0") != "0")


def way_to_nodes(request: ReadyRequest, environ: Mapping[str, str] = os.environ) -> Way:
    """Return the way to the selected nodes; none is needed where that is this node alone.

    Raises UsageError where the named nodes cannot be reached.
    """
    in_job = (
        request.slurm
        and environ.get("SLURM_JOB_ID", "").isdigit()
        and bool(environ.get("SLURM_JOB_NODELIST") or environ.get("SLURM_NODELIST"))
    )
    if request.slot != "step":
        return here_way(environ.get("SLURMD_NODENAME", ""))
    if request.nodes and request.nodes != ALL:
        around = way_in_allocation(environ) if in_job else None
        if around is not None and set(request.nodes) <= set(around.names):
            return _alone(srun_way(around.job, request.nodes), environ)
        return ssh_way(request.nodes)
    if not in_job:
        if request.nodes == ALL:
            raise UsageError(
                "--nodes all means the nodes of a SLURM job, and this is none.",
                "Name them: --nodes node1,node2.",
            )
        return here_way()
    around = way_in_allocation(environ)
    step = environ.get("SLURM_STEP_NODELIST", "") if _several(environ) else ""
    return _alone(
        srun_way(around.job, host_names("SLURM_STEP_NODELIST", step)) if step else around, environ
    )


def _alone(way: Way, environ: Mapping[str, str]) -> Way:
    """This node alone needs no step."""
    own = environ.get("SLURMD_NODENAME") or os.uname().nodename.partition(".")[0]
    return here_way(own) if way.names == (own,) else way


def _several(environ: Mapping[str, str]) -> bool:
    tasks = environ.get("SLURM_STEP_NUM_TASKS") or environ.get("SLURM_NTASKS", "")
    return environ.get("SLURM_STEP_ID", "").isdigit() and tasks.isdigit() and int(tasks) > 1
