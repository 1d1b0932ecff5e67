"""Nodes, tasks, GPUs and CPUs that options request: of a job, and of a step inside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trainprobe.sbatch import numbers
from trainprobe.sbatch.options import Option


@dataclass(frozen=True)
class Shape:
    """What is requested, None where no option says so. `tasks_per_node` then follows SLURM: one
    task on each node unless --ntasks says more.

    `cpus` are those of a task, `gpus` those of a node. `whole` is true where whole nodes are
    requested, `sets_nodes` where an option fixes the number of nodes.
    """

    nodes: int = 1
    most_nodes: int = 1
    tasks: int | None = None
    tasks_per_node: int | None = None
    cpus: int | None = None
    gpus: int | None = None
    whole: bool = False
    sets_nodes: bool = True

    @property
    def tasks_on_node(self) -> int:
        """How many tasks a node gets; the largest number where nodes differ."""
        if self.tasks is not None:
            return max(1, -(-self.tasks // max(1, self.nodes)))
        return self.tasks_per_node or 1

    @property
    def all_tasks(self) -> int:
        return self.tasks if self.tasks is not None else self.tasks_on_node * self.nodes


def shape(options: Mapping[str, Option], job: Shape | None = None) -> Shape:
    """Return what these options request. A step takes what its options leave open from its
    `job`.
    """
    tasks, per_node = _number(options, "ntasks"), _number(options, "ntasks-per-node")
    per_gpu = _number(options, "ntasks-per-gpu")
    nodes = numbers.node_range(options["nodes"].value) if "nodes" in options else None
    listed = len(numbers.hosts(options["nodelist"].value)) if "nodelist" in options else 0
    if job is not None and tasks is None and per_node is None:
        tasks, per_node = job.tasks if nodes is None else None, job.tasks_per_node
    least, most = nodes or _nodes(tasks, per_node, listed, job)
    if job is not None:
        least, most = min(least, job.most_nodes), min(most, job.most_nodes)
    gpus = _gpus(options, least, tasks, per_node)
    if per_gpu is not None and gpus is None and tasks is not None:
        gpus = max(1, tasks // per_gpu // least)
    if per_gpu is not None and gpus is not None and tasks is None and per_node is None:
        per_node = per_gpu * gpus
    cpus, cpus_per_gpu = _number(options, "cpus-per-task"), _number(options, "cpus-per-gpu")
    if job is not None and gpus is None:
        gpus = job.gpus
    if cpus is None and cpus_per_gpu is not None and gpus:
        cpus = max(1, cpus_per_gpu * gpus // Shape(least, most, tasks, per_node).tasks_on_node)
    if cpus is None and job is not None:
        cpus = job.cpus
    whole = "exclusive" in options or (job is not None and job.whole)
    sets_nodes = nodes is not None or bool(listed)
    return Shape(least, most, tasks, per_node, cpus, gpus, whole, sets_nodes)


def _nodes(
    tasks: int | None, per_node: int | None, listed: int, job: Shape | None
) -> tuple[int, int]:
    if listed:
        return listed, listed
    if job is not None:
        return job.nodes, job.most_nodes
    count = max(1, -(-tasks // per_node)) if tasks is not None and per_node else 1
    return count, count


def _gpus(
    options: Mapping[str, Option], nodes: int, tasks: int | None, per_node: int | None
) -> int | None:
    """GPUs of one node."""
    if "gpus-per-node" in options:
        return numbers.gpu_count(options["gpus-per-node"].value)
    if "gres" in options:
        gpus = numbers.gres_gpus(options["gres"].value)
        if gpus is not None:
            return gpus
    if "gpus-per-task" in options:
        each = numbers.gpu_count(options["gpus-per-task"].value)
        on_node = per_node or (-(-tasks // nodes) if tasks else 1)
        return each * on_node if each is not None else None
    if "gpus" in options:
        total = numbers.gpu_count(options["gpus"].value)
        return -(-total // nodes) if total is not None else None
    return None


def _number(options: Mapping[str, Option], name: str) -> int | None:
    return numbers.whole(options[name].value) if name in options else None


def variables(shaped: Shape) -> dict[str, str]:
    """Return SLURM's variables for a job of this shape, as far as they are certain."""
    values: dict[str, str] = {}
    if shaped.sets_nodes and shaped.nodes == shaped.most_nodes:
        values |= dict.fromkeys(("SLURM_NNODES", "SLURM_JOB_NUM_NODES"), str(shaped.nodes))
    if shaped.tasks is not None or shaped.tasks_per_node is not None:
        values |= dict.fromkeys(("SLURM_NTASKS", "SLURM_NPROCS"), str(shaped.all_tasks))
    if shaped.gpus is not None:
        values["SLURM_GPUS_ON_NODE"] = str(shaped.gpus)
    return values
