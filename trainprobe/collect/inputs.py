"""What somebody saved of a job that hung: flight-recorder dumps and stack dumps, by any name, found
by what is in them.

They become a case as if a live job had been looked at, with a `job` record whose launcher is
`unknown`.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from trainprobe.case import Case
from trainprobe.collect import pyspy
from trainprobe.collect.collectors.source import Site, look_at_source
from trainprobe.collect.dump_files import DumpRead, read_dump_files
from trainprobe.collect.flight_reading import FILE_CAP_BYTES, rank_in_entries, rank_in_name
from trainprobe.collect.flight_recorder import look_at_dumps
from trainprobe.collect.look_results import LookResult, record, refused
from trainprobe.model.ranks import unfold_ranks
from trainprobe.model.subjects import JOB, Subject
from trainprobe.regular_files import read_head, read_regular_file
from trainprobe.saved_case import EVIDENCE, META
from trainprobe.stacks.stack_text import ProcessStack, parse_stack_text

CELL = "job"
STDIN = "-"
HEAD_BYTES = 65536
STACKS_CAP_BYTES = 16 * 2**20
DEADLINE_S, DEADLINE_EACH_S = 120.0, 0.05
SOURCE_S = 2.0
MOST_NAMED = 10
NAMELESS_WORKERS = 1_000_000  # their made-up pids lie below those of the ranks
# Two forms that one rank wrote at once; of these the one with frames is worth more.
TOGETHER_S = 60.0
# Lines of py-spy, faulthandler, pystack and gdb dumps, and of the sections that torch's own
# periodic dumps have.
_STACK_LINE = re.compile(
    r"^(?:=+ Rank \d|Process \d+:|Python v\d|Thread \S{1,20} \(|(?:Current thread|Thread)"
    r" 0x|\x1b?\[?[0-9;]{0,8}m?Thread "
    r"|Traceback for thread| {2,8}\S.{0,500} \(\S+:\d+\)| {4}\S.{0,400} \([^()]+\)$"
    r"| {0,8}File \".{1,4096}\", line (?:\d{1,9}|\?\?\?) in |    \((?:Python|C)\) File"
    r"| {6,8}\S|#\d{1,5} |\s{0,24}[\w.<>]{1,300} \([^()\s:]{1,4000}\.py:\d{1,9}\)$|\s{0,24}\.{3}$)"
)

_OF_A_WORKER = re.compile(
    r"(?i)rank[_-]?\d{1,6}.*(?<![a-z])(?:data)?(?:loader)?[_-]?worker(?![a-z])"
)


class _Ending(NamedTuple):
    """What dumps that end alike have in common. `rank` is the one that their sends and receives
    tell, `world` are sets of ranks, folded.
    """

    rank: Optional[int]
    world: FrozenSet[str]
    has_frames: bool


class _Dump(NamedTuple):
    path: str
    rank: Optional[int]
    world: FrozenSet[str]
    newest: float
    has_frames: bool
    read: DumpRead

    @property
    def broken(self) -> str:
        return self.read.broken


class _Stack(NamedTuple):
    path: str
    rank: Optional[int]
    process: ProcessStack
    at: float

    @property
    def is_worker(self) -> bool:
        """A loader's worker, by its frames or, where those at the bottom are left out, by a file
        name that tells its rank as well.
        """
        name = os.path.basename(self.path)
        return self.process.is_worker or (
            self.rank is not None and _OF_A_WORKER.search(name) is not None
        )


class Saved(NamedTuple):
    """What the files turned out to be. `rest` are the files that may be logs, in their order;
    `other` those that are nothing, with why, in short.
    """

    dumps: List[_Dump]
    stacks: List[_Stack]
    rest: List[str]
    other: List[str]


def is_case(path: str) -> bool:
    """Say whether a folder is a case that an earlier run wrote, whole or damaged."""
    return any(os.path.lexists(os.path.join(path, name)) for name in (META, EVIDENCE))


def find_saved(files: Sequence[str]) -> Saved:
    """Read the files as far as they are dumps. Never raises; others may still be logs."""
    ends = time.monotonic() + DEADLINE_S + DEADLINE_EACH_S * len(files)
    saved = Saved([], [], [], [])
    pickled: Dict[str, bool] = {}
    for file in files:
        if file == STDIN or time.monotonic() > ends:
            saved.rest.append(file)
        else:
            _sort(file, saved, pickled)
    endings: Dict[str, _Ending] = {}
    for path, read in read_dump_files(list(pickled), ends, shorten=True).items():
        if pickled[path] or not read.broken:
            if read.ending not in endings:
                endings[read.ending] = _ending(read)
            saved.dumps.append(_dump(path, read, endings[read.ending]))
    known = {dump.path for dump in saved.dumps}
    saved.rest[:] = [path for path in saved.rest if path not in known]
    return saved._replace(dumps=_by_folder(saved.dumps))


def _by_folder(dumps: List[_Dump]) -> List[_Dump]:
    """Take the folders' numbers as ranks where each dump has its own and no name has one."""
    nameless = [dump for dump in dumps if dump.rank is None]
    numbers = {
        dump.path: rank_in_name(os.path.basename(os.path.dirname(os.path.abspath(dump.path))))
        for dump in nameless
    }
    if len(nameless) < 2 or None in numbers.values() or len(set(numbers.values())) < len(nameless):
        return dumps
    return [dump._replace(rank=numbers.get(dump.path, dump.rank)) for dump in dumps]


