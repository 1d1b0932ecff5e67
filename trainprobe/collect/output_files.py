"""Where the output of a live job goes: the files behind it, also at the far end of pipes, and those
of ranks that are gone.

A file is found by the names in /proc/PID/fd and opened through them, so that one which was deleted,
or lies in a container, can be read too. Terminals, pipes and devices are never opened.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from trainprobe import mount_table
from trainprobe.collect import procfs
from trainprobe.collect.descriptors import command_of, descriptors, find_owners
from trainprobe.collect.members import Member
from trainprobe.mount_table import MountRow

DELETED = " (deleted)"
SHARED = "/dev/shm/"  # noqa: S108 - compared with names in /proc, not written to
STREAMS = {1: "stdout", 2: "stderr"}
# Files that a rank holds open for writing and that look like a log of its own.
_LOG = re.compile(r"\.(?:log|txt|out|err)(?:\.\d{1,3})?$")
LOGS_CAP = 4
# A launcher may hold the files of all its ranks open: torchrun does with --redirects and --tee.
LAUNCHER_LOGS_CAP = 64
SINKS_CAP = 160
BESIDE_CAP = 8  # programs beside the ranks
_SERVICE = re.compile(
    r"(?:\S*/)?(?:sshd(?:-session)?|slurmd|slurmstepd|pbs_mom|orted|prted|hydra_pmi_proxy"
    r"|containerd-shim\S*|conmon|dockerd|systemd)(?![\w-])"
)
HOPS_CAP = 3  # `2>&1 | grep -v … | tee train.log`
_NUMBER = re.compile(r"(?<!\d)\d{1,6}(?!\d)")
_WRITES = (os.O_WRONLY, os.O_RDWR)


@dataclass
class Sink:
    """One file that output goes to. `path` is what to open, `shown` its name. `ranks` are the
    numbers of those that write to it, None for a launcher or a rank without a number.

    `remote`: another host answers for it, so that reading it may hang. `via` is the program at the
    other end of a pipe that writes it. `guessed`: only its name speaks for it; it may not be there.
    """

    path: str
    shown: str
    remote: bool = False
    streams: Set[str] = field(default_factory=set)
    ranks: Set[Optional[int]] = field(default_factory=set)
    via: str = ""
    deleted: bool = False
    guessed: bool = False

    @property
    def stream(self) -> str:
        return next(iter(self.streams)) if len(self.streams) == 1 else "both"

    @property
    def place(self) -> str:
        """Where it lies by its name, seen through the process that it was found by."""
        proc, pid = self.path.split("/")[1:3]
        return f"/{proc}/{pid}/root{self.shown}"


class Found(NamedTuple):
    """`nowhere` says by reason whose output cannot be read."""

    sinks: List[Sink]
    nowhere: Dict[str, Set[Optional[int]]]


def find_output_files(
    members: Sequence[Member],
    absent: Iterable[int],
    ends: float,
    *,
    slurm_job: str = "",
    cwd: str = "",
    proc: str = "/proc",
) -> Found:
    """Find the files of all ranks, of their launcher, and of the ranks in `absent`.

    `ends` is when to stop looking for the readers of pipes (monotonic).
    """
    search = _Search(proc, ends)
    gone = set(absent)
    for member in [*members, *_parents(members, proc)]:
        if member.role in ("rank", "launcher") and not search.take(member):
            gone |= {member.rank} if member.rank is not None and member.role == "rank" else set()
    search.follow_pipes()
    search.take_scheduler_file(slurm_job, cwd)
    search.take_left(gone)
    return Found(list(search.sinks.values())[:SINKS_CAP], search.nowhere)


def _parents(members: Sequence[Member], proc: str) -> List[Member]:
    """Whoever started several of the ranks and is no member: a shell, or the user's own launcher;
    and what it started beside them, as a watch that ends ranks.

    What started us as well is a terminal's shell or a test's runner: its output is not the job's.
    """
    known = {member.pid for member in members}
    ours, pid = set(), os.getpid()
    while pid > 0 and pid not in ours:
        ours.add(pid)
        pid = _parent(pid, proc)
    count: Dict[int, int] = {}
    for member in members:
        if member.role == "rank":
            parent = _parent(member.pid, proc)
            count[parent] = count.get(parent, 0) + 1
    above = [
        pid
        for pid, ranks in count.items()
        if ranks > 1 and pid > 1 and pid not in known and pid not in ours
    ]
    beside = [
        each
        for pid in above
        for each in _children(pid, proc)
        if each not in known and each not in ours
    ]
    return [Member(None, pid, "launcher") for pid in (*above, *beside[:BESIDE_CAP])]


def _parent(pid: int, proc: str) -> int:
    try:
        return procfs.parse_stat(procfs.read_page(f"{proc}/{pid}/stat") or "").ppid
    except ValueError:
        return 0


def _children(pid: int, proc: str) -> List[int]:
    """Empty where the kernel keeps no such list (proc(5), CONFIG_PROC_CHILDREN)."""
    words = (procfs.read_page(f"{proc}/{pid}/task/{pid}/children") or "").split()
    return [int(word) for word in words if word.isdecimal()]


def _without_own(pid: int, names: Mapping[int, str], proc: str) -> Mapping[int, str]:
    """The descriptors of a process; of one that serves the host or a scheduler, such as sshd or
    slurmstepd, without those of its own log, which speaks of others than the job.
    """
    if _SERVICE.match(command_of(pid, proc)) is None:
        return names
    return {
        fd: "" if fd in STREAMS else name
        for fd, name in names.items()
        if fd in STREAMS or not os.path.basename(name).startswith(("slurmd", "slurmstepd", "sshd"))
    }


def _lives(pid: int, proc: str) -> bool:
    try:
        now = procfs.parse_stat(procfs.read_page(f"{proc}/{pid}/stat") or "")
    except ValueError:
        return False
    return now.state not in procfs.ENDED_STATES


class _Search:
    def __init__(self, proc: str, ends: float) -> None:
        self.proc, self.ends = proc, ends
        self.sinks: Dict[Tuple[str, str], Sink] = {}
        self.nowhere: Dict[str, Set[Optional[int]]] = {}
        self._pipes: Dict[str, List[Tuple[Member, str]]] = {}
        self._tables: Dict[int, List[MountRow]] = {}
        self._living: int = 0

    def take(self, member: Member) -> bool:
        """Take what one process writes to; False where it has ended."""
        names = descriptors(member.pid, self.proc)
        if not names:
            return _lives(member.pid, self.proc)
        own = _without_own(member.pid, names, self.proc)
        self._living = self._living or member.pid
        for fd, stream in STREAMS.items():
            self._stream(member, fd, stream, own.get(fd, ""))
        most = LAUNCHER_LOGS_CAP if member.role == "launcher" else LOGS_CAP
        for fd in self._written(member.pid, own, _LOG)[:most]:
            self._file(member.pid, fd, own[fd], "log", {member.rank})
        return True

    def follow_pipes(self) -> None:
        """Find who reads the pipes, and take the files that those write."""
        for _ in range(HOPS_CAP):
            pipes, self._pipes = self._pipes, {}
            if not pipes:
                return
            owners = find_owners(set(pipes), (), self.ends, self.proc)
            for name, writers in pipes.items():
                readers = [
                    pid
                    for pid, fd in owners.by_name.get(name, ())
                    if self._mode(pid, fd) in (os.O_RDONLY, os.O_RDWR)
                ]
                self._readers(writers, readers, whole=owners.whole)

    def take_scheduler_file(self, job: str, cwd: str) -> None:
        """The file that sbatch writes by default, where SLURM keeps the pipe to itself."""
        if self.nowhere and not self.sinks and job.isdecimal() and cwd.startswith("/"):
            self._named(f"{cwd}/slurm-{job}.out", {None})

    def take_left(self, gone: Set[int]) -> None:
        """The files of ranks that are gone, named as those of the others but for the number."""
        if not gone:
            return
        own = {
            (sink.stream, next(iter(sink.ranks))): sink.shown
            for sink in self.sinks.values()
            if len(sink.ranks) == 1 and None not in sink.ranks
        }
        shown = {sink.shown: sink for sink in self.sinks.values()}
        for stream in {stream for stream, _ in own}:
            names = {
                rank: path for (of, rank), path in own.items() if of == stream and rank is not None
            }
            for form in _forms(names):
                for rank in sorted(gone - set(names)):
                    path = _filled(form, rank)
                    if path in shown:  # the launcher holds it open
                        shown[path].ranks, shown[path].streams = {rank}, {stream}
                    else:
                        self._named(path, {rank}, stream)

    def _stream(self, member: Member, fd: int, stream: str, name: str) -> None:
        rank = {member.rank} if member.role == "rank" else set()
        if name.startswith("pipe:["):
            self._pipes.setdefault(name, []).append((member, stream))
        elif not name:
            self._lose("is closed", rank)
        elif name == "/dev/null":
            self._lose("goes to /dev/null, which keeps nothing", rank)
        elif name.startswith(("/dev/pts/", "/dev/tty", "/dev/console")):
            self._lose(f"goes to a terminal ({name}), which keeps nothing that can be read", rank)
        elif name.startswith("socket:"):
            self._lose("goes into a socket, which keeps nothing that can be read", rank)
        elif not name.startswith("/") or (name.startswith("/dev/") and not name.startswith(SHARED)):
            self._lose(f"goes to {name}, which keeps nothing that can be read", rank)
        else:
            self._file(member.pid, fd, name, stream, {member.rank if rank else None})

    def _lose(self, why: str, ranks: Set[Optional[int]]) -> None:
        if ranks:
            self.nowhere.setdefault(why, set()).update(ranks)

    def _file(
        self, pid: int, fd: int, name: str, stream: str, ranks: Set[Optional[int]], via: str = ""
    ) -> None:
        info = procfs.status_fields(procfs.read_page(f"{self.proc}/{pid}/fdinfo/{fd}") or "")
        deleted = name.endswith(DELETED)
        shown = name[: -len(DELETED)] if deleted else name
        # kernels before 5.14 tell no inode; then the name must do
        key = (shown, info.get("ino", "") or str(deleted))
        sink = self.sinks.get(key)
        if sink is None:
            path = f"{self.proc}/{pid}/fd/{fd}"
            sink = Sink(path, shown, self._remote(pid, shown), via=via, deleted=deleted)
            self.sinks[key] = sink
        if stream != "log" or not sink.streams:  # a launcher may hold what is a rank's stdout
            sink.streams = (sink.streams | {stream}) - ({"log"} if stream != "log" else set())
            sink.ranks |= ranks

    def _named(self, path: str, ranks: Set[Optional[int]], stream: str = "both") -> None:
        """A file by its name alone, as the job sees it."""
        pid = self._living
        if pid and (path, "") not in self.sinks:
            inside = f"{self.proc}/{pid}/root{path}"
            self.sinks[path, ""] = Sink(
                inside, path, self._remote(pid, path), {stream}, ranks, guessed=True
            )

    def _readers(
        self, writers: Sequence[Tuple[Member, str]], readers: Sequence[int], *, whole: bool
    ) -> None:
        ranks: Set[Optional[int]] = {
            member.rank if member.role == "rank" else None for member, _ in writers
        }
        streams = {stream for _, stream in writers}
        if not readers:
            told = "nobody reads" if whole else "a process reads that may not be looked into"
            self._lose(f"goes into a pipe which {told}", ranks)
        for pid in readers:
            names = _without_own(pid, descriptors(pid, self.proc) or {}, self.proc)
            written = self._written(pid, names, re.compile(r"^/(?!dev/|proc/)"))
            command = command_of(pid, self.proc)
            for fd in written[:LOGS_CAP]:
                for stream in streams:
                    self._file(
                        pid, fd, names[fd], stream, set(ranks), via=f"{command[:60]} ({pid})"
                    )
            out = names.get(1, "")
            onward = out.startswith("pipe:[") and pid not in {one.pid for one, _ in writers}
            if onward:
                self._pipes.setdefault(out, []).extend(writers)
            if not written and not onward:
                self._lose(
                    f"goes into a pipe to `{command[:60]}` (pid {pid}), which keeps no file", ranks
                )

    def _written(self, pid: int, names: Mapping[int, str], like: re.Pattern[str]) -> List[int]:
        """Its descriptors of files that it may write to and whose names are `like` that."""
        return [
            fd
            for fd, name in names.items()
            if name.startswith("/")
            and like.search(name.removesuffix(DELETED))
            and not (fd in STREAMS and like is _LOG)
            and self._mode(pid, fd) in _WRITES
        ]

    def _mode(self, pid: int, fd: int) -> int:
        info = procfs.status_fields(procfs.read_page(f"{self.proc}/{pid}/fdinfo/{fd}") or "")
        flags = info.get("flags", "")
        return int(flags, 8) & os.O_ACCMODE if flags.isdecimal() else -1

    def _remote(self, pid: int, path: str) -> bool:
        if pid not in self._tables:
            self._tables[pid] = mount_table.table_of(pid, self.proc)
        row = mount_table.of_path(self._tables[pid], path)
        return row is None or row.fstype not in (*mount_table.LOCAL, "overlay")


def _forms(names: Mapping[int, str]) -> List[Tuple[str, ...]]:
    """The names of the ranks' files without the number of the rank: the parts between its places,
    `("out/rank", ".log")`. Each form fits all `names`.
    """
    found: Dict[Tuple[str, ...], None] = {}
    for rank, path in names.items():
        places = [match for match in _NUMBER.finditer(path) if int(match.group()) == rank]
        for chosen in [*([place] for place in places), places]:
            if chosen:
                found[_parts(path, chosen)] = None
    return [form for form in found if all(_fits(form, rank, path) for rank, path in names.items())]


def _parts(path: str, places: Sequence[re.Match[str]]) -> Tuple[str, ...]:
    """The text between the numbers; a number with leading zeros leaves one `0` for each digit."""
    parts, begin = [], 0
    for place in places:
        zeros = place.group() if place.group().startswith("0") and len(place.group()) > 1 else ""
        parts += [path[begin : place.start()], "0" * len(zeros)]
        begin = place.end()
    return (*parts, path[begin:])


def _filled(form: Sequence[str], rank: int) -> str:
    return "".join(
        part if place % 2 == 0 else str(rank).zfill(len(part)) for place, part in enumerate(form)
    )


def _fits(form: Sequence[str], rank: int, path: str) -> bool:
    return _filled(form, rank) == path
