"""What a job ran with and how far it came, as named values, so that two runs can be compared.

What is another one in each run, such as a job's number, a port or a process's rank, is left out: it
would always differ and explain nothing. So is the size of the world, which the report tells.
"""

from __future__ import annotations

import os
import re
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from trainprobe.collect.collectors.cgroup import MemoryLimit
from trainprobe.collect.collectors.deadlines import Deadline
from trainprobe.collect.collectors.libraries import RankLibraries
from trainprobe.facts.jobs import Job, JobRank
from trainprobe.facts.log_jobs import LogJob, LogProgress
from trainprobe.facts.node_checks import NodeValues
from trainprobe.facts.plan import Plan
from trainprobe.facts.probe_results import Measured
from trainprobe.facts.progress import Progress
from trainprobe.facts.settings import Given
from trainprobe.facts.table import Facts
from trainprobe.model.node_names import folded
from trainprobe.model.ranks import name_ranks

Part = Literal["launch", "environment", "versions", "limits", "progress"]
PARTS: tuple[Part, ...] = ("launch", "environment", "versions", "limits", "progress")
CAMPS_CAP = 3
_EACH_RUN = re.compile(
    r"(?:LOCAL_|GROUP_|ROLE_|NODE_)?RANK|(?:GROUP_|ROLE_)?WORLD_SIZE|MASTER_PORT|HOSTNAME"
    r"|\w*_ERROR_FILE|\w*_RUN_ID"
    r"|PET_(?:NODE_RANK|MASTER_PORT|RDZV_ID|RDZV_ENDPOINT)|TORCH_WORKER_SERVER_SOCKET"
    r"|SLURM\w*_(?:JOB_?ID|STEP_?ID|ARRAY_JOB_ID|ARRAY_TASK_ID|PROCID|LOCALID|NODEID|NODENAME"
    r"|JOB_START_TIME|JOB_END_TIME|TASK_PID|GTIDS)"
    r"|(?:OMPI_COMM_WORLD|PMIX?|MPI)_?\w*(?:RANK|_ID)"
)
_MOVES = re.compile(r"free|used|usage|clock|boot|skew|avail|uptime|load")
_VERSIONS = ("version", "python", "torch", "module", "driver", "kernel", "cuda", "nccl")


@dataclass(frozen=True)
class RunValue:
    """One value. `number` is it as a number, where it has a size."""

    part: Part
    name: str
    value: str
    number: float | None = None


@dataclass(frozen=True)
class RunValues:
    """The values of one run, by part and name.

    `environment_by` is who wrote the environment down by a fixed list of names (`job` for a look
    at its processes, `collect-env`), empty where it is not known to be whole: what the same list
    holds in another run was not set in this one.
    """

    values: Mapping[tuple[Part, str], RunValue]
    environment_by: str = ""

    def parts(self) -> frozenset[Part]:
        return frozenset(part for part, _ in self.values)


def run_values(facts: Facts) -> RunValues:
    """Return the values that the facts of one case tell. Where ranks or hosts differ, one value
    says who has which.
    """
    found: dict[tuple[Part, str], RunValue] = {}
    for value in (
        *_launch(facts),
        *_environment(facts),
        *_versions(facts),
        *_limits(facts),
        *_of_nodes(facts),
        *_progress(facts),
    ):
        if value.value:
            found.setdefault((value.part, value.name), value)
    return RunValues(found, _environment_by(facts))


def _environment_by(facts: Facts) -> str:
    if any(job.environment for job in facts.of(Job)):
        return "job"
    return "collect-env" if any(one.source == "collect-env" for one in facts.of(Given)) else ""


def _launch(facts: Facts) -> Iterable[RunValue]:
    commands = {
        one.rank: one.cmdline for one in facts.of(JobRank) if one.cmdline and one.rank is not None
    }
    if commands:
        yield RunValue("launch", "command", _by_rank(commands))
    for job in facts.of(Job):
        yield RunValue("launch", "launcher", job.launcher)
        yield RunValue("launch", "launched by", _of_launcher(job.launcher_cmdline, job.script))
        yield RunValue("launch", "script", job.script)
        yield RunValue("launch", "folder", job.cwd)
        yield RunValue("launch", "nodes", str(job.nnodes or ""))
        yield RunValue("launch", "hosts", folded(job.hosts or ((job.host,) if job.host else ())))
        yield RunValue("launch", "backend", job.backend)
        yield RunValue("launch", "device", job.device)
        yield RunValue("launch", "container", job.container)
    for plan in facts.of(Plan):
        yield RunValue("launch", "command", " ".join(plan.argv))
        yield RunValue("launch", "script", plan.script)
        yield RunValue("launch", "backend", plan.backend)
        yield RunValue("launch", "device", plan.device)
    for log in facts.of(LogJob):
        yield RunValue("launch", "launcher", log.launcher)
        yield RunValue("launch", "hosts", folded(log.hosts))


def _environment(facts: Facts) -> Iterable[RunValue]:
    for job in facts.of(Job):
        by_name: dict[str, dict[int, str]] = {}
        for who, variables in job.environment.items():
            for name, value in variables.items():
                if who.isdigit():
                    by_name.setdefault(name, {})[int(who)] = value
        for name, values in by_name.items():
            if not _EACH_RUN.fullmatch(name):
                yield RunValue("environment", name, _by_rank(values))
        for name, value in job.environment.get("job", {}).items():
            if not _EACH_RUN.fullmatch(name):
                yield RunValue("environment", name, value)
    for one in facts.of(Given):
        name = one.name.removeprefix("env.")
        if name != one.name and not _EACH_RUN.fullmatch(name):
            yield RunValue("environment", name, one.value)


