"""Nodes, tasks, GPUs and CPUs that options ask for: of a job, and of a step inside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trainprobe.sbatch import numbers
from trainprobe.sbatch.options import Option


@dataclass(frozen=True)
class Shape:
    """What is asked for. None means that it was not said: `tasks_per_node` then follows SLURM, one
    task on each node unless --ntasks says more.

    `cpus` are those of a task. `gpus` are those of a node. `whole` is true where all of each node
    is asked for.
    """

    nodes: int = 1
    most_nodes: int = 1
    tasks: int | None = None
    tasks_per_node: int | None = None
    cpus: int | None = None
    gpus: int | None = None
    whole: bool = False
    nodes_said: bool = True

    @property
    def tasks_on_node(self) -> int:
        """How many tasks a node gets, the most of them where they are uneven."""
        if self.tasks is not None:
            return max(1, -(-self.tasks // max(1, self.nodes)))
        return self.tasks_per_node or 1

    @property
    def all_tasks(self) -> int:
        return self.tasks if self.tasks is not None else self.tasks_on_node * self.nodes


def shape(options: Mapping[str, Option], job: Shape | None = None) -> Shape:
    """Return what these options ask for. For a step `job` is what surrounds it: what the step
    does not say, it takes from there.
    """
    tasks, per_node = _number(options, "ntasks"), _number(options, "ntasks-per-node")
    per_gpu = _number(options, "ntasks-per-gpu")
    nodes = numbers.node_range(options["nodes"].value) if "nodes" in options else None
    listed = numbers.hosts(options["nodelist"].value) if "nodelist" in options else ()
    if job is not None and tasks is None and per_node is None:
        tasks, per_node = (
            (job.tasks, job.tasks_per_node) if nodes is None else (None, job.tasks_per_node)
        )
    elif job is not None and tasks is None:
        tasks = None
    least, most = nodes or _nodes_of(tasks, per_node, len(listed), job)
    if job is not None:
        least, most = min(least, job.most_nodes), min(most, job.most_nodes)
    gpus = _gpus(options, least, tasks, per_node)
    if per_gpu is not None and gpus is None and tasks is not None:
        gpus = max(1, tasks // per_gpu // least)
    if per_gpu is not None and gpus is not None and tasks is None and per_node is None:
        per_node = per_gpu * gpus
    if job is not None and gpus is None:
        gpus = job.gpus
    cpus = _number(options, "cpus-per-task")
    per_gpu_cpus = _number(options, "cpus-per-gpu")
    shaped = Shape(
        least,
        most,
        tasks,
        per_node,
        cpus,
        gpus,
        "exclusive" in options,
        nodes is not None or bool(listed),
    )
    if cpus is None and per_gpu_cpus is not None and gpus:
        cpus = max(1, per_gpu_cpus * gpus // shaped.tasks_on_node)
    if cpus is None and job is not None:
        cpus = job.cpus
    whole = shaped.whole or (job is not None and job.whole)
    return Shape(least, most, tasks, per_node, cpus, gpus, whole, shaped.nodes_said)


def _nodes_of(
    tasks: int | None, per_node: int | None, listed: int, job: Shape | None
) -> tuple[int, int]:
    if listed and job is None:
        return listed, listed
    if listed:
        return listed, listed
    if job is not None:
        return job.nodes, job.most_nodes
    if tasks is not None and per_node:
        found = max(1, -(-tasks // per_node))
        return found, found
    return 1, 1


def _gpus(
    options: Mapping[str, Option], nodes: int, tasks: int | None, per_node: int | None
) -> int | None:
    """GPUs of one node."""
    if "gpus-per-node" in options:
        return numbers.gpu_count(options["gpus-per-node"].value)
    if "gres" in options:
        found = numbers.gres_gpus(options["gres"].value)
        if found is not None:
            return found
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
    """What SLURM's variables of a job of this shape hold, as far as that is certain."""
    found: dict[str, str] = {}
    if shaped.nodes_said and shaped.nodes == shaped.most_nodes:
        found |= {"SLURM_NNODES": str(shaped.nodes), "SLURM_JOB_NUM_NODES": str(shaped.nodes)}
    if shaped.tasks is not None or shaped.tasks_per_node is not None:
        found |= {"SLURM_NTASKS": str(shaped.all_tasks), "SLURM_NPROCS": str(shaped.all_tasks)}
    if shaped.gpus is not None:
        found["SLURM_GPUS_ON_NODE"] = str(shaped.gpus)
    return found
