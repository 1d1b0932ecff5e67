"""Which nodes a climb goes over, and the way to them."""

from __future__ import annotations

from collections.abc import Mapping

from trainprobe.errors import UsageError
from trainprobe.ladder.cells import NODE_RANK, NODES
from trainprobe.model.request import DiagnoseRequest
from trainprobe.nodes.way import Way, srun_way, ssh_way, way_of_surroundings
from trainprobe.targets.host_names import host_names

ALL = "all"


def way_to(request: DiagnoseRequest, environ: Mapping[str, str]) -> Way | None:
    """The way to the nodes of the request: srun where they belong to the allocation around us, else ssh. None where the request names none.

    Raises UsageError for what cannot be done over nodes, and where `all` is asked for outside of an allocation.
    """
    if not request.nodes:
        return None
    _check(request)
    if request.nodes == (ALL,):
        try:
            return way_of_surroundings(environ)
        except UsageError as error:
            raise UsageError(error.says, "Name them, and they are reached over ssh: --nodes node1,node2; or begin with salloc or sbatch.") from error
    job, listed = environ.get("SLURM_JOB_ID", ""), environ.get("SLURM_JOB_NODELIST", "")
    if job.isdigit() and listed and set(request.nodes) <= set(host_names("SLURM_JOB_NODELIST", listed)):
        return srun_way(job, request.nodes)
    return ssh_way(request.nodes)


def _check(request: DiagnoseRequest) -> None:
    if request.ablate:
        raise UsageError("--ablate changes knobs on one machine, and --nodes asks for several.", "Leave one of them out.")
    if request.ranks:
        raise UsageError(
            "--ranks gives numbers of ranks on one machine; with --nodes the sizes are 1, 2, 4 ... nodes.",
            "Leave --ranks out; --nproc is the number on each node.",
        )
    words = " ".join(request.argv)
    if request.form == "command" and NODES in words and NODE_RANK not in words and "--rdzv" not in words and "--node-rank" not in words:
        raise UsageError(
            f"The command has {NODES}, and nothing tells the nodes apart: it has no {NODE_RANK}.", f"Add --node-rank {NODE_RANK}, or a --rdzv-endpoint."
        )
