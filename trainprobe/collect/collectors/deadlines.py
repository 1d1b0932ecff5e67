"""When a job ends and what killing it costs: timeouts, the scheduler, checkpoints."""

from __future__ import annotations

import json
import os
import re
import shlex
import time
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from trainprobe.collect.collector import Collector, JobView
from trainprobe.collect.descriptors import descriptors
from trainprobe.collect.look_results import LookResult
from trainprobe.collect.members import Member
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

SCONTROL_S = 2.0
CHECKPOINTS_CAP = 8
# torch/distributed/constants.py; NCCL's own default is 10 minutes since torch 2.2, and 30 before.
DEFAULT_S = {"nccl": 600.0, "": 1800.0}
_FOLDER_OPTION = re.compile(
    r"^-{0,2}[\w.]*?(output|save|ckpt|checkpoint|default_root|work|out|log|results?)[_-]?(dir"
    r"|path|folder|root)?$"
)
_TIMEOUT_OPTION = re.compile(
    r"^-{0,2}(?:[\w.]*\.)?(ddp[_-]timeout|distributed[_-]timeout[_-]minutes)$"
)
_CHECKPOINT = re.compile(r"\.(pt|pth|ckpt|safetensors|distcp)(\.tmp)?$")


@dataclass(frozen=True)
class Deadline(Fact):
    """A time limit. `kind` is group or scheduler; `seconds` the length of a group's timeout,
    `ends_at` the Unix time at which a scheduler ends the job.
    """

    kind: str = "group"
    seconds: Optional[float] = None
    ends_at: Optional[float] = None
    source: str = ""


@dataclass(frozen=True)
class Checkpoint(Fact):
    """A checkpoint file: size in bytes and the Unix time of its last change."""

    path: str = ""
    bytes: int = 0
    modified_at: Optional[float] = None


def read_deadlines(
    members: Sequence[Member], job: Mapping[str, Any], deadline_s: float, proc: str = "/proc"
) -> LookResult:
    """`job` is the job's record: script, cwd, backend, environment, ranks."""
    from trainprobe.collect.child_programs import json_lines, run_child
    from trainprobe.system.answering import silent

    cwd, script = str(job.get("cwd") or ""), str(job.get("script") or "")
    command = next(
        (str(row.get("cmdline") or "") for row in job.get("ranks") or () if isinstance(row, dict)),
        "",
    )
    arguments = _words(command)
    folders = folders_in(arguments) + _being_written(members, proc) + ([cwd] if cwd else [])
    root = root_of(members, proc)
    untouched = {
        name: silence
        for name in ([script] if script else []) + folders
        if (silence := silent(root + os.path.join(cwd or "/", name)))
    }
    question: Dict[str, Any] = {
        "root": root,
        "scripts": [script] if script and script not in untouched else [],
        "folders": [name for name in folders if name not in untouched],
        "cwd": cwd or "/",
        "began": job.get("began"),
        "seconds": deadline_s * 0.7,
    }
    ran = run_child(
        "deadlines_child", timeout_s=deadline_s * 0.9, input=json.dumps(question).encode()
    )
    rows = json_lines(ran.stdout)
    scripts = [row for row in rows if "script" in row]
    listed = [row for row in rows if "folder" in row]
    checkpoints = {
        checkpoint["path"]: checkpoint for row in listed for checkpoint in row["checkpoints"]
    }
    environment = JobView(data=job).variables
    data: Dict[str, Any] = {
        "group_timeouts": timeouts(
            scripts,
            arguments,
            environment,
            str(job.get("backend") or ""),
            str(job.get("device") or ""),
        ),
        "scheduler": scheduler_end(environment),
        "checkpoints": sorted(
            checkpoints.values(), key=lambda checkpoint: -checkpoint["modified_at"]
        )[:CHECKPOINTS_CAP],
        "looked_in": [row["folder"] for row in listed],
    }
    if any(row["cut"] for row in listed):
        data["cut"] = True
    if untouched:
        (name, silence), *more = untouched.items()
        others = f" and {len(more)} more" if more else ""
        return LookResult(data, "partial", f"{name}{others} cannot be read: {silence}")
    if ran.ended.how in ("timed_out", "unkillable"):
        return LookResult(
            data,
            "partial",
            f"reading the script and listing the checkpoints did not end within {deadline_s:g} s;"
            " the file system may hang",
        )
    if script and any(row["flaw"] for row in scripts):
        return LookResult(
            data, "partial", f"{script} cannot be read for its timeouts: {scripts[0]['flaw']}"
        )
    return LookResult(data)


