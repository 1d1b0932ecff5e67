"""The look of one node at its part of a job, for somebody on another node: evidence goes to stdout, line by line, when it is whole."""

from __future__ import annotations

import os

from trainprobe.attach.discovery import numbered
from trainprobe.attach.visit import look_at_job
from trainprobe.case import Case
from trainprobe.errors import UsageError
from trainprobe.model.progress import Silence
from trainprobe.model.request import AttachRequest
from trainprobe.nodes.telling import Telling
from trainprobe.system.working_folders import working_folder
from trainprobe.targets.environment import environ_of
from trainprobe.targets.jobs import LiveJob, find_jobs


def look_here(slurm: str, timeout_s: float) -> int:
    """Look at the training of SLURM job `slurm` on this host, at any where it is empty, and print the evidence. Return the exit code."""
    with Telling() as telling:
        job = _mine(slurm)
        telling.none = job is None
        if job is None:
            raise UsageError(f"No training process of {f'job {slurm}' if slurm else 'yours'} runs on {os.uname().nodename}.")
        with working_folder() as folder:
            case = Case.create(os.path.join(folder, "case"), "attach", ())
            look_at_job(job, case, AttachRequest(timeout_s=timeout_s), Silence())
            for record in case.seal():
                telling.record(record)
            case.close()
    return 0


def _mine(slurm: str) -> LiveJob | None:
    job, _, step = slurm.partition(".")
    found = [one for one in find_jobs() if not slurm or _belongs(one, job, step)]
    return numbered(max(found, key=lambda one: len(one.ranks))) if found else None


def _belongs(one: LiveJob, job: str, step: str) -> bool:
    for rank in one.ranks:
        environ = environ_of(rank.pid)
        if environ.get("SLURM_JOB_ID") == job and (not step or (environ.get("SLURM_STEP_ID") or "batch") == step):
            return True
    return False
