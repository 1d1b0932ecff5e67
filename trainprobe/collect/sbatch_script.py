"""A batch script before it is submitted: its text, what the site answered, and what stands on this
host. One record of kind `sbatch`.

Nothing of the script is run. Paths are looked at in a child with a deadline, since one of them may
lie on a file system that hangs.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import time
from dataclasses import replace
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from trainprobe.case import Case
from trainprobe.collect.child_programs import json_lines, run_child
from trainprobe.errors import UsageError
from trainprobe.model.evidence import Evidence, LookOutcome
from trainprobe.sbatch.engine import plan_of
from trainprobe.sbatch.rules.paths import named_paths
from trainprobe.sbatch.site import LoginNode

KIND = "sbatch"
PATHS_S = 5.0
DEEPEST = 3
REMEDY = "Name a batch script: trainprobe ready --sbatch job.sh."
SCRIPT_CAP_BYTES = 2**20
_LIMITS = {
    "nofile": resource.RLIMIT_NOFILE,
    "memlock": resource.RLIMIT_MEMLOCK,
    "as": resource.RLIMIT_AS,
    "nproc": resource.RLIMIT_NPROC,
    "cpu": resource.RLIMIT_CPU,
}
_LIMITS.update(
    {"data": resource.RLIMIT_DATA, "stack": resource.RLIMIT_STACK, "core": resource.RLIMIT_CORE}
)
_PREFIXES = tuple(
    """
    SBATCH_ NCCL_ TORCH_ GLOO_ CUDA_ OMP_ MKL_ PYTHON MASTER_ RANK WORLD_SIZE LOCAL_RANK PET_
    TORCHELASTIC_ UCX_ FI_
    """.split()
)
_VARIABLES = tuple(
    """
    HOME USER SRUN_CPUS_PER_TASK CONDA_PREFIX VIRTUAL_ENV SCRATCH WORK PROJECT TMPDIR PWD
    """.split()
)


def read_text(path: str) -> str:
    """The text of a script as it is. Raises UsageError where it cannot be read or is no text."""
    try:
        if not os.path.isfile(path):
            raise UsageError(
                f"{path} is no file.", "Name a batch script: trainprobe ready --sbatch job.sh."
            )
        with open(path, "rb") as file:
            content = file.read(SCRIPT_CAP_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.", REMEDY) from error
    if len(content) > SCRIPT_CAP_BYTES:
        size = f"{SCRIPT_CAP_BYTES // 1024} KiB"
        raise UsageError(f"{path} has more than {size}, and is no batch script.", REMEDY)
    if b"\0" in content:
        raise UsageError(f"{path} is no text.", REMEDY)
    return content.decode("utf-8", "replace")


def look_at_script(
    case: Case,
    script: str,
    options: Sequence[str],
    site: Mapping[str, Any],
    *,
    paths_s: float = PATHS_S,
) -> Tuple[Evidence, Dict[str, Any]]:
    """Record what is known of a script. Return the record, and its data as they were before secrets
    were taken out: for the corrected script.

    `options` are those of sbatch's command line, `site` the answers of the site. Raises UsageError
    where there is no such script.
    """
    began = time.monotonic()
    text = read_text(script)
    place = _host_record()
    host = LoginNode(environ=place["environ"], cwd=place["cwd"], home=place["home"])
    plan = plan_of(text, tuple(options), None, host)
    files: Dict[str, str] = {}
    for _ in range(DEEPEST):  # a script that is called may call another one
        called = [row for row in plan.script.called if row[0] not in files]
        found = read_called(called, place["cwd"], paths_s)
        if not found:
            break
        files.update(found)
        plan = plan_of(text, tuple(options), None, replace(host, files=files))
    named = named_paths(plan)
    wanted = [(path, "write" if role in ("output", "error") else "read") for path, role, _ in named]
    programs = {
        launch.script: path
        for launch in plan.launches
        for path, role, line in named
        if role == "program" and line == launch.line and launch.script.endswith(".py")
    }
    states, about, trouble = look_at_paths(wanted, programs, paths_s)
    place.update({"paths": states, "programs": about, "files": files})
    data: Dict[str, Any] = {
        "script": script,
        "text": text,
        "options": list(options),
        "site": dict(site),
        "here": place,
    }
    reason = " ".join([*trouble, *(f"{item}." for item in site.get("unknown", ()))])
    outcome: LookOutcome = "partial" if reason else "ok"
    evidence = case.add(
        KIND,
        source="sbatch script",
        took_s=time.monotonic() - began,
        outcome=outcome,
        reason=reason,
        data=data,
    )
    return evidence, data


def read_called(
    called: Sequence[Tuple[str, Optional[str]]], cwd: str, paths_s: float = PATHS_S
) -> Dict[str, str]:
    """The texts of the shell scripts that a batch script calls, by the names by which it calls
    them; those outside of the working folder are not read.
    """
    wanted: Dict[str, str] = {}
    for name, folder in called:
        path = os.path.normpath(os.path.join(folder or cwd, name))
        if cwd and path.startswith(f"{cwd.rstrip('/')}/"):
            wanted[name] = path
    if not wanted:
        return {}
    asked = json.dumps({"paths": [], "programs": {}, "files": wanted}).encode()
    ran = run_child(
        "paths_child", timeout_s=paths_s, input=asked, kill_s=0.5, output_cap_bytes=2**23
    )
    return {str(row["file"]): str(row["text"]) for row in json_lines(ran.stdout) if "file" in row}


def _host_record() -> Dict[str, Any]:
    environ = {
        name: value[:4000]
        for name, value in os.environ.items()
        if name.startswith(_PREFIXES) or name in _VARIABLES
    }
    limits: Dict[str, List[Optional[int]]] = {}
    for name, number in _LIMITS.items():
        soft, hard = resource.getrlimit(number)
        limits[name] = [None if item == resource.RLIM_INFINITY else item for item in (soft, hard)]
    return {
        "environ": environ,
        "limits": limits,
        "cwd": _cwd(),
        "home": os.environ.get("HOME", ""),
        "host": socket.gethostname(),
    }


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return ""


def look_at_paths(
    paths: Sequence[Tuple[str, str]], programs: Mapping[str, str], paths_s: float = PATHS_S
) -> Tuple[Dict[str, str], Dict[str, Any], List[str]]:
    """Each path as file, folder, missing, denied or unknown (too late), and programs."""
    states: Dict[str, str] = {}
    about: Dict[str, Any] = {}
    if not paths and not programs:
        return states, about, []
    asked = json.dumps({"paths": list(paths), "programs": dict(programs)}).encode()
    ran = run_child(
        "paths_child", timeout_s=paths_s, input=asked, kill_s=0.5, output_cap_bytes=2**23
    )
    at = ""
    for row in json_lines(ran.stdout):
        at = str(row.get("at") or at)
        if "state" in row:
            states[str(row["path"])] = str(row["state"])
        if "program" in row:
            about[str(row["program"])] = row["says"]
    left = [path for path, _ in paths if path not in states]
    states.update(dict.fromkeys(left, "unknown"))
    late = ran.ended.how in ("timed_out", "unkillable")
    trouble = ["The paths could not be looked at."] if left else []
    if late and at:
        trouble = [f"{at} gave no answer within {paths_s:g} s."]
    return states, about, trouble
