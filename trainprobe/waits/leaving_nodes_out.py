"""What a user types to start without some nodes, and an administrator to take them out, in the
words of the batch system that the job is in; SLURM's where none is known.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainprobe.model.node_names import folded


def exclude_option(scheduler: str, nodes: Sequence[str]) -> str:
    """The option of the next submission, or the names alone: PBS has no such option."""
    if scheduler == "pbs":
        return folded(nodes)
    if scheduler == "lsf":
        unlike = " && ".join(f"hname!='{node}'" for node in nodes)
        return f'-R "select[{unlike}]"'
    if scheduler == "flux":
        return f"--requires=-host:{folded(nodes)}"
    if scheduler == "sge":
        return f"-l h='!({'|'.join(nodes)})'"
    return f"--exclude={folded(nodes)}"


def start_without(scheduler: str, nodes: Sequence[str]) -> str:
    """The command that submits the job elsewhere."""
    option = exclude_option(scheduler, nodes)
    submits = {"lsf": "bsub", "flux": "flux batch", "sge": "qsub"}.get(scheduler)
    if scheduler == "pbs":
        return f"start on the other nodes of $PBS_NODEFILE, without {folded(nodes)}"
    return f"{submits} {option} ..." if submits else f"sbatch {option} ...   (or srun, salloc)"


def drain_command(scheduler: str, nodes: Sequence[str], reason: str) -> str:
    """The administrator's: pbsnodes(8), badmin(8), flux-resource(1), qmod(1), scontrol(1)."""
    reason = f"trainprobe: {reason}"
    if scheduler == "pbs":
        return f"pbsnodes -o -C '{reason}' {' '.join(nodes)}"
    if scheduler == "lsf":
        return f"badmin hclose -C '{reason}' {' '.join(nodes)}"
    if scheduler == "flux":
        return f"flux resource drain {folded(nodes)} '{reason}'"
    if scheduler == "sge":
        return "qmod -d " + " ".join(f"'*@{node}'" for node in nodes)
    return f"scontrol update nodename={folded(nodes)} state=drain reason='{reason}'"
