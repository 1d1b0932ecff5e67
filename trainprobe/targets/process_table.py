"""The process table in one pass over /proc. A file that cannot be read is empty."""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar, cast

from trainprobe.system.proc import read_file

CMDLINE_BYTES = 64 * 1024
ENVIRON_BYTES = 2**21
MAPS_BYTES = 16 * 2**20
PYTHON = re.compile(r"(?:pt_main_)?python(?:\d+(?:\.\d+)*)?t?")
SOCKET = re.compile(r"socket:\[(\d+)\]")
LISTENS = "0A"  # TCP_LISTEN in /proc/net/tcp
DEPTH = 64  # ancestors that are followed; a longer chain is a loop made of reused pids

Ask = TypeVar("Ask", bound=Callable[..., Any])


def once(ask: Ask) -> Ask:
    """Answer `ask(…, subject)` once for each subject, a process or a table.

    Who asks each of a thousand siblings about their parent pays for one answer.
    """
    name = f"{ask.__module__}.{ask.__qualname__}"

    @functools.wraps(ask)
    def answer(*arguments: Any) -> Any:
        known = arguments[-1].__dict__
        if name not in known:
            known[name] = ask(*arguments)
        return known[name]

    return cast("Ask", answer)


@dataclass(frozen=True)
class ProcessRow:
    """One process as the pass saw it. `name` is that of its main thread; `argv` is empty for a
    zombie or a kernel thread.

    What costs another read (environment, status, folders, open files) is read on first use and is
    empty where it may not be read.
    """

    pid: int
    ppid: int
    name: str
    state: str
    group: int
    session: int
    started_ticks: int
    argv: tuple[str, ...]
    proc: str = "/proc"
    stat_status: int | None = None
    terminal: int = 0  # device number of its controlling terminal, 0 for none

    @property
    def cmdline(self) -> str:
        """The command line as ps shows it, `[name]` where there is none."""
        return " ".join(self.argv) if self.argv else f"[{self.name}]"

    @property
    def program(self) -> str:
        """Its first word without the folder, or its name."""
        return os.path.basename(self.argv[0] if self.argv else self.name)

    @property
    def ended(self) -> bool:
        return self.state in "ZXx"

    @cached_property
    def wait_status(self) -> int | None:
        """How a zombie ended, as wait(2) tells it; None while it lives, and where the kernel does
        not tell.

        Field 52 of /proc/PID/stat is 0 for whoever may not trace the process, and 0 is also a good
        end: so the right is tried on a link that asks for the same.
        """
        if not self.ended or self.stat_status is None:
            return None
        try:
            os.readlink(f"{self.proc}/{self.pid}/ns/user")
        except PermissionError:
            return None
        except OSError:
            pass  # a zombie has given its namespaces up, which is told only to who may ask
        return self.stat_status

    @cached_property
    def environ(self) -> Mapping[str, str]:
        """The variables that it was started with; what it set itself since is not among them."""
        pairs = (
            entry.partition("=")
            for entry in _text(f"{self.proc}/{self.pid}/environ", ENVIRON_BYTES).split("\0")
        )
        return {name: value for name, equals, value in pairs if equals and name}

    @cached_property
    def status(self) -> Mapping[str, str]:
        lines = (
            line.partition(":") for line in _text(f"{self.proc}/{self.pid}/status").splitlines()
        )
        return {name: value.strip() for name, colon, value in lines if colon}

    @property
    def uid(self) -> int:
        """The effective user; -1 where it is not known."""
        columns = self.status.get("Uid", "").split()
        return int(columns[1]) if len(columns) > 1 and columns[1].isdecimal() else -1

    @property
    def nspid(self) -> tuple[int, ...]:
        """Its pid in each nested namespace, the outermost first (proc(5), NSpid)."""
        return tuple(int(word) for word in self.status.get("NSpid", "").split() if word.isdecimal())

    @cached_property
    def cwd(self) -> str:
        return _link(f"{self.proc}/{self.pid}/cwd")

    @cached_property
    def exe(self) -> str:
        return _link(f"{self.proc}/{self.pid}/exe").removesuffix(" (deleted)")

    def namespace(self, kind: str) -> str:
        """Return the name of its `kind` namespace (mnt, pid, net), as `mnt:[4026531841]`."""
        return _link(f"{self.proc}/{self.pid}/ns/{kind}")

    @cached_property
    def cgroup(self) -> str:
        return _text(f"{self.proc}/{self.pid}/cgroup")

    @cached_property
    def is_python(self) -> bool:
        """By argv[0] or the executable, since setproctitle changes the first."""
        named = (
            bool(self.argv)
            and PYTHON.fullmatch(os.path.basename(self.argv[0].removeprefix("-"))) is not None
        )
        return named or (
            bool(self.argv) and PYTHON.fullmatch(os.path.basename(self.exe)) is not None
        )

    @cached_property
    def loads_torch(self) -> bool | None:
        """Whether libtorch is in its memory; None where that may not be read."""
        maps = _text(f"{self.proc}/{self.pid}/maps", MAPS_BYTES)
        return "libtorch" in maps if maps or self.ended else None

    @property
    def maps_torch(self) -> bool:
        return self.loads_torch is True

    @cached_property
    def sockets(self) -> frozenset[str]:
        """The inodes of its open sockets."""
        found = set()
        with contextlib.suppress(OSError):
            for name in os.listdir(f"{self.proc}/{self.pid}/fd"):
                match = SOCKET.fullmatch(_link(f"{self.proc}/{self.pid}/fd/{name}"))
                if match:
                    found.add(match.group(1))
        return frozenset(found)

    @cached_property
    def thread_names(self) -> frozenset[str]:
        found = set()
        with contextlib.suppress(OSError):
            for tid in os.listdir(f"{self.proc}/{self.pid}/task"):
                found.add(_text(f"{self.proc}/{self.pid}/task/{tid}/comm", 64).strip())
        return frozenset(found)

    @property
    def backend(self) -> str:
        """The backend of a process group that it has made, else an empty string."""
        return backend_of(self.thread_names)


