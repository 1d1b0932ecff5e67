"""What a blocked process waits for at a descriptor: which one, and who is at its other end."""

from __future__ import annotations

from dataclasses import dataclass, field

from trainprobe.facts import Connection, Facts, OpenFile, PipeEnd, ProcessState

OTHERS_CAP = 4
_STREAMS = {0: "stdin", 1: "stdout", 2: "stderr"}
_TERMINALS = ("/dev/pts/", "/dev/tty", "/dev/console")


@dataclass(frozen=True)
class FarEnd:
    """`kind` is pipe, fifo, socket, terminal or file; `name` its path or the remote address.

    `pids` are the other processes at the other end, `commands` the command lines of those that are
    not of the job. `own` says that the process itself has the other end, too, for another of its
    threads. `complete` says that nobody else can be there. `silent_s` is how long no data has gone
    over a socket, None where that is not known.
    """

    kind: str
    fd: int
    writes: bool
    name: str = ""
    pids: tuple[int, ...] = ()
    own: bool = False
    commands: dict[int, str] = field(default_factory=dict)
    complete: bool = False
    silent_s: float | None = None
    connecting: bool = False
    evidence: tuple[str, ...] = ()

    @property
    def what(self) -> str:
        """`a pipe (its stderr)`, `the FIFO /tmp/x`, `a socket (10.0.0.3:443)`."""
        stream = _STREAMS.get(self.fd, "")
        if self.kind == "pipe":
            return f"its {stream}, a pipe" if stream else f"a pipe (descriptor {self.fd})"
        if self.kind == "fifo":
            return f"the FIFO {self.name}"
        if self.kind == "terminal":
            return f"the terminal {self.name}"
        return f"a socket ({self.name})" if self.kind == "socket" else self.name

    @property
    def how(self) -> str:
        """What the waiter does, to be followed by who is at the other end."""
        if self.kind == "socket":
            if self.connecting:
                return f"has had no answer to its connect to {self.name} from"
            if self.writes:
                return f"waits to send over {self.what}, which is not read by"
            since = f", silent for {self.silent_s:.0f} s," if (self.silent_s or 0.0) >= 1 else ""
            return f"waits for an answer over {self.what}{since} from"
        if self.kind == "terminal":
            return f"waits to {'write to' if self.writes else 'read from'} {self.what}, for"
        if self.writes:
            return f"waits to write to {self.what}, which is full and not read by"
        return f"waits to read from {self.what}, which is written by"

    @property
    def says(self) -> str:
        """The whole of it for one waiter: `waits to read from its stdin, a pipe, which is written
        by pid 7`.
        """
        if self.pids or self.kind == "terminal":
            who = ", ".join(f"pid {pid}" for pid in self.pids) or "a person"
            return f"{self.how} {who}"
        if self.kind == "socket":
            return f"{self.how} {self.name}"
        verb = "write to" if self.writes else "read from"
        if self.own:
            return f"waits to {verb} {self.what}, whose other end the same process has"
        return f"waits to {verb} {self.what}, whose other end nobody is seen to have"


def far_ends(facts: Facts, cell: str, process: ProcessState) -> tuple[FarEnd, ...]:
    """The descriptors on which the main thread of a process waits, as far as its call tells.

    A write is said of a pipe that is full, so a poll that waits for both says the reading end.
    """
    call = process.blocked
    wanted = {number: number not in call.reads for number in call.descriptors}
    if not wanted:
        return ()
    ends = [end for end in facts.of(PipeEnd, cell=cell) if end.pid == process.pid]
    opened = {(end.path, end.mode) for end in ends}
    pipes = [
        FarEnd(
            "fifo" if end.path.startswith("/") else "pipe",
            end.fd,
            wanted[end.fd],
            end.path,
            tuple(other for other in end.other_pids if other != process.pid)[:OTHERS_CAP],
            (end.path, "w" if end.mode == "r" else "r") in opened,
            dict(zip(end.strangers, end.others, strict=False)),
            end.complete,
            evidence=end.evidence,
        )
        for end in ends
        if end.fd in wanted
    ]
    sockets = [
        FarEnd(
            "socket",
            one.fd,
            wanted[one.fd],
            one.remote or one.local,
            (one.peer_pid,) if one.peer_pid else (),
            commands={one.peer_pid: one.peer} if one.peer_pid and one.peer else {},
            silent_s=one.silent_s,
            connecting=one.state == "SYN_SENT",
            evidence=one.evidence,
        )
        for one in facts.of(Connection, cell=cell)
        # who listens waits for whoever comes
        if one.pid == process.pid and one.fd in wanted and one.state != "LISTEN"
    ]
    terminals = [
        FarEnd("terminal", file.fd, wanted[file.fd], file.path, evidence=file.evidence)
        for file in facts.of(OpenFile, cell=cell)
        if file.pid == process.pid and file.fd in wanted and file.path.startswith(_TERMINALS)
    ]
    return (*pipes, *sockets, *terminals)