def look_at_saved(
    case: Case,
    saved: Saved,
    shown: Mapping[str, str] = MappingProxyType({}),
    *,
    copy_dumps: bool = True,
) -> None:
    """Write the `job` record, then one `flight_recorder` for all dumps that end alike and one
    `stacks.python` or `stacks.native` per process and look.

    `shown` gives the name for a file that lies elsewhere than where it was found. Without
    `copy_dumps` the files stay only where they are, as in a case that is deleted once it is judged.
    """
    stacks = _ranked(saved)
    ranks = {dump.rank for dump in saved.dumps if dump.rank is not None} | {
        stack.rank for stack in stacks if stack.rank is not None
    }
    worlds = set().union(*{dump.world for dump in saved.dumps})
    named = [rank for world in worlds for rank in unfold_ranks(world) if rank < 1_000_000]
    size = max([*ranks, *named], default=-1) + 1
    case.add(
        "job",
        subject=Subject("job"),
        cell=CELL,
        source="saved dumps",
        data=_job(saved, stacks, ranks, size),
    )
    chosen = _chosen(saved.dumps)
    for alike in _alike(chosen):
        look_at_dumps(
            case,
            CELL,
            [(dump.path, dump.rank, dump.read) for dump in alike],
            shown=shown,
            host="",
            copy=copy_dumps,
        )
    taken = set(map(id, chosen))
    for dump in saved.dumps:
        if id(dump) not in taken:
            reason = f"another dump of rank {dump.rank} is newer or tells more"
            look = replace(
                refused(
                    "unavailable", reason, rank=dump.rank, path=shown.get(dump.path, dump.path)
                ),
                subject=_subject(dump.rank, None),
                source=os.path.basename(dump.path),
            ).at(time.time(), 0.0)
            record(case, "flight_recorder", look, subject=JOB, cell=CELL)
    looks: Dict[Optional[int], int] = {}
    for stack in sorted(stacks, key=lambda stack: (stack.at, stack.path)):
        role = "rank" if not stack.is_worker else "loader-worker"
        key = stack.rank if role == "rank" else None
        looks[key] = looks.get(key, 0) + 1
        pid = stack.process.pid
        if pid is None:
            pid = -1 - (stack.rank or 0) - (0 if role == "rank" else NAMELESS_WORKERS)
        data: Dict[str, Any] = {
            "look": looks[key] if role == "rank" else 1,
            "pid": pid,
            "role": role,
            "nonblocking": False,
            "threads": stack.process.threads,
        }
        if stack.process.timer_s is not None:
            data["timer_s"] = stack.process.timer_s
        kind = "stacks.native" if stack.process.native else "stacks.python"
        result = LookResult(
            data, began=stack.at, source=f"{stack.process.form} in {os.path.basename(stack.path)}"
        )
        record(case, kind, result, subject=_subject(stack.rank, stack.process.pid, role), cell=CELL)
    look_at_source(case, CELL, _sites(stacks), deadline_s=SOURCE_S)