def backend_of(threads: Iterable[str]) -> str:
    """Tell nccl or gloo by the threads that a process group starts; empty where there is none.

    A forked child has none of its parent's threads. The names are those of torch 2.1 to 2.15:
    pt_nccl_watchdg, pt_gloo_runloop, and gloo's own gloo_tcp_loop.
    """
    names = tuple(threads)
    if any(name.startswith("pt_nccl") for name in names):
        return "nccl"
    return "gloo" if any(name.startswith(("pt_gloo", "gloo_")) for name in names) else ""


@dataclass(frozen=True)
class Table:
    """Every process that was seen, by pid, and who started whom."""

    by_pid: Mapping[int, ProcessRow]
    proc: str = "/proc"
    below: Mapping[int, tuple[ProcessRow, ...]] = field(default_factory=dict)

    def without(self, pids: Collection[int]) -> Table:
        """Return the same table without these processes."""
        return _table(
            {pid: process for pid, process in self.by_pid.items() if pid not in pids}, self.proc
        )

    def parent(self, process: ProcessRow) -> ProcessRow | None:
        above = self.by_pid.get(process.ppid)
        # A parent cannot be younger than its child: that is a reused pid in a torn picture.
        return above if above is not None and above.started_ticks <= process.started_ticks else None

    def ancestors(self, process: ProcessRow) -> Iterator[ProcessRow]:
        """Yield its parent, the parent of that, and so on."""
        for _ in range(DEPTH):
            above = self.parent(process)
            if above is None:
                return
            yield above
            process = above

    def children(self, process: ProcessRow) -> tuple[ProcessRow, ...]:
        """Return the children that it started, in order of their start."""
        return self.below.get(process.pid, ())

    def descendants(self, process: ProcessRow) -> Iterator[ProcessRow]:
        """Yield everything below it, parents before children."""
        waiting = deque(self.children(process))
        while waiting:
            each = waiting.popleft()
            yield each
            waiting += self.children(each)

    @cached_property
    def boot_time(self) -> float | None:
        """Unix time at which the machine started, in seconds."""
        match = re.search(r"^btime (\d+)", _text(f"{self.proc}/stat", 4 * 2**20), re.MULTILINE)
        return float(match.group(1)) if match else None

    @cached_property
    def uptime_s(self) -> float | None:
        try:
            return float(_text(f"{self.proc}/uptime", 256).split()[0])
        except (ValueError, IndexError):
            return None

    def age_s(self, process: ProcessRow) -> float | None:
        """Return how long ago it started, in seconds."""
        return (
            None
            if self.uptime_s is None
            else max(0.0, self.uptime_s - process.started_ticks / _ticks_per_s())
        )

    def began(self, process: ProcessRow) -> float | None:
        """Return the Unix time of its start, true to about 1 s (btime has no fraction)."""
        return (
            None
            if self.boot_time is None
            else self.boot_time + process.started_ticks / _ticks_per_s()
        )

    def tcp_ends(self, process: ProcessRow, inodes: frozenset[str]) -> frozenset[tuple[str, str]]:
        """Return (local, remote) of those of `inodes` in /proc/PID/net/tcp, in hexadecimal."""
        cache: dict[str, dict[str, tuple[str, str]]] = self.__dict__.setdefault("_tcp", {})
        key = process.namespace("net")
        if key not in cache:
            ends = {}
            for name in ("tcp", "tcp6"):
                for line in _text(f"{self.proc}/{process.pid}/net/{name}", 8 * 2**20).splitlines()[
                    1:
                ]:
                    columns = line.split()
                    if len(columns) > 9 and columns[3] != LISTENS:
                        ends[columns[9]] = (_v4(columns[1]), _v4(columns[2]))
            cache[key] = ends
        return frozenset(cache[key][inode] for inode in inodes if inode in cache[key])


