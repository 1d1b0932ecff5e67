"""Recognises a file by its content, and records evidence from the kinds that are no logs."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable
from typing import Any

from trainprobe.case import Case
from trainprobe.collect.collectors.kernel_log import LINES_CAP, TEXT_CAP, is_relevant
from trainprobe.collect.look_results import LookResult, record, refused
from trainprobe.logs.environment_reports import read_environment_report, record_environment_report
from trainprobe.logs.notebooks import is_notebook
from trainprobe.logs.opening import DUMP_WORDS
from trainprobe.logtext.paths import host_of_path, rank_of_path
from trainprobe.logtext.plain import plain
from trainprobe.logtext.stamps import FileClock
from trainprobe.model.evidence import Evidence
from trainprobe.model.subjects import Subject
from trainprobe.stacks.stack_text import parse_stack_text

HEAD = 65536
SAMPLE_LINES = 100
JSON_CAP_BYTES = 2 * 2**20
KERNEL_LINES_CAP = 5_000_000
_KERNEL = re.compile(
    r"^(?:<\d{1,3}>)?\[\s{0,8}\d{1,9}\.\d{6}\]\s|^\[(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} ["
    r" \d]\d \d\d:\d\d:\d\d \d{4}\] |^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S{1,80} kernel: "
    r"|^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S{0,20} \S{1,80} kernel: |^\d{9,12}\.\d{1,9} \S{1,80}"
    r" kernel: |^\d{1,3},\d{1,12},\d{1,16},\S{0,8};"
)
_SYSLOG = re.compile(
    r"^(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S{0,20}) \S{1,80}"
    r" [\w./()@-]{1,60}(?:\[\d{1,9}\])?: "
)
_SACCT = re.compile(
    r"^\s{0,8}JobID(?:Raw)?\b.{0,600}\bState\b|^\s{0,8}JobID(?:Raw)?\|.{0,600}\|?(?:State"
    r"|ExitCode)\b|^\s{0,8}(?:JobIDRaw|JobID)\b.{0,600}\bExitCode\b"
)
_SACCT_ROW = re.compile(
    r"^\s{0,8}\d{1,10}(?:_\d{1,9})?(?:\.(?:batch|extern|\d{1,6}))?[|\s].{0,600}\b(?:COMPLETED"
    r"|FAILED|CANCELLED|TIMEOUT|OUT_OF_ME\S{0,5}|NODE_FAIL|PREEMPTED"
    r"|REQUEUED)\b.{0,300}\b\d{1,3}:\d{1,3}\b"
)
_SCONTROL = re.compile(r"^\s{0,8}JobId=\d{1,10} .{0,200}JobName=|^\s{3}JobState=[A-Z_]{4,20} ")
# One pattern for each kind of environment value; a file of such lines is `given`.
_GIVEN = re.compile(
    r"^(?:export |declare -x |set )?[A-Za-z_][A-Za-z0-9_]{0,100}=|^[a-z][a-z"
    r" ()-]{3,40}\s{1,20}\((?:[\w ,-]{1,24}, )?-[a-zA-Z]\) \S|^-[a-zA-Z]: [a-z][\w ()-]{3,60}"
    r" \s?\S|^Max [a-z ]{3,30}\s{2,}\S"
    r"|^[A-Z]{2,10}\s{1,12}[a-z][\w /-]{3,60}\s{2,}(?:unlimited|\d)|^(?:PyTorch|Python|CUDA"
    r" runtime|CMake|GCC|Clang|Libc|OS|Nvidia driver|cuDNN|HIP runtime|MIOpen runtime)"
    r" ?(?:version)?: |^\[(?:pip3?|conda)\] \S"
    r"|^[A-Za-z][\w.-]{0,80}==\d|^[A-Za-z][\w.-]{0,80} {1,60}\d{1,4}\.\d[\w.+!-]{0,40}(?:\s|$)|^-"
    r" `?[A-Za-z][\w ()?`]{2,50}`? ?(?:version)?:"
    r" |^tmpfs\s|^\S{1,200}\s{1,40}\d[\d.]{0,12}[KMGTP]?\s{1,12}\d[\d.]{0,12}[KMGTP]?\s.{0,40}\d{1,3}% /"  # noqa: E501
    r"|^\d{1,4}: [\w.@-]{1,40}: <|^\s{4}inet6? \S|^\s{4}link/|^\|"
    r" NVIDIA-SMI|^\|\s{1,4}\d{1,3}\s{1,4}\S.{0,60}\|\s|^GPU \d{1,3}: |^[\w .-]{2,50} \.{3,40}"
    r" \S|^(?:Mem|Swap):\s{1,12}\d|^CPU\(s\): |^Linux \S{1,80}"
    r" \d\.|^(?:Filesystem|Package)\s{1,40}[A-Z1]"
)
# Lines that only a report on the environment has.
_VARIABLE = re.compile(r"(?:export )?[A-Z][A-Z0-9_]{1,80}=")
_REPORT = re.compile(
    r"^Collecting environment information|^PyTorch version: |^Is debug build: |^[|+]"
    r" ?NVIDIA-SMI|^Architecture:\s{2,}|^\s{4,20}total\s{2,14}used\s{2,14}free\b"
    r"|^[a-z][\w.-]{1,30}:"
    r" flags=\d{1,6}<"
    r"|^DeepSpeed general environment info|^- `(?:transformers|Accelerate|datasets|diffusers)`"
    r" version|^Max open files\s|^time\(seconds\)\s|^RESOURCE\s{1,12}DESCRIPTION\s"
)
# Words of a job. A file with one of them is a log; environment values in it are read all the same.
_TRAINING = re.compile(
    r"Traceback \(most recent call last\)|\bNCCL"
    r" (?:INFO|WARN)\b|ProcessGroup|Watchdog|\d%\||\bloss\b|\w(?:Error|Exception|Interrupt)\b"
    r"|\bException in\b"
    r"|\bERROR\b|\[rank\d|srun:"
    r" |slurmstepd|\bFATAL|\bKilled\b|"
    r"[Ss]egmentation fault|[Bb]us error|core dumped|\bAborted\b|terminate"
    r" called|\b[Ff]ailed\b|[Tt]imed out|[Rr]efused|exit (?:code|status)|\b[Oo]ut of memory|[Nn]o"
    r" space left|\bassert|\bsignal\b|\berror:"
)


def kind_of(head: bytes, path: str = "") -> str:
    """Return the kind of a file from its first 64 KB, decompressed.

    One of: empty, binary, flight-recorder, stacks, error-file, sacct, kernel-log, given (an
    environment dump, limits, versions, interfaces …), notebook, log.
    `path` only breaks a tie. Never raises.
    """
    head = head[:HEAD]
    if not head.strip():
        return "empty"
    if any(word in head for word in DUMP_WORDS) and (
        head.lstrip()[:1] == b"{" or head[:1] == b"\x80"
    ):
        return "flight-recorder"
    if head[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        if b"\0" in head and _zero_separated(head):
            return "given"
        if _binary(head):
            return "binary"
    text = _decoded(head)
    start = text.lstrip("\ufeff \t\r\n")
    if start[:1] == "{":
        kind = _kind_of_json(start)
        if kind or os.path.basename(path) == "error.json":  # torchelastic's; it may be incomplete
            return kind or "error-file"
    lines = [line for line in text.splitlines()[:2000] if line.strip()]
    sample = (
        lines if len(lines) <= 2 * SAMPLE_LINES else lines[:SAMPLE_LINES] + lines[-SAMPLE_LINES:]
    )
    return _kind_of_lines([plain(line) for line in sample], len(lines), text) if lines else "empty"


def _decoded(head: bytes) -> str:
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return head.decode("utf-16", "replace")
    return head.decode("utf-8", "replace")


_CONTROLS = bytes(range(1, 7)) + bytes(range(14, 27)) + b"\x1c\x1d\x1e\x1f\x7f"


def _binary(head: bytes) -> bool:
    """Whether many control characters show that this is no text. Zeros alone are holes in a log
    whose writer's machine crashed.
    """
    text = head.replace(b"\0", b"")
    return len(text) - len(text.translate(None, _CONTROLS)) > 0.05 * len(text)


def _zero_separated(head: bytes) -> bool:
    """`/proc/PID/environ` as somebody copied it."""
    words = head.rstrip(b"\0").split(b"\0")
    if b"" in words or _binary(head):
        return False
    return len(words) > 3 and sum(b"=" in word for word in words) >= 0.9 * (len(words) - 1)


def _kind_of_json(text: str) -> str:
    if text.startswith('{"log":"'):
        return "log"
    if is_notebook(text):
        return "notebook"
    if (
        re.match(r'\{\s*"schema":\s*"trainprobe\.environment/', text)
        or '"schema": "trainprobe.environment/' in text[:400]
    ):
        return "given"
    if (
        '"extraInfo"' in text
        or re.match(r'\{\s*"message"\s*:\s*\{', text)
        or re.search(r'"(?:py_callstack|errorTraits)"\s*:', text)
    ):
        return "error-file"
    first = text.split("\n", 1)[0].strip()
    if first.endswith("}") and "\n{" in text:
        return "log"  # a log of JSON, one object a line
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    if (
        isinstance(data, dict)
        and len(data) > 2
        and sum(isinstance(value, str) and key.isupper() for key, value in data.items())
        > len(data) // 2
    ):
        return "given"
    return ""


def _kind_of_lines(lines: list[str], of: int, text: str) -> str:
    """`lines` are the first and the last of `of` non-blank lines."""
    count = len(lines)
    if any(_SACCT.match(line) or _SCONTROL.match(line) for line in lines[:20]) or sum(
        _SACCT_ROW.match(line) is not None for line in lines[:40]
    ) >= 0.6 * min(count, 40):
        return "sacct" if not _trains(lines, of, text) else "log"
    kernel = sum(_KERNEL.match(line) is not None for line in lines)
    if kernel and kernel >= 0.6 * count:
        return "kernel-log"
    if _trains(lines, of, text):
        return "log"
    system = sum(_SYSLOG.match(line) is not None for line in lines) if kernel else 0
    if kernel and system >= 0.8 * count:
        return "kernel-log"
    if of <= 400 and _mostly_stacks(text):
        return "stacks"
    values = sum(_GIVEN.match(line) is not None for line in lines)
    if values >= max(1 if count == 1 else 2, 0.4 * count) or any(
        _REPORT.match(line) for line in lines
    ):
        # a program may print its own values in the same form, and seldom in capitals
        named = sum(bool(_VARIABLE.match(line)) for line in lines)
        return "given" if 2 * named > count or read_environment_report(text) else "log"
    return "log"


def _trains(lines: list[str], of: int, text: str) -> bool:
    return any(_TRAINING.search(line) for line in lines) or (
        of > len(lines) and _TRAINING.search(text) is not None
    )


def _mostly_stacks(text: str) -> bool:
    return bool(parse_stack_text(text)) and not re.search(
        r"^(?!Process |Thread |Traceback for|Current thread|Python v|File \"|#|\s|=).{60,}",
        text,
        re.MULTILINE,
    )


def look_at_kernel_text(
    case: Case, path: str, lines: Iterable[str], newest: float | None = None, *, cell: str = "job"
) -> Evidence:
    """Record one `kernel_log` with the relevant lines of a saved kernel log: {lines: [{at, text}],
    path}.

    `at` is Unix seconds, or None where the text counts seconds since the boot, which are then
    `boot_s`. `newest` is when the file was last written (Unix s).
    """
    began = time.time()
    clock = FileClock(newest)
    kept: list[dict[str, Any]] = []
    cut = 0
    host = host_of_path(path)
    for number, raw in enumerate(lines):
        if number >= KERNEL_LINES_CAP:
            break
        if not is_relevant(raw[:2000]):
            continue
        line = plain(raw)
        at = clock.read(line)
        body, name = _kernel_text(line)
        host = host or name
        since_boot = clock.kind == "relative"
        row: dict[str, Any] = {
            "at": round(at, 3) if at is not None and not since_boot else None,
            "text": body[:TEXT_CAP],
        }
        kept.append({**row, "boot_s": at} if since_boot else row)
        if len(kept) > 2 * LINES_CAP:  # the first lines show the origin, the last ones the end
            cut += 1
            del kept[LINES_CAP]
    data: dict[str, Any] = {"lines": kept, "path": path}
    if cut:
        data["cut_lines"] = cut
    subject = Subject("host", host=host)
    return record(
        case,
        "kernel_log",
        LookResult(data, began=began, took_s=time.time() - began),
        subject=subject,
        cell=cell,
        source=path,
    )


_PREFIXES = re.compile(
    r"^(?:(?:<\d{1,3}>)?\[\s{0,8}\d{1,9}\.\d{6}\]\s?(?:\[[^\]]{1,20}\]\s)?|\[[A-Z][a-z]{2}"
    r" [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4}\] |(?:[A-Z][a-z]{2} [ \d]\d"
    r" [\d:]{8}|\d{4}-\d\d-\d\dT[\d:.,+Z-]{8,30}|\d{9,12}\.\d{1,9}) "
    r"(?P<host>\S{1,80}) (?:kernel|[\w./-]{1,40}\[\d{1,9}\]):"
    r" (?:\[\s{0,8}\d{1,9}\.\d{6}\]\s?)?|\d{1,3},\d{1,12},\d{1,16},\S{0,8};)"
)


def _kernel_text(line: str) -> tuple[str, str]:
    match = _PREFIXES.match(line)
    return (line, "") if match is None else (line[match.end() :], match.group("host") or "")


def look_at_error_text(case: Case, path: str, content: bytes, *, cell: str = "job") -> Evidence:
    """Record one `error_file` of torchelastic: its content, plus `path` and `present`. The rank is
    that of the content, or else of the path.
    """
    base: dict[str, Any] = {"path": path, "present": True}
    text = content[:JSON_CAP_BYTES].decode("utf-8", "replace")
    rank = rank_of_path(path)
    look: LookResult
    try:
        content_row = json.loads(text)
    except (ValueError, RecursionError):
        look = refused("partial", "the error file holds no whole JSON", **base, text=text[:4000])
    else:
        if isinstance(content_row, dict):
            rank = _rank_in(content_row) if _rank_in(content_row) is not None else rank
            look = LookResult({**content_row, **base})
        else:
            look = refused(
                "partial", "the error file holds JSON of another shape", **base, text=text[:4000]
            )
    subject = Subject("rank" if rank is not None else "job", rank=rank, host=host_of_path(path))
    return record(case, "error_file", look, subject=subject, cell=cell, source=path)


def _rank_in(content_row: dict[str, Any]) -> int | None:
    message = content_row.get("message")
    extra = message.get("extraInfo") if isinstance(message, dict) else None
    for part in (content_row, extra):
        for name in ("rank", "global_rank"):
            value = part.get(name) if isinstance(part, dict) else None
            if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 7:
                return int(value)
            if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1_000_000:
                return value
    return None


def record_environment_file(case: Case, path: str, content: bytes, *, cell: str = "") -> Evidence:
    """Record one `given` from an environment report among the logs."""
    utf16 = content[:2] in (b"\xff\xfe", b"\xfe\xff")
    text = _decoded(content if utf16 else content.replace(b"\0", b"\n"))
    return record_environment_report(case, path, text, "log", cell=cell)
