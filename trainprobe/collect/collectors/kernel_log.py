"""What the kernel log says of kills for memory, crashes and GPU errors since a moment."""

from __future__ import annotations

import os
import re
import time
from typing import Any, Dict, List, Tuple

from trainprobe.collect.collector import Collector, JobView
from trainprobe.collect.look_results import LookResult, refused

UNKNOWN_START_S = 24 * 3600.0
LINES_CAP = 200
TEXT_CAP = 500
RECORDS_CAP = 200_000
# The kernel stamps lines with its own clock, which drifts from the wall clock between corrections
# and over a suspend.
SLACK_S = 2.0
RELEVANT = re.compile(
    r"out of memory|oom[-_]kill|oom_reaper|killed process|invoked oom-killer"
    r"|segfault at|general protection|\btraps?:|trap (?:invalid|divide|stack|int3)|invalid"
    r" opcode|bus error|hardware error|\bmce:"
    r"|NVRM|\bXid\b"
    r"|link (?:is )?down|IO_PAGE_FAULT|DMAR: \[DMA"
    r"|blocked for more than \d+ seconds|nfs: server .* not responding",
    re.IGNORECASE,
)
REMEDY = (
    "ask an administrator for: sudo sysctl kernel.dmesg_restrict=0, or for membership of group adm"
    " (then journalctl -k works)"
)
_CALL_TRACE = re.compile(
    r"\+0x[0-9a-f]+/0x[0-9a-f]+"
)  # `oom_kill_process.cold+0x8/0x8a`: the kernel's own stack
_DMESG_LINE = re.compile(r"^(?:<\d+>)?\[\s*(\d+\.\d+)\]\s?(?:\[[^\]]{1,20}\]\s)?(.*)$")
_JOURNAL_LINE = re.compile(r"^(\d{9,}\.\d+) \S+ kernel: (.*)$")
Lines = List[Tuple[float, str]]


def look(job: JobView, deadline_s: float) -> LookResult:
    since = job.began if job.began is not None else time.time() - UNKNOWN_START_S
    return read_kernel_log(since, deadline_s)


def read_kernel_log(since: float, deadline_s: float) -> LookResult:
    """Try /dev/kmsg, then dmesg, then the journal, and say what refused if all do."""
    from trainprobe.system.run import run

    ends = time.monotonic() + deadline_s
    booted_at = time.time() - time.clock_gettime(time.CLOCK_MONOTONIC)
    denied = False
    try:
        return _result(parse_kmsg(_read_kmsg(ends), booted_at), since, "/dev/kmsg")
    except PermissionError:
        denied = True
    except OSError:
        pass  # Not in this container; dmesg may still be allowed.
    dmesg = run(
        ["dmesg"],
        timeout_s=max(0.1, min(1.0, ends - time.monotonic())),
        output_cap_bytes=16 * 2**20,
    )
    if dmesg.ended.how == "exited" and dmesg.ended.code == 0:
        return _result(
            parse_dmesg(dmesg.stdout.decode("utf-8", "replace"), booted_at), since, "dmesg"
        )
    denied = denied or b"not permitted" in dmesg.stderr or b"denied" in dmesg.stderr
    argv = [
        "journalctl",
        "-k",
        "-q",
        "--no-pager",
        "-o",
        "short-unix",
        f"--since=@{int(since - SLACK_S)}",
    ]
    journal = run(argv, timeout_s=max(0.1, ends - time.monotonic()), output_cap_bytes=16 * 2**20)
    lines = parse_journal(journal.stdout.decode("utf-8", "replace"))
    # A user who may not read the journal gets an empty answer and exit 0, so that only lines prove
    # that we may.
    if journal.ended.how == "exited" and journal.ended.code == 0 and lines:
        return _result(lines, since, "journalctl -k")
    if denied:
        return refused("denied", f"the kernel log is closed to us; {REMEDY}", lines=[])
    return refused(
        "unavailable",
        "there is no kernel log here (no /dev/kmsg, and dmesg and journalctl gave nothing), as in"
        " most containers",
        lines=[],
    )


_MOMENT = re.compile(r"[0-9]{1,20}").fullmatch  # 64 bits


def parse_kmsg(content: bytes, booted_at: float) -> Lines:
    """Parse `prio,seq,µs since boot,flags;text` (Documentation/ABI/testing/dev-kmsg)."""
    lines: Lines = []
    for line in content.decode("utf-8", "replace").split("\n"):
        head, semicolon, text = line.partition(";")
        fields = head.split(",")
        if semicolon and not line.startswith(" ") and len(fields) >= 3 and _MOMENT(fields[2]):
            lines.append((booted_at + int(fields[2]) / 1e6, text))
    return lines


def parse_dmesg(text: str, booted_at: float) -> Lines:
    matches = (_DMESG_LINE.match(line) for line in text.splitlines())
    return [(booted_at + float(match.group(1)), match.group(2)) for match in matches if match]


def parse_journal(text: str) -> Lines:
    matches = (_JOURNAL_LINE.match(line) for line in text.splitlines())
    return [(float(match.group(1)), match.group(2)) for match in matches if match]


def _result(lines: Lines, since: float, source: str) -> LookResult:
    telling: List[Dict[str, Any]] = [
        {"at": round(at, 3), "text": text[:TEXT_CAP]}
        for at, text in lines
        if at >= since - SLACK_S and is_relevant(text[: TEXT_CAP * 4])
    ]
    data: Dict[str, Any] = {"lines": telling[-LINES_CAP:]}
    if len(telling) > LINES_CAP:
        data["cut_lines"] = len(telling) - LINES_CAP
    return LookResult(data, source=source)


def is_relevant(text: str) -> bool:
    return RELEVANT.search(text) is not None and _CALL_TRACE.search(text) is None


def _read_kmsg(ends: float) -> bytes:
    """Read all records, one a read; without O_NONBLOCK the last read would wait."""
    fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    records: List[bytes] = []
    try:
        while len(records) < RECORDS_CAP and time.monotonic() < ends:
            try:
                record_bytes = os.read(fd, 16384)
            except BlockingIOError:
                break
            except BrokenPipeError:
                # This record was overwritten while we read; the next read goes on behind it.
                continue
            if not record_bytes:
                break
            records.append(record_bytes)
    finally:
        os.close(fd)
    return b"\n".join(records)


COLLECTOR = Collector("kernel_log", look, deadline_s=1.5, source="kernel log")