def _sites(stacks: Sequence[_Stack]) -> List[Site]:
    """The places in files of this machine that are unchanged since the dump."""
    written: Dict[str, float] = {}
    found = []
    for stack in stacks:
        for frame in [frame for thread in stack.process.threads for frame in thread["frames"]]:
            file = frame["file"]
            if os.path.isabs(file) and file not in written:
                written[file] = _modified(file)
            if 0 < written.get(file, 0.0) <= stack.at:
                found.append(Site(file, frame["line"], frame["name"], stack.rank))
    return found


def _subject(rank: Optional[int], pid: Optional[int], role: str = "rank") -> Subject:
    return Subject(
        "rank" if rank is not None and role == "rank" else "process", rank=rank, pid=pid, role=role
    )


def _sort(path: str, saved: Saved, dumps: Dict[str, bool]) -> None:
    """Tell a dump by how it begins, so that of a log of gigabytes only the head is read here.

    What may be one goes to `dumps`, with whether it is a pickle and so nothing else, and to `rest`.
    """
    try:
        head = read_head(path, 2)
        pickled = head[:1] == b"\x80" or head in (b"}q", b"(d")
        head = head if pickled else read_head(path, HEAD_BYTES)
    except (OSError, ValueError):
        saved.rest.append(path)
        return
    first = head.lstrip()[:1]
    listed = first == b"[" and head.lstrip()[1:].lstrip()[:1] in (
        b"{",
        b"]",
    )  # py-spy's JSON; a log's lines may begin with `[rank0]`
    if not pickled and first != b"{" and not listed and not looks_like_stacks(head):
        saved.rest.append(path)
        return
    if pickled or first == b"{":
        dumps[path] = pickled
        saved.rest.append(path)
        return
    try:
        content = read_regular_file(path, FILE_CAP_BYTES)
    except (OSError, ValueError):
        saved.rest.append(path)
        return
    at = _modified(path)
    stacks = _stacks(content)
    saved.stacks.extend(_Stack(path, process.rank, process, at) for process in stacks)
    if not stacks:
        saved.rest.append(path)


def looks_like_stacks(head: bytes) -> bool:
    """Is at least half of the text a stack dump, rather than a log that holds one?"""
    if b"Fatal Python error" in head or b"Windows fatal exception" in head:
        return False  # the last words of a process that died, whatever else stands there
    lines = [
        line for line in head.decode("utf-8", "replace").splitlines()[:-1] if line.strip()
    ] or head.decode("utf-8", "replace").splitlines()
    others, most = 0, len(lines) - (max(1, len(lines)) + 1) // 2
    for line in lines:
        others += _STACK_LINE.match(line) is None
        if others > most:
            break
    return others <= most


