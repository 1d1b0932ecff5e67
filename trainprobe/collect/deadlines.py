"""When evidence expires and what killing costs: the groups' timeouts, the scheduler's end, and the newest checkpoints."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import time
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from trainprobe.case import Case
from trainprobe.collect.descriptors import descriptors
from trainprobe.collect.members import Member, host_subject
from trainprobe.collect.seen import Seen, record, timed
from trainprobe.model.evidence import Evidence
from trainprobe.system.run import run

ASK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "deadlines_child.py")
KILL_S = 0.1
SCONTROL_S = 2.0
KEPT = 8
# torch/distributed/constants.py; NCCL's own default is 10 minutes since torch 2.2, and 30 before.
DEFAULT_S = {"nccl": 600.0, "": 1800.0}
_FOLDER_OPTION = re.compile(r"^-{0,2}[\w.]*?(output|save|ckpt|checkpoint|default_root|work|out|log|results?)[_-]?(dir|path|folder|root)?$")
_TIMEOUT_OPTION = re.compile(r"^-{0,2}(?:[\w.]*\.)?(ddp[_-]timeout|distributed[_-]timeout[_-]minutes)$")
_CHECKPOINT = re.compile(r"\.(pt|pth|ckpt|safetensors|distcp)(\.tmp)?$")


def look_at_deadlines(case: Case, cell: str, members: Sequence[Member], job: Mapping[str, Any], *, deadline_s: float = 1.5, proc: str = "/proc") -> Evidence:
    """Record one `deadlines`. `job` is the job's record: script, cwd, began, backend, device, environment, ranks with their command lines."""
    seen = timed(lambda: read_deadlines(members, job, deadline_s, proc))
    return record(case, "deadlines", seen, subject=host_subject(), cell=cell, source="script, environment, files")


def read_deadlines(members: Sequence[Member], job: Mapping[str, Any], deadline_s: float, proc: str = "/proc") -> Seen:
    """The same without a case."""
    cwd, script = str(job.get("cwd") or ""), str(job.get("script") or "")
    command = next((str(row.get("cmdline") or "") for row in job.get("ranks") or () if isinstance(row, dict)), "")
    words = _words(command)
    folders = folders_in(words) + _being_written(members, proc) + ([cwd] if cwd else [])
    asked: Dict[str, Any] = {"root": root_of(members, proc)}
    asked.update({"scripts": [script] if script else [], "folders": folders, "cwd": cwd or "/", "began": job.get("began"), "seconds": deadline_s * 0.7})
    argv = [sys.executable, "-E", "-S", "-B", ASK]
    ran = run(argv, timeout_s=deadline_s, cwd="/", input=json.dumps(asked).encode(), kill_s=KILL_S, output_cap_bytes=2**20)
    rows = _rows(ran.stdout)
    scripts = [row for row in rows if "script" in row]
    listed = [row for row in rows if "folder" in row]
    checkpoints = {one["path"]: one for row in listed for one in row["checkpoints"]}
    environment = _environment(job)
    data: Dict[str, Any] = {
        "group_timeouts": timeouts(scripts, words, environment, str(job.get("backend") or ""), str(job.get("device") or "")),
        "scheduler": scheduler_end(environment),
        "checkpoints": sorted(checkpoints.values(), key=lambda one: -one["modified_at"])[:KEPT],
        "looked_in": [row["folder"] for row in listed],
    }
    if any(row["cut"] for row in listed):
        data["cut"] = True
    if ran.ended.how in ("timed_out", "unkillable"):
        return Seen(data, "partial", f"reading the script and listing the checkpoints did not end within {deadline_s:g} s; the file system may hang")
    if script and any(row["flaw"] for row in scripts):
        return Seen(data, "partial", f"{script} cannot be read for its timeouts: {scripts[0]['flaw']}")
    return Seen(data)