def _versions(facts: Facts) -> Iterable[RunValue]:
    loaded = [one for one in facts.of(RankLibraries) if one.rank is not None]
    for name in ("python", "torch_version", "nccl_version", "torch_path", "nccl_path"):
        values = {
            one.rank: value
            for one in loaded
            if one.rank is not None and (value := getattr(one, name))
        }
        shown = name.replace("_version", "").replace("_path", "'s file")
        yield RunValue("versions", shown, _by_rank(values))
    for job in facts.of(Job):
        yield RunValue("versions", "interpreter", job.python)
    for plan in facts.of(Plan):
        yield RunValue("versions", "python", plan.python_version)
        yield RunValue("versions", "torch", plan.torch_version)
        yield RunValue("versions", "cuda", plan.cuda_version)
        yield RunValue("versions", "interpreter", plan.interpreter_path)
    for one in facts.of(Given):
        if one.name.startswith("version.") or one.name == "kernel":
            yield RunValue("versions", one.name.removeprefix("version."), one.value)


def _limits(facts: Facts) -> Iterable[RunValue]:
    for one in facts.of(Given):
        first = one.name.partition(".")[0]
        if first not in ("env", "version") and one.name != "kernel" and not _MOVES.search(one.name):
            yield RunValue("limits", one.name, one.value, one.number)
    for limit in facts.of(MemoryLimit):
        for name, value in (
            ("memory.limit_bytes", limit.limit_bytes),
            ("pids.max", limit.pids_max),
            ("cpu_quota", limit.cpu_quota),
        ):
            yield RunValue("limits", name, "" if value is None else f"{value:g}", value)
    for deadline in facts.of(Deadline):
        if deadline.kind == "group" and deadline.seconds:
            says = f"{deadline.seconds:g} s"
            yield RunValue("limits", "timeout of collectives", says, deadline.seconds)
    for measured in facts.of(Measured):
        if measured.name.startswith("limit.") and not _MOVES.search(measured.name):
            says = f"{measured.value:g} {measured.unit}".strip()
            yield RunValue("limits", measured.name, says, measured.value)


def _of_nodes(facts: Facts) -> Iterable[RunValue]:
    """What `ready` compares between the nodes."""
    by_name: dict[str, dict[str, str]] = {}
    for one in facts.of(NodeValues):
        for name, value in one.values.items():
            if value and not _MOVES.search(name):
                by_name.setdefault(name, {})[one.host] = value
    for name, values in by_name.items():
        first = name.partition(".")[0]
        part: Part = (
            "environment" if first == "env" else "versions" if first in _VERSIONS else "limits"
        )
        camps: dict[str, list[str]] = {}
        for host, value in values.items():
            camps.setdefault(value, []).append(host)
        shown = name.removeprefix("env.").removeprefix("version.")
        yield RunValue(part, shown, _camps({one: folded(who) for one, who in camps.items()}))


def _progress(facts: Facts) -> Iterable[RunValue]:
    told = [one for one in facts.of(LogProgress) if one.step is not None]
    steps = {one.rank: str(one.step) for one in told}
    for one in facts.of(Progress):
        step = one.optimizer_steps if one.optimizer_steps is not None else one.output_steps
        if step is not None and not told:
            steps[one.rank] = str(max(step, int(steps.get(one.rank, "0"))))
    numbered = {rank: step for rank, step in steps.items() if rank is not None}
    if steps:
        says = _by_rank(numbered) if numbered else next(iter(steps.values()))
        yield RunValue("progress", "last step", says)
    paces = [
        (one.at - one.first_at) / (one.step - one.first_step)
        for one in told
        if one.at is not None
        and one.first_at is not None
        and one.step is not None
        and one.first_step is not None
        and one.step > one.first_step
        and one.at > one.first_at
    ] or [
        one.value
        for one in facts.of(Measured)
        if one.name == "step_s" and one.value > 0 and not one.labels.get("knob")
    ]
    if paces:
        pace = statistics.median(paces)
        yield RunValue("progress", "time per step", f"{pace:.3g} s", pace)
    for log in facts.of(LogJob):
        if log.first_at is not None and log.last_at is not None and log.last_at > log.first_at:
            lasted_s = log.last_at - log.first_at
            yield RunValue(
                "progress", "time from first to last line", f"{lasted_s:.0f} s", lasted_s
            )


def _by_rank(values: Mapping[int, str]) -> str:
    camps: dict[str, list[int]] = {}
    for rank, value in sorted(values.items()):
        camps.setdefault(value, []).append(rank)
    return _camps({value: name_ranks(ranks) for value, ranks in camps.items()})


def _camps(camps: Mapping[str, str]) -> str:
    """One value for all, or each with those who have it."""
    if len(camps) < 2:
        return next(iter(camps), "")
    shown = [f"{value} ({who})" for value, who in list(camps.items())[:CAMPS_CAP]]
    more = len(camps) - CAMPS_CAP
    return "; ".join([*shown, *([f"{more} more"] if more > 0 else [])])


def _of_launcher(command: str, script: str) -> str:
    """What stands before the script, without the port, which is taken anew for each run."""
    name = os.path.basename(script)
    words = command.split(" ")
    own = next((place for place, one in enumerate(words) if os.path.basename(one) == name), None)
    command = " ".join(words[:own]) if name else command
    return re.sub(r"(--(?:master|rdzv)[-_](?:port|endpoint)[= ])\S+", r"\1…", command)