def _modified(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def _dump(path: str, read: DumpRead, ending: _Ending) -> _Dump:
    rank = rank_in_name(path)
    if rank is None:
        rank = ending.rank
    return _Dump(path, rank, ending.world, max(read.times, default=0.0), ending.has_frames, read)


def _ending(read: DumpRead) -> _Ending:
    dump = read.content
    if read.broken:
        return _Ending(None, frozenset(), has_frames=False)
    world = {
        group["ranks"]
        for group in dump["groups"]
        if group["desc"] == "default_pg" or group["name"] == "0"
    }
    rank = rank_in_entries(dump["entries"])
    return _Ending(rank, frozenset(world), has_frames=bool(dump["frames"]))


def _stacks(content: bytes) -> List[ProcessStack]:
    head = content[:64].lstrip()
    parsed = (
        pyspy.parse(content, 0) if head[:1] == b"[" and len(content) <= STACKS_CAP_BYTES else None
    )
    if parsed is not None and parsed.threads:
        main = next(
            (thread for thread in parsed.threads if thread["name"] == "MainThread"),
            parsed.threads[0],
        )
        return [ProcessStack("py-spy", main["os_thread_id"], threads=parsed.threads)]
    return parse_stack_text(content[:STACKS_CAP_BYTES].decode("utf-8", "replace"))


def _numbered_alone(saved: Saved, path: str) -> bool:
    """Whether it is a lone file, whose number (`417.txt`) may be a ticket's or a pid."""
    return {stack.path for stack in saved.stacks} == {path} and "rank" not in os.path.basename(
        path
    ).lower()


def _ranked(saved: Saved) -> List[_Stack]:
    """Give each stack its rank: by its text, the file's name, or the order of the files."""
    named = []
    for stack in saved.stacks:
        rank = (
            stack.rank
            if stack.rank is not None or _numbered_alone(saved, stack.path)
            else rank_in_name(stack.path)
        )
        # A number that is the pid is no rank; nor is one that is too large to be one.
        named.append(
            stack._replace(
                rank=(
                    rank
                    if rank is not None and rank != stack.process.pid and rank < 1_000_000
                    else None
                )
            )
        )
    if any(stack.rank is not None for stack in named) or saved.dumps:
        return named
    order = {
        key: place
        for place, key in enumerate(
            dict.fromkeys(_who(stack) for stack in named if not stack.process.is_worker)
        )
    }
    return [stack._replace(rank=order.get(_who(stack))) for stack in named]


def _who(stack: _Stack) -> Tuple[Any, ...]:
    return ("pid", stack.process.pid) if stack.process.pid is not None else ("file", stack.path)


def _chosen(dumps: Sequence[_Dump]) -> List[_Dump]:
    """One dump per rank: the newest, and of those written at one time the one with frames."""
    best: Dict[Optional[int], _Dump] = {}
    for dump in dumps:
        known = best.get(dump.rank)
        if known is None or _worth(dump, known):
            best[dump.rank] = dump
    return [dump for dump in dumps if dump.rank is None or best[dump.rank] is dump]


def _alike(dumps: Sequence[_Dump]) -> List[List[_Dump]]:
    """Dumps of known ranks that end alike together, the others alone; in the order of the first."""
    groups: Dict[Tuple[str, ...], List[_Dump]] = {}
    for dump in dumps:
        alone = bool(dump.broken) or dump.rank is None
        key = ("alone", dump.path) if alone else (dump.read.ending,)
        groups.setdefault(key, []).append(dump)
    return list(groups.values())


def _worth(dump: _Dump, known: _Dump) -> bool:
    if bool(dump.broken) != bool(known.broken):
        return not dump.broken
    if abs(dump.newest - known.newest) <= TOGETHER_S and dump.has_frames != known.has_frames:
        return dump.has_frames
    return dump.newest > known.newest


def _job(saved: Saved, stacks: Sequence[_Stack], ranks: Set[int], size: int) -> Dict[str, Any]:
    pids = {
        stack.rank: stack.process.pid
        for stack in stacks
        if stack.rank is not None and not stack.is_worker and stack.process.pid
    }
    counted = (
        not saved.dumps
        and all(stack.rank is None for stack in saved.stacks)
        and all(rank_in_name(stack.path) is None for stack in saved.stacks)
    )
    source = "file-order" if counted else "file-name"
    rows = [
        {
            "rank": rank,
            "rank_source": source,
            "local_rank": None,
            "pid": pids.get(rank) or -1 - rank,
            "cmdline": "",
        }
        for rank in sorted(ranks)
    ]
    return {
        "cell": CELL,
        "launcher": {"kind": "unknown", "pid": None, "started_ticks": None, "cmdline": ""},
        "world_size": size or None,
        "world_size_source": "dumps",
        "host": "",
        "ranks": rows,
        "absent": [rank for rank in range(size) if rank not in ranks][:10_000],
        "elsewhere": False,
        "files": {
            "dumps": len(saved.dumps),
            "stacks": len(saved.stacks),
            "other": saved.other[:MOST_NAMED],
        },
    }