def snapshot(proc: str = "/proc") -> Table:
    """Read the table: two small files a process (500 processes in about 20 ms)."""
    found: dict[int, ProcessRow] = {}
    with contextlib.suppress(OSError):
        for name in os.listdir(proc):
            if name.isdecimal():
                process = _process_row(int(name), proc)
                if process is not None:
                    found[process.pid] = process
    return _table(found, proc)


def _table(found: Mapping[int, ProcessRow], proc: str) -> Table:
    below: dict[int, list[ProcessRow]] = {}
    for process in found.values():
        above = found.get(process.ppid)
        if (
            above is not None
            and above.pid != process.pid
            and above.started_ticks <= process.started_ticks
        ):
            below.setdefault(process.ppid, []).append(process)
    return Table(
        found, proc, {pid: tuple(sorted(each, key=in_order)) for pid, each in below.items()}
    )


def in_order(process: ProcessRow) -> tuple[int, int]:
    """Order of start: two of the same hundredth of a second by their pids."""
    return process.started_ticks, process.pid


def _process_row(pid: int, proc: str) -> ProcessRow | None:
    line = read_file(f"{proc}/{pid}/stat", 4096).decode("utf-8", "replace")
    opened, closed = line.find("("), line.rfind(")")
    columns = line[closed + 1 :].split()
    if opened < 0 or closed < opened or len(columns) < 20:
        return None
    try:
        ppid, group, session, started = (int(columns[place]) for place in (1, 2, 3, 19))
    except ValueError:
        return None
    raw = read_file(f"{proc}/{pid}/cmdline", CMDLINE_BYTES).decode("utf-8", "replace").rstrip("\0")
    argv = tuple(raw.split("\0")) if raw else ()
    if len(argv) == 1 and " " in argv[0]:
        argv = tuple(
            argv[0].split()
        )  # a title that setproctitle wrote: one string, padded with zeros
    status = int(columns[49]) if len(columns) > 49 and columns[49].isdecimal() else None
    terminal = int(columns[4]) if columns[4].isdecimal() else 0
    return ProcessRow(
        pid,
        ppid,
        line[opened + 1 : closed],
        columns[0],
        group,
        session,
        started,
        argv,
        proc,
        status,
        terminal,
    )


def _text(path: str, limit: int = 64 * 1024) -> str:
    """Read to the end or `limit`: the kernel gives long files in pages."""
    try:
        with open(path, "rb", buffering=0) as file:
            parts: list[bytes] = []
            left = limit
            while left > 0:
                part = file.read(min(left, 2**18))
                if not part:
                    break
                parts.append(part)
                left -= len(part)
    except OSError:
        return ""
    return b"".join(parts).decode("utf-8", "replace")


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _v4(end: str) -> str:
    """An IPv4 address inside IPv6 as the address that the other end shows."""
    return end.removeprefix("0000000000000000FFFF0000")


def _ticks_per_s() -> float:
    return float(os.sysconf("SC_CLK_TCK"))
