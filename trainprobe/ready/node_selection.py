"""Selects the nodes and the way to reach them: those of the job around us, those that the user
names, or this host alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from trainprobe.errors import UsageError
from trainprobe.model.request import ReadyRequest
from trainprobe.nodes.transports import Way, here_way, is_local, ssh_way, way_in_allocation
from trainprobe.targets.allocations import allocation_around
from trainprobe.targets.host_names import host_names

ALL = ("all",)


def leads(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this task asks all nodes: the batch script, salloc's shell, a lone task, or the first
    task of a step.
    """
    step = environ.get("SLURM_STEP_ID", "")
    return not (step.isdecimal() and _several(environ) and environ.get("SLURM_PROCID", "0") != "0")


def way_to_nodes(request: ReadyRequest, environ: Mapping[str, str] = os.environ) -> Way:
    """Return the way to the selected nodes; none is needed where that is this node alone.

    Raises UsageError where the named nodes cannot be reached.
    """
    if request.slot != "step":
        return here_way(environ.get("SLURMD_NODENAME", ""))
    around = allocation_around(environ) if request.slurm else None
    if request.nodes and request.nodes != ALL:
        if around is not None and set(request.nodes) <= set(around.names):
            return _alone(way_in_allocation(environ, request.nodes), environ)
        return ssh_way(request.nodes)
    if around is None:
        if request.nodes == ALL:
            raise UsageError(
                "--nodes all means the nodes of a job, and this is none.",
                "Name them: --nodes node1,node2.",
            )
        return here_way()
    if around.trouble and not request.nodes:
        says = f"the other nodes of this job were not looked at: {around.trouble}"
        return replace(here_way(), unseen=says)
    step = environ.get("SLURM_STEP_NODELIST", "") if _several(environ) else ""
    names = host_names("SLURM_STEP_NODELIST", step) if step and around.by == "slurm" else ()
    return _alone(way_in_allocation(environ, names), environ)


def _alone(way: Way, environ: Mapping[str, str]) -> Way:
    """This node alone needs no step."""
    if len(way.names) != 1:
        return way
    (name,) = way.names
    own = environ.get("SLURMD_NODENAME")
    return here_way(name) if (name == own if own else is_local(name)) else way


def _several(environ: Mapping[str, str]) -> bool:
    tasks = environ.get("SLURM_STEP_NUM_TASKS") or environ.get("SLURM_NTASKS", "")
    return environ.get("SLURM_STEP_ID", "").isdecimal() and tasks.isdecimal() and int(tasks) > 1
