"""The look of one node at its part of a job: evidence goes to stdout, line by line."""

from __future__ import annotations

import os
import re

from trainprobe.attach.discovery import numbered
from trainprobe.attach.visit import look_at_job
from trainprobe.case import Case
from trainprobe.errors import UsageError
from trainprobe.model.evidence import LIVE_CELL
from trainprobe.model.progress import Silence
from trainprobe.model.request import AttachRequest
from trainprobe.nodes.remote_end import RecordSender
from trainprobe.system.working_folders import working_folder
from trainprobe.targets.environment import environ_of
from trainprobe.targets.jobs import LiveJob, find_jobs

MOST_GROUPS = 8
_LABEL = re.compile(r"[\w.:-]{1,60}")


def look_here(slurm: str, timeout_s: float) -> int:
    """Look at the training of SLURM job `slurm` on this host, at any where it is empty, and print
    the evidence. Return the exit code.

    Each group of processes that form one world is looked at, in a cell of its own; they share the
    time.
    """
    with RecordSender() as telling:
        groups = _mine(slurm, timeout_s)
        telling.none = not groups
        if not groups:
            raise UsageError(
                f"No training process of {f'job {slurm}' if slurm else 'yours'} runs on"
                f" {os.uname().nodename}."
            )
        with working_folder() as folder:
            case = Case.create(os.path.join(folder, "case"), "attach", ())
            for cell, job in groups.items():
                look_at_job(
                    numbered(job),
                    case,
                    AttachRequest(timeout_s=timeout_s / len(groups)),
                    Silence(),
                    cell=cell,
                )
            telling.records(case.seal())
            case.close()
    return 0


def _mine(slurm: str, timeout_s: float) -> dict[str, LiveJob]:
    """The groups by their cells. A step of SLURM has one name on all nodes; elsewhere the
    largest group is taken for the job that is meant.
    """
    job, _, step = slurm.partition(".")
    found: dict[str, LiveJob] = {}
    for live in sorted(find_jobs(deadline_s=timeout_s), key=lambda job: -len(job.ranks)):
        of_job, of_step = _slurm_step(live)
        if slurm and (of_job != job or (step and of_step != step)):
            continue
        label = f"step{of_step}" if slurm else "" if not found else _address(live)
        cell = f"{LIVE_CELL}#{label}" if label else LIVE_CELL
        found.setdefault(cell if cell not in found else f"{cell}.{live.pid}", live)
    return dict(list(found.items())[:MOST_GROUPS])


def _slurm_step(job: LiveJob) -> tuple[str, str]:
    """The job and the step (or `batch`) that started its processes; empty without SLURM."""
    for pid in (
        *(rank.pid for rank in job.ranks),
        *([job.launcher.pid] if job.launcher.pid else []),
    ):
        environ = environ_of(pid)
        if environ.get("SLURM_JOB_ID"):
            step = environ.get("SLURM_STEP_ID", "")
            return environ["SLURM_JOB_ID"], step if step.isdecimal() and len(step) < 10 else "batch"
    return "", ""


def _address(job: LiveJob) -> str:
    """Where its ranks meet, which is the same on all of its hosts; else its pid."""
    address = next(
        (
            f"{values['MASTER_ADDR']}:{values.get('MASTER_PORT', '')}"
            for values in job.environment.values()
            if values.get("MASTER_ADDR")
        ),
        "",
    )
    return address if _LABEL.fullmatch(address) else f"pid{job.pid}"
