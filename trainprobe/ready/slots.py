"""The slots from which SLURM calls the checks: what each gives to a program, and what a program
must not do there.

The administrators' slots run for everybody's jobs, most of them as root: they import no torch, load
no plugin, touch no device and no process of a job, do not query SLURM, need neither HOME nor PATH,
write to no shared disk and leave nothing running. Environments and the meaning of exit codes are
those of SLURM 22.05 and its guide (https://slurm.schedmd.com/prolog_epilog.html);
tests/cluster/test_slots.py runs them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from trainprobe.checks import CheckSpec, catalogue
from trainprobe.checks.outcome import CheckRow
from trainprobe.errors import UsageError
from trainprobe.site import Site

READY, NOT_READY = 0, 10
"""10 as in `ready`, where a node is at fault. Not 1: Python ends with that if it cannot load the
tool, which is no fault of the node.
"""
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
Inconclusive = Literal["pass", "fail"]


@dataclass(frozen=True)
class Slot:
    """One slot. `setting` is SLURM's name for it, `inconclusive` the answer for a node that could
    not be examined, `stop_s` the hard stop in seconds. `own_environment` is false where a user's
    environment is kept. `acts` describes the effect of an exit code other than 0.
    """

    name: str
    setting: str
    runs_as: str
    when: str
    environment: str
    stdout: str
    acts: str
    stop_s: float
    inconclusive: Inconclusive
    own_environment: bool
    speaks_to_slurm: bool = False


STEP = Slot(
    "step",
    "srun, or the batch script",
    "the job's user",
    "inside the job: its container, limits and cgroup",
    "the job's own",
    "the report",
    "nothing by itself; the batch script decides",
    50.0,
    "fail",
    own_environment=False,
)
PROLOG = Slot(
    "prolog",
    "Prolog=",
    "root",
    "before the first step of a job on the node, outside of the job's cgroup",
    "SLURM_JOB_*, SLURM_CONF, SLURMD_NODENAME and no more: no PATH, no HOME",
    "a pipe to slurmd, which waits until nobody holds it",
    "drains the node and puts the job back into the queue",
    30.0,
    "pass",
    own_environment=True,
)
TASKPROLOG = Slot(
    "taskprolog",
    "TaskProlog=",
    "the job's user",
    "before each task; only the first of a node looks",
    "the task's own",
    "read by SLURM: lines `print …` are shown, `export NAME=value` is set for the task",
    "ends the task, and the job with it",
    20.0,
    "pass",
    own_environment=False,
    speaks_to_slurm=True,
)
EPILOG = Slot(
    "epilog",
    "Epilog=",
    "root",
    "after the last step of a job on the node",
    "as for Prolog",
    "as for Prolog",
    "drains the node",
    30.0,
    "pass",
    own_environment=True,
)
HEALTHCHECK = Slot(
    "healthcheck",
    "HealthCheckProgram=",
    "root",
    "every HealthCheckInterval, and before slurmd registers; killed after 60 s",
    "SLURMD_NODENAME and no more",
    "as for Prolog",
    "nothing: SLURM writes it to slurmd's log, the program has to drain the node",
    40.0,  # two questions to SLURM may come behind it
    "pass",
    own_environment=True,
)
SLOTS: Mapping[str, Slot] = {
    slot.name: slot for slot in (STEP, PROLOG, TASKPROLOG, EPILOG, HEALTHCHECK)
}
ADMIN = tuple(name for name in SLOTS if name != "step")


def slot_of(name: str) -> Slot:
    """Return the slot of this name; UsageError where there is none."""
    if name not in SLOTS:
        raise UsageError(f"There is no slot {name[:40]!r}.", f"There are: {', '.join(SLOTS)}.")
    return SLOTS[name]


def checks_in(slot: str) -> tuple[CheckSpec, ...]:
    """Return the checks that may be made in a slot, by stage and id."""
    return tuple(
        sorted(
            (spec for spec in catalogue().values() if slot in spec.slots),
            key=lambda spec: (spec.stage, spec.id),
        )
    )


def environment_of(slot: Slot, given: Mapping[str, str], site: Site) -> dict[str, str]:
    """Return the environment of the check programs in a slot. Root's programs inherit nothing but
    the identity of the job.
    """
    if slot.own_environment:
        kept = {
            name: value
            for name, value in given.items()
            if name in ("SLURMD_NODENAME", "SLURM_JOB_ID", "SLURM_JOB_UID")
        }
        found = {**kept, "PATH": PATH, "LC_ALL": "C.UTF-8", "HOME": "/"} | (
            {"TRAINPROBE_PATHS": ":".join(site.paths)} if site.paths else {}
        )
    else:
        found = dict(given)
    found |= {"PYTHONDONTWRITEBYTECODE": "1", "TRAINPROBE_SLOT": slot.name}
    if site.thresholds:
        found["TRAINPROBE_THRESHOLDS"] = json.dumps(dict(site.thresholds))
    return found


def stop_after(slot: Slot, site: Site, asked_s: float | None) -> float:
    """Return the hard stop in seconds: the requested one, within the limit of the site or slot."""
    allowed = site.stop_s.get(slot.name, slot.stop_s)
    return min(allowed, asked_s) if asked_s is not None else allowed


def inconclusive_of(slot: Slot, site: Site, asked: Inconclusive | None) -> Inconclusive:
    """Return the answer for a node that could not be examined: the site's rule, then the option."""
    return site.inconclusive.get(slot.name) or asked or slot.inconclusive


def exit_of(rows: Sequence[CheckRow], doubts: Sequence[str], inconclusive: Inconclusive) -> int:
    """Return the exit code of an administrators' slot.

    NOT_READY takes the node away from everybody, so it needs a failed blocker that an administrator
    must fix. What a user must change, or what only slows jobs, is reported. What was not measured
    counts only with `inconclusive` fail.
    """
    if any(
        row.state == "fail" and row.severity == "blocker" and row.who == "admin" for row in rows
    ):
        return NOT_READY
    return NOT_READY if doubts and inconclusive == "fail" else READY
