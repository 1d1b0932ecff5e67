"""How ranks ended, as launchers and schedulers tell of it: torchrun's table, srun, slurmstepd,
mpirun, DeepSpeed, Kubernetes, a shell, sacct.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from trainprobe.facts import torchrun_report
from trainprobe.facts.endings import SIGNALS, RankEnding, signal_name
from trainprobe.facts.log_events import LogEvent
from trainprobe.facts.log_rows import Row, rows_of
from trainprobe.facts.sacct_tables import sacct_endings
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.model.ranks import unfold_ranks

ROWS_CAP = 5000
# What a shell, srun and mpirun call a death by signal (strsignal(3)).
WORDS = {
    "Killed": 9,
    "Segmentation fault": 11,
    "Aborted": 6,
    "Bus error": 7,
    "Terminated": 15,
    "Hangup": 1,
    "Floating point exception": 8,
    "Illegal instruction": 4,
    "Out Of Memory": 9,
    "Interrupt": 2,
    "Trace/breakpoint trap": 5,
    "CPU time limit exceeded": 24,
    "User defined signal 1": 10,
    "User defined signal 2": 12,
}
_WORD = "|".join(WORDS)
# Launchers (LogJob.launcher) that start one process per rank below themselves.
STARTERS = frozenset({"torchrun", "deepspeed", "accelerate"})
# Windows: access violation, stack buffer overrun (also abort), stack overflow, illegal instruction,
# Ctrl-C; as signals of the same meaning.
NT_STATUS = {0xC0000005: 11, 0xC0000409: 6, 0xC00000FD: 11, 0xC000001D: 4, 0xC000013A: 2}


@dataclass(frozen=True)
class _Told:
    rank: int | None
    code: int | None = None
    signal: int | None = None
    pid: int | None = None
    oom: bool = False
    role: str = "rank"
    local_rank: int | None = None
    host: str = ""


_SRUN = re.compile(
    r"srun: error: (?P<host>[\w.-]{1,80}): tasks? (?P<tasks>[\d,\s-]{1,400}): (?:Exited with"
    rf" exit code (?P<code>\d{{1,3}})|(?P<word>{_WORD})(?: \(core dumped\))?)",
)
_AGENT = re.compile(
    r"failed \(exitcode: (?P<code>-?\d{1,10})\)(?: local_rank: (?P<local>\d{1,7}) \(pid:"
    r" (?P<pid>\d{1,9})\))?"
)
_SPAWN = re.compile(
    r"\b[Pp]rocess (?P<rank>\d{1,7}) (?:terminated|exit|exited) with (?:signal"
    r" (?P<signal>SIG[A-Z]{2,8}|\d{1,2})|(?:exit |status )?code (?P<code>-?\d{1,6}))"
)
_DEEPSPEED = re.compile(
    r"--local[_-]rank[= ](?P<local>\d{1,7})\b.{0,2000}exits with return code = (?P<code>-?\d{1,6})"
)
_DEEPSPEED_SHORT = re.compile(r"exits with return code = (?P<code>-?\d{1,6})")
_MPI_SIGNAL = re.compile(
    r"(?:process rank|rank) (?P<rank>\d{1,7}) (?:\(PID (?P<pid1>\d{1,9})\) )?(?:with PID"
    r" (?P<pid>\d{1,9}) )?on node (?P<host>[\w.-]{1,80}) (?:exited|died) on signal"
    r" (?P<signal>\d{1,3})"
)
# Open MPI up to 4, Open MPI 5 (PRRTE), horovodrun
_MPI_NAME = re.compile(
    r"Process name: (?:\[\[\d{1,9},\d{1,9}\],|\[[\w.-]{1,120}@\d{1,9},)?(?P<rank>\d{1,7})\]?"
    r"\s{0,4}$"
)
_MPI_CODE = re.compile(r"Exit code:\s{1,6}(?P<code>-?\d{1,6})")
_CALLED = re.compile(
    r"(?:died with <Signals\.(?P<signal>SIG[A-Z]{2,8}): \d{1,2}>|returned non-zero exit status"
    r" (?P<code>-?\d{1,11}))"
)
_PROGRAM = re.compile(r"\bpython[\d.]{0,6}(?:\.exe)?\b|\btorchrun\b|\.py\b")
_LOCAL = re.compile(r"--local[_-]rank[= ](\d{1,7})\b")
_PLAIN_CODE = re.compile(
    r"\b(?:worker|rank|task|process|child|container|pod|job|trainer|command|[Tt]raining"
    r"|main)\b.{0,80}?\b(?:exit(?:ed)?|terminated|failed|finished|ended"
    r"|died)\b.{0,30}?\b(?:exit )?"
    r"(?:code|status)[ :=]{1,3}(?P<code>-?\d{1,6})\b",
    re.IGNORECASE,
)
_RANK_BEFORE = re.compile(r"\b[Rr]ank[ :=#]{0,2}(?P<rank>\d{1,7})\b")
_KUBE_REASON = re.compile(r"^\s{0,12}(?:Reason|reason)\"?:\s{1,12}\"?OOMKilled\b|\bOOMKilled\b")
_KUBE_CODE = re.compile(
    r"^\s{0,12}\"?(?:Exit Code|exitCode)\"?:\s{1,12}(?P<code>\d{1,3})\b|command terminated with"
    r" (?:non-zero )?exit code (?P<code2>\d{1,3})"
)
_SHELL = re.compile(
    r"^(?:(?P<script>[^\s:][^:\n]{0,300}): line \d{1,6}:\s{1,12}(?P<pid>\d{1,9})"
    rf" )?(?P<word>{_WORD})(?: *\(core dumped\))?(?:\s{{1,30}}\S.{{0,400}})?$"
)
# A shell writes its word behind a progress bar that has no end of line.
_BEHIND_A_BAR = re.compile(rf"(?:\]|it|s)\s{{0,4}}(?P<word>{_WORD})(?: \(core dumped\))?$")
_STOPS = re.compile(
    r"Sending process (?P<pid>\d{1,9}) closing signal (?P<signal>SIG[A-Z]{2,8})|Killing subprocess"
    r" (?P<pid2>\d{1,9})"
)
_LOOKS = re.compile(
    r"exit|srun: error|exitcode|terminated|died|Killed|Segmentation fault|Aborted|Bus"
    r" error|Terminated|Floating point|Illegal instruction|Hangup|OOMKilled|Exit Code|Exit code"
)


def parse_log_endings(record: Evidence) -> list[Fact]:
    """Every end that is told of, in the order of the lines; what torchrun's table tells stands
    for the agent's own lines.
    """
    rows = rows_of(record)
    found: list[RankEnding] = list(_tables(record, rows))
    known = {ending.pid for ending in found if ending.pid}
    for number, row in enumerate(rows):
        if _LOOKS.search(row.text):
            found += [
                _ending(record.id, record.cell, row, told)
                for told in _told(row, rows, number)
                if told.pid is None or told.pid not in known
            ]
        if len(found) > ROWS_CAP:
            break
    found += sacct_endings(record, rows)
    return list(found)


def endings_told(record: Evidence, text: str) -> list[RankEnding]:
    """The ends that one line of a live job's output tells of; a line has no time and no place
    there.
    """
    if not _LOOKS.search(text):
        return []
    row = Row(0, None, None, "", text, 0, "")
    found = (_ending(record.id, record.cell, row, told) for told in _told(row, [row], 0))
    return [replace(ending, place=None, seen_at="") for ending in found]


def _told(row: Row, rows: Sequence[Row], number: int) -> Iterator[_Told]:
    text = row.text
    srun = _SRUN.search(text)
    if srun is not None:
        code, signal = (
            _split(int(srun.group("code")))
            if srun.group("code")
            else (None, WORDS.get(srun.group("word") or ""))
        )
        oom = srun.group("word") == "Out Of Memory"
        for rank in _tasks(srun.group("tasks")):
            yield _Told(rank, code, signal, oom=oom, host=srun.group("host"))
        return
    agent = _AGENT.search(text)
    if agent is not None:
        yield _Told(
            None,
            *_split(int(agent.group("code"))),
            pid=int(agent.group("pid")) if agent.group("pid") else None,
            local_rank=int(agent.group("local")) if agent.group("local") else None,
        )
        return
    spawned = _SPAWN.search(text)
    if spawned is not None:
        signal = _number(spawned.group("signal"))
        yield _Told(
            int(spawned.group("rank")),
            *(_split(int(spawned.group("code"))) if spawned.group("code") else (None, signal)),
        )
        return
    speed = _DEEPSPEED.search(text) or _DEEPSPEED_SHORT.search(text)
    if speed is not None:
        local = int(speed.groupdict().get("local") or -1)
        yield _Told(
            None, *_split(int(speed.group("code"))), local_rank=local if local >= 0 else None
        )
        return
    mpi = _MPI_SIGNAL.search(text)
    if mpi is not None:
        yield _Told(
            int(mpi.group("rank")),
            None,
            int(mpi.group("signal")),
            pid=int(mpi.group("pid") or mpi.group("pid1") or 0) or None,
            host=mpi.group("host"),
        )
        return
    name = _MPI_NAME.search(text)
    if name is not None:
        status = next(
            (
                match
                for near in rows[number + 1 : number + 3]
                if (match := _MPI_CODE.search(near.text))
            ),
            None,
        )
        if status is not None:
            yield _Told(int(name.group("rank")), *_split(int(status.group("code"))))
        return
    yield from _of_nobody(row)


def _of_nobody(row: Row) -> Iterator[_Told]:
    """Lines that say how something ended without saying which rank it was."""
    text = row.text
    called = _CALLED.search(text)
    if called is not None:
        if called.group("code"):
            yield _Told(None, *_split(int(called.group("code"))), role="launcher")
            return
        # A child that died of a signal could say nothing itself: where it is the training program,
        # this is the rank's own end.
        rank = _LOCAL.search(text)
        yield _Told(
            None,
            None,
            _number(called.group("signal")),
            role="rank" if _PROGRAM.search(text) else "launcher",
            local_rank=int(rank.group(1)) if rank else None,
        )
        return
    kube = _KUBE_CODE.search(text)
    if _KUBE_REASON.search(text):
        yield _Told(row.rank, None, 9, oom=True)
    elif kube is not None:
        yield _Told(row.rank, *_split(int(kube.group("code") or kube.group("code2"))))
    elif (shell := _SHELL.match(text.strip())) is not None and (
        shell.group("script") or len(text) < 60
    ):
        yield _Told(
            row.rank,
            None,
            WORDS[shell.group("word")],
            pid=int(shell.group("pid")) if shell.group("pid") else None,
        )
    elif (behind := _BEHIND_A_BAR.search(text.rstrip()[-80:])) is not None and "|" in text:
        yield _Told(row.rank, None, WORDS[behind.group("word")])
    elif (plain := _PLAIN_CODE.search(text)) is not None:
        rank = _RANK_BEFORE.search(text)
        code, signal = _split(int(plain.group("code")))
        yield _Told(
            int(rank.group("rank")) if rank else row.rank,
            code,
            signal,
            role="rank" if code != 0 or rank else "launcher",
        )


def ending_of(event: LogEvent) -> list[RankEnding]:
    """The ends that a line known by signatures/ tells of: captured are rank, task and tasks,
    pid, host, and code or signal.
    """
    captured = event.captured
    code, signal = (
        _split(int(captured["code"]))
        if captured.get("code", "").lstrip("-").isdecimal()
        else (None, None)
    )
    named = captured.get("signal", "")
    signal = signal if signal is not None else WORDS.get(named, _number(named))
    if code == 247:  # DeepSpeed's launcher and others wrap -9 into eight bits
        code, signal = None, 9
    if code is None and signal is None:
        return []
    ranks: tuple[int | None, ...] = _tasks(
        captured.get("rank") or captured.get("task", "") + captured.get("tasks", "").strip("[] ")
    )
    row = Row(0, event.at, event.rank, event.host, event.line, event.place or 0, "")
    told = [
        _Told(
            rank,
            code,
            signal,
            pid=int(captured["pid"]) if captured.get("pid", "").isdecimal() else None,
            oom=named == "Out Of Memory",
            host=captured.get("host", ""),
        )
        for rank in ranks or (None,)
    ]
    return [
        replace(
            _ending(event.evidence[0] if event.evidence else "", event.cell, row, one),
            seen_at=event.seen_at,
        )
        for one in told
    ]


def _split(code: int) -> tuple[int | None, int | None]:
    """An exit code below 0, or above 128, tells of a signal (Python's subprocess; POSIX shells)."""
    if code & 0xFFFFFFFF in NT_STATUS and abs(code) > 255:
        return None, NT_STATUS[code & 0xFFFFFFFF]
    if -256 < code < 0:
        return None, -code
    if 128 < code <= 128 + len(SIGNALS) and code - 128 in (1, 2, 4, 6, 7, 8, 9, 11, 15):
        return None, code - 128
    return code, None


def _number(name: str | None) -> int | None:
    if not name:
        return None
    return int(name) if name.isdecimal() else (SIGNALS.index(name) + 1 if name in SIGNALS else None)


def _tasks(text: str) -> tuple[int, ...]:
    try:
        return unfold_ranks("".join(text.split()))[:ROWS_CAP]
    except ValueError:
        return ()


def _ending(evidence: str, cell: str, row: Row, told: _Told) -> RankEnding:
    how = "oom_killed" if told.oom else "signalled" if told.signal is not None else "exited"
    return RankEnding(
        evidence=(evidence,) if evidence else (),
        cell=cell,
        rank=told.rank if told.rank is not None else (row.rank if told.role == "rank" else None),
        role=told.role,
        pid=told.pid,
        how=how,
        code=told.code,
        signal=told.signal,
        signal_name=signal_name(told.signal),
        at=row.at,
        failed_at=row.at,
        seen_by="launcher",
        host=told.host or row.host,
        reason=row.text.strip()[:200],
        place=row.place,
        seen_at=row.seen_at,
        phase=f"local_rank {told.local_rank}" if told.local_rank is not None else "",
    )


def _tables(record: Evidence, rows: Sequence[Row]) -> Iterator[RankEnding]:
    """Torchrun's tables. The first failure is marked in `phase` and has the place of the table's
    first line; the others follow it.
    """
    joined = "\n".join(row.text for row in rows)
    if "Root Cause" not in joined:
        return
    begin = next((row for row in rows if "Root Cause" in row.text), rows[0])
    for failed in torchrun_report.failures(joined)[:ROWS_CAP]:
        captured = failed.captured
        code, signal = _split(int(captured["exitcode"]))
        at = _time(captured.get("time", ""), begin.at)
        first = captured.get("first") == "true"
        yield RankEnding(
            evidence=(record.id,),
            cell=record.cell,
            rank=int(captured["rank"]),
            pid=int(captured["pid"]),
            how="signalled" if signal is not None else "exited",
            code=code,
            signal=signal,
            signal_name=signal_name(signal),
            at=at,
            failed_at=at,
            seen_by="launcher",
            host=captured.get("host", ""),
            phase="first" if first else "",
            reason=failed.line,
            place=begin.place + (not first),
            seen_at=begin.seen_at,
        )


def _time(text: str, near: float | None) -> float | None:
    """`2026-11-21_01:08:17`, local time of its host: moved by whole half hours to lie near the
    log's own clock, where there is one.
    """
    try:
        at = (
            datetime.strptime(text.strip(), "%Y-%m-%d_%H:%M:%S")
            .replace(tzinfo=timezone.utc)
            .timestamp()
        )
    except ValueError:
        return near
    if near is None:
        return at
    shift = round((near - at) / 1800) * 1800
    return at + shift if abs(shift) <= 14 * 3600 else near


def of_launchers(endings: Sequence[RankEnding], launchers: set[str]) -> list[RankEnding]:
    """`endings` in which srun's tasks are no ranks, where they are `launchers` that start the
    ranks: srun numbers its tasks. Of a task that is out of memory one process was, of unknown rank.
    """
    if not STARTERS & launchers:
        return list(endings)
    return [
        replace(end, rank=None, role="rank" if end.how == "oom_killed" else "launcher")
        if _SRUN.search(end.reason)
        else end
        for end in endings
    ]


def merged_endings(endings: Sequence[RankEnding]) -> list[RankEnding]:
    """One ending per rank: torchrun's table before the scheduler's word before the rest, with
    what the others add. Those without a rank stay.
    """
    by_rank: dict[int, RankEnding] = {}
    by_pid: dict[int, RankEnding] = {}
    rest: list[RankEnding] = []
    for ending in sorted(endings, key=_worth):
        known = (
            by_rank.get(ending.rank)
            if ending.rank is not None
            else by_pid.get(ending.pid)
            if ending.pid
            else None
        )
        if known is not None:
            if (
                ending.how == "oom_killed"
                and known.signal in (9, None)
                and known.rank is not None
                and known.code in (None, 0, 1)
            ):
                by_rank[known.rank] = replace(
                    known, how="oom_killed", signal=9, signal_name="SIGKILL", code=None
                )
            continue
        if ending.rank is not None:
            by_rank[ending.rank] = ending
        else:
            rest.append(ending)
        if ending.pid:
            by_pid[ending.pid] = ending
    return [*by_rank.values(), *rest]


def _worth(ending: RankEnding) -> tuple[int, int]:
    told = (
        0
        if ending.phase == "first" or "exitcode" in ending.reason
        else 1
        if ending.signal is not None or ending.how == "oom_killed"
        else 2
    )
    return (told, ending.place or 0)
