"""Where the flight-recorder dumps of a live job may lie: by its variables, by the defaults of torch
and its relatives, in its folder.

Sources: `TORCH_FR_DUMP_TEMP_FILE` and its older name name a prefix to which the rank is added
(torch/csrc/distributed/c10d); without them torch writes
`$XDG_CACHE_HOME/torch/comm_lib_trace_rank_<rank>`, before 2.10 `/tmp/nccl_trace_rank_<rank>`;
torch_npu writes
`/tmp/hccl_trace_rank_<rank>`; torchtitan writes `<dump folder>/comm_traces/rank_<rank>`.
"""

from __future__ import annotations

import os
import re
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from trainprobe.collect.members import Member

PREFIX_VARIABLES = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
DEFAULT_PREFIXES = (
    "/tmp/nccl_trace_rank_",  # noqa: S108 - where others write, not we
    "/tmp/hccl_trace_rank_",  # noqa: S108 - where others write, not we
)
UNDER_CACHE = "torch/comm_lib_trace_rank_"
UNDER_CWD = ("comm_traces/rank_", "comm_traces/_dump_")
FOLDERS_CAP = 200
DUMPS_CAP = 1024
ENVIRON_CAP_BYTES = 1 << 20
_WANTED = (*PREFIX_VARIABLES, "XDG_CACHE_HOME", "HOME")


class Found(NamedTuple):
    """A possible dump of `rank`: `path` for us, `shown` as the job calls it."""

    rank: int
    path: str
    shown: str


def find_dumps(prefix: str) -> List[Tuple[str, int]]:
    """The files named `prefix` and a rank, with or without an ending, by rank."""
    from trainprobe.system.answering import silent

    folder, start = os.path.split(prefix)
    name = re.compile(re.escape(start) + r"(\d{1,7})(?:\.(?:pkl|pickle|json))?$")
    if silent(folder or "."):
        return []
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return []
    found = [
        (int(match.group(1)), os.path.join(folder, match.string))
        for match in map(name.match, sorted(names))
        if match
    ]
    return [(path, rank) for rank, path in sorted(found)[:DUMPS_CAP]]


def dumps_of_job(
    members: Sequence[Member], environment: Mapping[str, Mapping[str, str]]
) -> List[Found]:
    """All files that may be dumps of these ranks, or of ranks elsewhere that share a file system;
    the same file once.

    `environment` maps a rank (as text) or "job" to variables, for what /proc/PID/environ does not
    show.
    """
    found: Dict[Tuple[int, str], Found] = {}
    for root, prefix in _prefixes(
        members, {str(who): values for who, values in environment.items()}
    ):
        for path, rank in find_dumps(root + prefix):
            found.setdefault((rank, os.path.realpath(path)), Found(rank, path, path[len(root) :]))
    return list(found.values())


def _prefixes(
    members: Sequence[Member], environment: Mapping[str, Mapping[str, str]]
) -> List[Tuple[str, str]]:
    """(root, prefix) pairs, without repetition: most ranks share theirs."""
    pairs: Dict[Tuple[str, str], None] = {}
    for member in [member for member in members if member.role == "rank"][:DUMPS_CAP]:
        root, cwd = _root(member.pid), _link(f"/proc/{member.pid}/cwd")
        values = {
            **environment.get("job", {}),
            **environment.get(str(member.rank), {}),
            **_environ(member.pid),
        }
        for prefix in [values[name] for name in PREFIX_VARIABLES if values.get(name)]:
            pairs[(root, os.path.join(cwd or "/", prefix))] = None
        caches = [
            values.get("XDG_CACHE_HOME", ""),
            os.path.join(values.get("HOME") or os.path.expanduser("~"), ".cache"),
        ]
        for cache in caches:
            if cache:
                pairs[(root, os.path.join(cache, UNDER_CACHE))] = None
        for prefix in DEFAULT_PREFIXES:
            pairs[(root, prefix)] = None
        for folder in _folders(root, cwd) if cwd else ():
            for prefix in UNDER_CWD:
                pairs[(root, os.path.join(folder, prefix))] = None
    return list(pairs)


def _folders(root: str, cwd: str) -> List[str]:
    """The job's folder and the folders in it: torchtitan's dump folder is one of them."""
    from trainprobe.system.answering import silent

    if silent(root + cwd):
        return []
    try:
        with os.scandir(root + cwd) as entries:
            inside = [
                entry.name
                for entry, _ in zip(entries, range(FOLDERS_CAP))
                if entry.is_dir(follow_symlinks=False)
            ]
    except OSError:
        inside = []
    return [cwd, *(os.path.join(cwd, name) for name in sorted(inside) if name != "comm_traces")]


def _root(pid: int) -> str:
    """What to put before a path of the process: nothing where it sees the same mounts as we do."""
    try:
        same = os.stat(f"/proc/{pid}/ns/mnt").st_ino == os.stat("/proc/self/ns/mnt").st_ino
    except OSError:
        return ""
    inside = _link(f"/proc/{pid}/root")
    return "" if same and inside in ("/", None) else f"/proc/{pid}/root"


def _link(path: str) -> Optional[str]:
    try:
        return os.readlink(path)
    except OSError:
        return None


def _environ(pid: int) -> Dict[str, str]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            content = file.read(ENVIRON_CAP_BYTES)
    except OSError:
        return {}
    pairs = [entry.partition(b"=") for entry in content.split(b"\0")]
    return {
        name.decode("utf-8", "replace"): os.fsdecode(value)
        for name, _, value in pairs
        if name.decode("utf-8", "replace") in _WANTED and value
    }
