"""Which number a rank has, by the locals of its own frames: the last resort where no variable and
no argument says it.

`torch.multiprocessing.spawn` passes the number as `i` of `_wrap`, and training scripts call it
`rank`. Only whole numbers of these names are read, in these files only; nothing else of a frame's
locals is kept.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Dict, List, Optional, Sequence

from trainprobe.collect import procfs, pyspy, stacks
from trainprobe.collect.look_results import LookResult, refused, side_by_side
from trainprobe.collect.members import Member
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.places import is_user

NAMES = ("global_rank", "rank", "local_rank", "world_size")
MOST = 2**20  # no world is larger; a larger number of that name is something else
_SPAWN = re.compile(r"/torch/multiprocessing/spawn\.py$")
_PROCESS = re.compile(r"/multiprocess(?:ing)?/process\.py$")
_DISTRIBUTED = re.compile(r"/torch/distributed/(?:distributed_c10d|rendezvous)\.py$")
_WHOLE = re.compile(r"[0-9]{1,7}\Z")


@dataclass(frozen=True)
class RankLocals:
    """A process's number by its frames, or None; `spawned` is mp.spawn's on this host. `beside`: it
    runs what a plain multiprocessing.Process was given.
    """

    rank: Optional[int] = None
    local_rank: Optional[int] = None
    world_size: Optional[int] = None
    spawned: Optional[int] = None
    beside: bool = False


def read_rank_locals(
    members: Sequence[Member], *, deadline_s: float, at_once: int
) -> Dict[int, RankLocals]:
    """Ask the frames of each process once; return the answers by pid."""
    looks = [partial(_read, member, deadline_s) for member in members]
    results = side_by_side(looks, deadline_s + 0.2, at_once)
    return {
        member.pid: RankLocals(**result.data)
        for member, result in zip(members, results)
        if result.outcome == "ok"
    }


def parse(content: bytes, pid: int) -> RankLocals:
    """Parse the output of `py-spy dump --json --locals`; the outermost frame counts."""
    try:
        rows = json.loads(content)
    except (ValueError, RecursionError):
        return RankLocals()
    threads = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    alone = threads[0] if len(threads) == 1 else {}
    main = next((row for row in threads if row.get("os_thread_id") == pid), alone)
    frames = main["frames"] if isinstance(main.get("frames"), list) else []
    found: Dict[str, int] = {}
    calls = [
        (str(row.get("filename") or ""), str(row.get("name") or "").rsplit(".", 1)[-1])
        for row in frames
        if isinstance(row, dict)
    ]
    runs = any(_PROCESS.search(file) and name == "run" for file, name in calls)
    spawned = any(_SPAWN.search(file) and name == "_wrap" for file, name in calls)
    for row in reversed(frames):
        for name, value in (_of_frame(row) if isinstance(row, dict) else {}).items():
            found.setdefault(name, value)
    return RankLocals(
        found.get("global_rank", found.get("rank")),
        found.get("local_rank"),
        found.get("world_size"),
        found.get("i"),
        runs and not spawned,
    )


def _of_frame(row: Dict[str, Any]) -> Dict[str, int]:
    file, name = str(row.get("filename") or ""), str(row.get("name") or "")
    wanted: Sequence[str] = ()
    if _SPAWN.search(file):
        wanted = ("i",) if name == "_wrap" else ()
    elif _DISTRIBUTED.search(file) or is_user(Frame(name, file)):
        wanted = NAMES
    rows: List[Any] = row["locals"] if isinstance(row.get("locals"), list) else []
    found = {}
    for local in rows if wanted else ():
        if (
            isinstance(local, dict)
            and local.get("name") in wanted
            and isinstance(local.get("repr"), str)
            and _WHOLE.match(local["repr"])
        ):
            found[str(local["name"])] = int(local["repr"])
    return {name: value for name, value in found.items() if value < MOST}


def _read(member: Member, deadline_s: float) -> LookResult:
    path, reason = pyspy.find()
    gone = procfs.gone(member.pid, member.started_ticks)
    if path is None or gone:
        return refused("unavailable", gone or reason)
    now = procfs.stat(member.pid)
    options = ["--locals"]
    if now is not None and now.state in stacks.CANNOT_PAUSE:
        options.append("--nonblocking")
    ran = stacks.dump(path, member.pid, deadline_s, options)
    if ran.ended.how != "exited" or ran.ended.code != 0:
        return refused(
            "unavailable", f"py-spy did not say what the frames of process {member.pid} hold"
        )
    return LookResult(asdict(parse(ran.stdout, member.pid)))
