"""What SLURM says of a job: its state and its nodes. Asks scontrol only, as any user may."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass

from trainprobe.errors import UsageError
from trainprobe.system.run import run
from trainprobe.targets.host_names import host_names

ASK_S = 10.0
# What SLURM's commands say where they find no controller: its name, its configuration, or itself.
_NO_CONTROLLER = re.compile(
    r"(?i)unable to contact slurm controller|resolve_ctls_from_dns|configuration source"
    r"|slurm\.conf|connection refused"
)
_JOB = re.compile(r"\d{1,12}(?:_\d{1,9})?(?:\.(?:\d{1,9}|batch|extern))?")


@dataclass(frozen=True)
class SlurmJob:
    """`job` is its number as scontrol knows it, `step` what was asked for beside it, "" for all
    steps.

    `ends_at` is the Unix time at which its time limit ends it, None where it has none.
    """

    job: str
    step: str
    state: str
    nodes: tuple[str, ...]
    name: str = ""
    ends_at: float | None = None


def slurm_job(name: str) -> SlurmJob:
    """Return the running job that `given` names, such as `4711`, `4711_3` or `4711.0`.

    Raises UsageError where SLURM is not here, does not answer, knows no such job, or the job is not
    running.
    """
    if not _JOB.fullmatch(name.strip()):
        raise UsageError(f"--slurm needs a job id, as 4711 or 4711.0, not {name[:40]!r}.")
    job, _, step = name.strip().partition(".")
    lines = [
        _fields(line)
        for line in _asked("show", "job", job, "--oneliner").splitlines()
        if line.strip()
    ]
    running = [job for job in lines if job.get("JobState") == "RUNNING"]
    if len(running) > 1:  # an array, or the parts of a heterogeneous job
        names = ", ".join(_name(job) for job in running[:8]) + (" …" if len(running) > 8 else "")
        raise UsageError(f"Job {job} is {len(running)} running jobs: {names}.", "Name one of them.")
    found = next(iter([*running, *lines]), {})
    state, listed = found.get("JobState", ""), found.get("NodeList", "")
    if state != "RUNNING" or not listed or listed == "(null)":
        do = (
            "Its logs can be read with `trainprobe explain`."
            if state not in ("PENDING", "CONFIGURING")
            else "Attach when it runs."
        )
        raise UsageError(
            f"Job {job} is {state or 'unknown to SLURM'}, so there is nothing to look at.", do
        )
    nodes = host_names("scontrol's NodeList", ",".join(_asked("show", "hostnames", listed).split()))
    return SlurmJob(
        found.get("JobId", job),
        step,
        state,
        nodes,
        found.get("JobName", ""),
        _moment(found.get("EndTime", "")),
    )


def _name(job: Mapping[str, str]) -> str:
    """What scontrol takes for this one job: of a job array its number alone would mean them all."""
    return (
        f"{job['ArrayJobId']}_{job['ArrayTaskId']}"
        if "ArrayJobId" in job and "ArrayTaskId" in job
        else job.get("JobId", "?")
    )


def _asked(*arguments: str) -> str:
    ran = run(["scontrol", *arguments], timeout_s=ASK_S)
    if ran.ended.how == "not_started":
        raise UsageError(
            "SLURM's scontrol is not on this machine.",
            "Go to a login node of the cluster, or name the nodes: trainprobe attach --hosts"
            " node1,node2.",
        )
    if ran.ended.how != "exited" or ran.ended.code != 0:
        why = ran.stderr.decode("utf-8", "replace").strip().splitlines()[:1] or [ran.ended.reason]
        if _NO_CONTROLLER.search(why[0]):
            raise UsageError(
                f"SLURM's controller cannot be asked from here: {why[0][:200].rstrip('.')}.",
                "Go to a login node of the cluster, or name the nodes: trainprobe attach --hosts"
                " node1,node2.",
            )
        raise UsageError(
            f"scontrol {' '.join(arguments[:3])}: {why[0][:200].rstrip('.')}.",
            "See whether the job still runs: squeue --me.",
        )
    return ran.stdout.decode("utf-8", "replace")


def _moment(text: str) -> float | None:
    """The local time that scontrol writes; `Unknown`, which is None, where there is no limit."""
    try:
        return dt.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S").timestamp()  # noqa: DTZ007 - the time zone is this machine's
    except (ValueError, OverflowError):
        return None


def _fields(line: str) -> dict[str, str]:
    """Parse `JobId=7 JobName=train NodeList=node[1-3]`; the first of a name counts."""
    found: dict[str, str] = {}
    for word in line.split():
        name, equals, value = word.partition("=")
        if equals:
            found.setdefault(name, value)
    return found