def timeouts(scripts: Sequence[Mapping[str, Any]], words: Sequence[str], environment: Mapping[str, str], backend: str, device: str) -> List[Dict[str, Any]]:
    """The groups' timeouts that are known, each with its source; torch's default where the script makes a group and gives none."""
    found: List[Dict[str, Any]] = []
    for row in scripts:
        known = [call for call in row["timeouts"] if call["seconds"] is not None]
        found += [{"rank": None, "seconds": call["seconds"], "source": f"{row['script']}:{call['line']} {call['call']}"} for call in known]
    for name, value in _options(words):
        if _TIMEOUT_OPTION.match(name) and value.isdigit():
            found.append({"rank": None, "seconds": int(value) * (60.0 if "minutes" in name else 1.0), "source": f"command line: {name} {value}"})
    minutes = environment.get("DEEPSPEED_TIMEOUT", "")
    if minutes.isdigit():
        found.append({"rank": None, "seconds": int(minutes) * 60.0, "source": f"DEEPSPEED_TIMEOUT={minutes}"})
    unknown = [call for row in scripts for call in row["timeouts"] if call["given"] and call["seconds"] is None]
    if not found and not unknown:
        kind = "nccl" if "nccl" in backend or (not backend and device == "cuda") else ""
        found.append({"rank": None, "seconds": DEFAULT_S[kind], "source": f"torch's default for {'NCCL' if kind else backend or 'gloo'}, since none was found"})
    return found


def scheduler_end(environment: Mapping[str, str]) -> Optional[Dict[str, Any]]:
    """When SLURM will end the job: from its variable (Slurm 22.05 and later), else by asking scontrol."""
    end = environment.get("SLURM_JOB_END_TIME", "")
    if end.isdigit():
        return {"ends_at": float(end), "source": "SLURM_JOB_END_TIME"}
    job = environment.get("SLURM_JOB_ID") or environment.get("SLURM_JOBID") or ""
    if not job.isdigit():
        return None
    ran = run(["scontrol", "show", "job", "-o", job], timeout_s=SCONTROL_S, output_cap_bytes=2**18)
    return parse_scontrol(ran.stdout.decode("utf-8", "replace")) if ran.ended.how == "exited" and ran.ended.code == 0 else None


def parse_scontrol(text: str) -> Optional[Dict[str, Any]]:
    """`EndTime=2026-11-21T05:00:00`, in the host's own time zone; Unknown for a job without a limit."""
    match = re.search(r"\bEndTime=(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\b", text)
    if match is None:
        return None
    return {"ends_at": time.mktime(time.strptime(match.group(1), "%Y-%m-%dT%H:%M:%S")), "source": "scontrol show job"}


def folders_in(words: Sequence[str]) -> List[str]:
    """Folders that the command line names: `--output_dir out`, `--save=ckpt`, `trainer.default_root_dir=x`."""
    return [value for name, value in _options(words) if value and _FOLDER_OPTION.match(name)]


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


def _options(words: Sequence[str]) -> List[Tuple[str, str]]:
    """(name, value) pairs: `--a b`, `--a=b` and `a.b=c`."""
    found = []
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if equals:
            found.append((name, value))
        elif word.startswith("--") and place + 1 < len(words) and not words[place + 1].startswith("-"):
            found.append((word, words[place + 1]))
    return found


def _being_written(members: Sequence[Member], proc: str) -> List[str]:
    names = [name for member in members if member.role == "rank" for name in (descriptors(member.pid, proc) or {}).values()]
    return list(dict.fromkeys(os.path.dirname(name) for name in names if name.startswith("/") and _CHECKPOINT.search(name)))[:4]


def _words(command: str) -> List[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _environment(job: Mapping[str, Any]) -> Dict[str, str]:
    """One process's environment after another; what the job as a whole has comes first."""
    merged: Dict[str, str] = {}
    parts = job.get("environment") or {}
    for who in sorted(parts, key=lambda name: str(name) != "job"):
        for name, value in parts[who].items() if isinstance(parts[who], dict) else ():
            merged.setdefault(str(name), str(value))
    return merged


def _rows(output: bytes) -> List[Dict[str, Any]]:
    rows = []
    for line in output.splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue  # cut in the middle when the time was up
    return [row for row in rows if isinstance(row, dict)]