def timeouts(
    scripts: Sequence[Mapping[str, Any]],
    arguments: Sequence[str],
    environment: Mapping[str, str],
    backend: str,
    device: str,
) -> List[Dict[str, Any]]:
    """The known timeouts of groups, each with its source; else torch's default."""
    calls = [(row["script"], call) for row in scripts for call in row["timeouts"]]
    found: List[Tuple[float, str]] = [
        (call["seconds"], f"{script}:{call['line']} {call['call']}")
        for script, call in calls
        if call["seconds"] is not None
    ]
    for name, value in _options(arguments):
        if _TIMEOUT_OPTION.match(name) and value.isdecimal():
            unit_s = 60.0 if "minutes" in name else 1.0
            found.append((int(value) * unit_s, f"command line: {name} {value}"))
    minutes = environment.get("DEEPSPEED_TIMEOUT", "")
    if minutes.isdecimal():
        found.append((int(minutes) * 60.0, f"DEEPSPEED_TIMEOUT={minutes}"))
    if not found and not any(call["given"] and call["seconds"] is None for _, call in calls):
        kind = "nccl" if "nccl" in backend or (not backend and device == "cuda") else ""
        name = "NCCL" if kind else backend or "gloo"
        found.append((DEFAULT_S[kind], f"torch's default for {name}, since none was found"))
    return [{"rank": None, "seconds": seconds, "source": source} for seconds, source in found]


def scheduler_end(environment: Mapping[str, str]) -> Optional[Dict[str, Any]]:
    """When SLURM will end the job, by its variable (since 22.05) or by scontrol."""
    end = environment.get("SLURM_JOB_END_TIME", "")
    if end.isdecimal():
        return {"ends_at": float(end), "source": "SLURM_JOB_END_TIME"}
    job = environment.get("SLURM_JOB_ID") or environment.get("SLURM_JOBID") or ""
    if not job.isdecimal():
        return None
    from trainprobe.system.run import run

    ran = run(["scontrol", "show", "job", "-o", job], timeout_s=SCONTROL_S, output_cap_bytes=2**18)
    if ran.ended.how != "exited" or ran.ended.code != 0:
        return None
    return parse_scontrol(ran.stdout.decode("utf-8", "replace"))


def parse_scontrol(text: str) -> Optional[Dict[str, Any]]:
    """`EndTime=2026-11-21T05:00:00`, in local time; Unknown without a limit."""
    match = re.search(r"\bEndTime=(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\b", text)
    if match is None:
        return None
    try:
        ends_at = time.mktime(time.strptime(match.group(1), "%Y-%m-%dT%H:%M:%S"))
    except (ValueError, OverflowError):  # no day of the calendar
        return None
    return {"ends_at": ends_at, "source": "scontrol show job"}


def folders_in(arguments: Sequence[str]) -> List[str]:
    """Folders on the command line: `--output_dir out`, `--save=ckpt`, `x.root_dir=y`."""
    return [value for name, value in _options(arguments) if value and _FOLDER_OPTION.match(name)]


def root_of(members: Sequence[Member], proc: str) -> str:
    """Where the root of the job's container is for us; empty where it is ours."""
    for member in members:
        try:
            if os.readlink(f"{proc}/{member.pid}/ns/mnt") != os.readlink(f"{proc}/self/ns/mnt"):
                return f"{proc}/{member.pid}/root"
        except OSError:
            continue
        return ""
    return ""


def _options(arguments: Sequence[str]) -> List[Tuple[str, str]]:
    """(name, value) pairs: `--a b`, `--a=b` and `a.b=c`."""
    found = []
    for place, word in enumerate(arguments):
        name, equals, value = word.partition("=")
        if equals:
            found.append((name, value))
        elif word.startswith("--"):
            following = arguments[place + 1 : place + 2]
            found += [(word, value) for value in following if not value.startswith("-")]
    return found


def _being_written(members: Sequence[Member], proc: str) -> List[str]:
    ranks = [member.pid for member in members if member.role == "rank"]
    names = [name for pid in ranks for name in (descriptors(pid, proc) or {}).values()]
    written = [name for name in names if name.startswith("/") and _CHECKPOINT.search(name)]
    return list(dict.fromkeys(map(os.path.dirname, written)))[:4]


def _words(command: str) -> List[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def parse_deadlines(record: Evidence) -> List[Fact]:
    """Parse {group_timeouts: […], scheduler: {ends_at, source}|null, checkpoints: […]}."""
    data, scheduler = record.data, fields.part(record.data, "scheduler")

    def group(row: Mapping[str, Any]) -> Fact:
        rank, seconds = fields.whole(row, "rank"), fields.number(row, "seconds")
        source = fields.text(row, "source")
        return Deadline((record.id,), record.cell, rank, "group", seconds, source=source)

    found: List[Fact] = fields.each(fields.items(data, "group_timeouts"), group)
    if fields.number(scheduler, "ends_at") is not None:
        found.append(fields.fact(Deadline, record, scheduler, kind="scheduler", seconds=None))
    return found + fields.each(
        fields.items(data, "checkpoints"), lambda row: fields.fact(Checkpoint, record, row)
    )


COLLECTOR = Collector(
    "deadlines",
    lambda job, deadline_s: read_deadlines(job.members, job.data, deadline_s),
    deadline_s=1.5,
    source="script, environment, files",
    parse=parse_deadlines,
    facts=(Deadline, Checkpoint),
)
