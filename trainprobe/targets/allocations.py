"""The allocation of a batch system around this process: SLURM, PBS (OpenPBS and TORQUE), LSF, Flux
and Grid Engine, as each describes it to its jobs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from trainprobe.errors import UsageError
from trainprobe.system.answering import silent
from trainprobe.system.run import run
from trainprobe.targets.host_names import host_names

Scheduler = Literal["slurm", "pbs", "lsf", "flux", "sge"]
ASK_S = 8.0
CAP = 2**20
SAYS = {"pbs": "PBS", "lsf": "LSF", "flux": "Flux", "sge": "Grid Engine", "slurm": "SLURM"}


@dataclass(frozen=True)
class Allocation:
    """Its nodes, each once, in the scheduler's order; `places` are their indices in the
    scheduler's own list, by which PBS and Flux start programs on them.

    `trouble` says why the nodes are not known, "" where they are.
    """

    by: Scheduler
    job: str
    names: tuple[str, ...] = ()
    places: Mapping[str, int] | None = None
    trouble: str = ""


def allocation_around(environ: Mapping[str, str] = os.environ) -> Allocation | None:
    """Return the allocation that the environment tells of, None where there is none. Only Flux is
    asked. Of two the inner one counts: Flux may run in an allocation of another.
    """
    for found in (_flux, _slurm, _pbs, _lsf, _sge):
        allocation = found(environ)
        if allocation is not None:
            return allocation
    return None


def _slurm(environ: Mapping[str, str]) -> Allocation | None:
    job = environ.get("SLURM_JOB_ID", "")
    listed = environ.get("SLURM_JOB_NODELIST") or environ.get("SLURM_NODELIST", "")
    if not job.isdecimal() or not listed:
        return None
    return Allocation("slurm", job, host_names("SLURM_JOB_NODELIST", listed))


def _pbs(environ: Mapping[str, str]) -> Allocation | None:
    """A line for each slot: TORQUE writes a host once for each core, OpenPBS for each rank."""
    job, path = environ.get("PBS_JOBID", ""), environ.get("PBS_NODEFILE", "")
    if not job or not (path or environ.get("PBS_ENVIRONMENT")):
        return None
    return _of_file("pbs", job, "PBS_NODEFILE", path)


def _lsf(environ: Mapping[str, str]) -> Allocation | None:
    """LSB_MCPU_HOSTS holds `host slots` pairs; LSB_HOSTS a host for each slot, and is not set for
    very many.
    """
    job = environ.get("LSB_JOBID", "")
    pairs, each = environ.get("LSB_MCPU_HOSTS", "").split(), environ.get("LSB_HOSTS", "").split()
    path = environ.get("LSB_DJOB_HOSTFILE", "")
    if not job or not (pairs or each or path):
        return None
    listed = pairs[::2] or each
    return _of_list("lsf", job, listed) if listed else _of_file("lsf", job, "hosts", path)


def _sge(environ: Mapping[str, str]) -> Allocation | None:
    """Lines `host slots queue processors`; only jobs of a parallel environment have the file."""
    path = environ.get("PE_HOSTFILE", "")
    return _of_file("sge", environ.get("JOB_ID", ""), "PE_HOSTFILE", path) if path else None


def _flux(environ: Mapping[str, str]) -> Allocation | None:
    """Within `flux alloc` and `flux batch` the job is an instance of its own (FLUX_URI); a task has
    FLUX_JOB_ID too. The ranks of the brokers are the indices in the instance's host list.
    """
    job = environ.get("FLUX_JOB_ID", "")
    if not job and not environ.get("FLUX_URI"):
        return None
    brokers, why = _flux_hosts("getattr", "hostlist")
    mine = brokers
    if job and not why:
        mine, why = _flux_hosts("jobs", "--no-header", "--format={nodelist}", job)
    if why or not mine:
        return Allocation("flux", job, trouble=why or "flux names no nodes")
    return _of_list("flux", job, mine, brokers)


def _flux_hosts(*words: str) -> tuple[list[str], str]:
    """The hosts in a list of Flux, or why there is none. Some brokers may share a host."""
    ran = run(("flux", *words), timeout_s=ASK_S, output_cap_bytes=CAP, kill_s=0.5)
    said = ran.stdout.decode("utf-8", "replace").strip()
    if ran.ended.how != "exited" or ran.ended.code != 0 or not said:
        error = ran.stderr.decode("utf-8", "replace").strip().splitlines()[:1]
        return [], error[0][:200] if error else ran.ended.reason or "flux gave no list of hosts"
    words_of = re.findall(r"(?:[^,\s\[\]]|\[[^\[\]]*\])+", said)
    return [name for word in words_of for name in host_names("flux's host list", word)], ""


def _of_file(by: Scheduler, job: str, what: str, path: str) -> Allocation:
    silence = silent(path) if path else ""
    if silence:
        return Allocation(by, job, trouble=f"{what} {path} cannot be read: {silence}")
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read(CAP).splitlines()
    except OSError as error:
        why = f"{what} {path or '(not set)'} cannot be read: {error.strerror}"
        return Allocation(by, job, trouble=why)
    listed = [fields[0] for line in lines if (fields := line.split())]
    return _of_list(by, job, listed) if listed else Allocation(by, job, trouble=f"{path} is empty")


def _of_list(
    by: Scheduler, job: str, listed: Sequence[str], all_places: Sequence[str] = ()
) -> Allocation:
    try:
        names = host_names(f"the hosts of {SAYS[by]}", ",".join(dict.fromkeys(listed)))
    except UsageError as error:
        return Allocation(by, job, trouble=error.says)
    order = list(all_places or listed)
    places = {name: order.index(name) for name in names if name in order}
    return Allocation(by, job, names, places)
