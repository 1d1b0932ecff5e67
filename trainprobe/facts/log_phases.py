"""In which phase the lines of a rank end, where they simply stop."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from trainprobe.facts.log_rows import Row, rows_of, streams
from trainprobe.logtext.phases import (
    Phase,
    is_beside,
    is_of_others,
    is_warning,
    read_phase,
    says_it_waits,
    signs_in,
)
from trainprobe.logtext.steps import has_loss, read_step
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

TEXT = 200
UNKNOWN_LINES = 2  # so many lines behind a phase's own may tell of something else
LAST_ROWS = 80  # of one rank that are looked at
SIGN_ROWS = 400  # of one file in which signs are sought
RANKS_CAP = 64  # of one file; more ranks do not tell more
_MEMBER = re.compile(r"\bGLOBAL_RANK: ?(\d{1,6}), MEMBER: ?\d{1,6}/(\d{1,6})\b")
_NODES = re.compile(
    r"\bnNodes (\d{1,5})\b|\b(?:nnodes|min_nodes)(?: {0,12}: |[=: ]{1,3})(\d{1,5})\b"
)
_HOSTS = re.compile(r"WORLD INFO DICT: \{([^{}\n]{1,2000})\}")
# Where ranks of one host meet, and programs that start all workers on their own host.
_ON_ONE_HOST = re.compile(
    r"tcp://(?:127\.0\.0\.1|localhost):|--standalone\b|master_addr=(?:127\.0\.0\.1|localhost)\b"
    r"|\(VllmWorker(?:Process)? |multiproc_(?:worker_utils|gpu_executor|executor)\.py"
)
_COUNTER = re.compile(r"(?i)(?<![a-z])(?:epochs?|steps?|iter\w{0,8}|batch\w{0,8})\b\W{1,4}\d")
_METRIC = re.compile(r"\b[a-zA-Z_]\w{1,30}\W{1,3}-?\d{1,9}\.\d")
# What stands behind the clock of a bar that was not overwritten.
_BEHIND_BAR = re.compile(r"\|\s{0,4}\d+/\d+ \[[^\]]{1,60}\](.*)")
_SPEAKER = re.compile(r"\b[Rr]ank[ :=]{0,2}(\d{1,6})\b|\bdevice[ :=](\d{1,6})\b|^(\d{1,4}): ")
_PEER_ACCESS = re.compile(r"P2P=(Enabled|Disabled) Bandwidth")
_MATRIX = re.compile(r"^\s{1,8}\d{1,3}((?: +\d{1,6}\.\d{2})+)\s{0,4}$")
_BUSY = re.compile(r"\|\s{1,8}100%\s{1,8}(?:Default|E\. ?Process|N/A)")
_CONNECTING = re.compile(r"\bsocket\.cpp:\d")  # such a warning belongs to what it does
MUCH_SLOWER = 2.0
OTHERS_S = 1800.0  # torch/distributed/constants.py: default_pg_timeout; NCCL's is shorter
# How far it is, of how much, for how long it has run, and how long it will.
_BAR = re.compile(
    r"\b(\d{1,15})/(\d{1,15}) \[((?:\d{1,3} days?, )?[\d:]{4,9})<((?:\d{1,5} days?, )?[\d:]{4,9}),"
)
FULL_USE = "nvidia-smi shows 100 %"


@dataclass(frozen=True)
class LogPhase(Fact):
    """The phase (logtext.phases) at which one rank of one file ends. `line` is the last line that
    told it; `first_place` that of the first line of this rank that told it, `place` of the last.
    `signs` are what the file says besides; `waits` is the line that says that it waits, or
    FULL_USE, which is a wait where the ranks only set up; empty where nothing does.
    """

    phase: str = ""
    line: str = ""
    place: int = 0
    first_place: int = 0
    seen_at: str = ""
    at: float | None = None
    signs: frozenset[str] = frozenset()
    waits: str = ""


def parse_log_phases(record: Evidence) -> list[Fact]:
    """One for each rank whose last lines tell a phase."""
    rows = _own_rows(every := rows_of(record))
    found = [
        told
        for rank, of_rank in list(streams(rows).items())[:RANKS_CAP]
        for told in [_of_rank(record, rank, of_rank)]
        if told is not None
    ]
    if not found:
        return []
    signs = frozenset(_signs(every[-SIGN_ROWS:]))
    latest = max(one.place for one in found)
    if sum(not _by_the_way(row.text) for row in rows if row.place > latest) > UNKNOWN_LINES:
        return []  # others went on
    waits = next(
        (
            row.text.strip()[:TEXT]
            for row in every
            if row.place > latest and says_it_waits(row.text.strip())
        ),
        FULL_USE if _busy(every) else "",
    )
    return [
        LogPhase(
            one.evidence, one.cell, one.rank, one.phase, one.line, one.place, one.first_place,
            one.seen_at, one.at, signs | one.signs | _speakers(rows, one), waits,
        )
        for one in found
    ]  # fmt: skip


def _own_rows(rows: list[Row]) -> list[Row]:
    """The rows before another program's output, which somebody pasted behind the log."""
    end = next(
        (
            number
            for number in range(max(1, len(rows) - SIGN_ROWS), len(rows))
            if is_of_others(rows[number].text)
            and any(read_phase(row.text) for row in rows[max(0, number - LAST_ROWS) : number])
        ),
        len(rows),
    )
    return rows[:end]


def _of_rank(record: Evidence, rank: int | None, rows: Sequence[Row]) -> LogPhase | None:
    strange = 0
    last = [row for row in rows[-LAST_ROWS:] if re.search(r"\w", row.text)]
    ends = last[-1].text if last else ""
    if is_warning(ends) and read_phase(ends) is None and not _CONNECTING.search(ends):
        return None  # where the warning is what somebody asks about, nothing need have stopped
    otherwise: LogPhase | None = None
    for number, row in reversed(list(enumerate(last))):
        phase = read_phase(_latest(row.text))
        if phase is not None and phase.otherwise:
            otherwise = otherwise or _told(record, rank, phase, row, row)
        elif phase is not None:
            first = row
            for before in reversed(last[:number]):
                told = read_phase(before.text)
                if told is not None and told.id == phase.id:
                    first = before
                elif not _by_the_way(before.text):
                    break
            return _told(record, rank, phase, first, row)
        if _by_the_way(row.text):
            continue
        step = read_step(row.text)
        strange += 1
        if _COUNTER.search(row.text) and _METRIC.search(_latest(row.text)):
            return None  # a step was made, which the bar does not show yet
        if has_loss(row.text) or (step and step.step is not None):
            return None
        if strange > UNKNOWN_LINES:
            break
    return otherwise


def _told(record: Evidence, rank: int | None, phase: Phase, first: Row, last: Row) -> LogPhase:
    return LogPhase(
        (record.id,),
        record.cell,
        rank,
        phase.id,
        last.text.strip()[:TEXT],
        last.place,
        first.place,
        last.seen_at,
        last.at,
        _of_a_bar(last.text),
    )


def _of_a_bar(text: str) -> frozenset[str]:
    """`long-work` where the bar of a line takes longer by its own rate than other ranks wait."""
    bar = _BAR.search(text)
    if bar is None or bar[1] == bar[2] or _seconds(bar[3]) + _seconds(bar[4]) <= OTHERS_S:
        return frozenset()
    return frozenset({"long-work"})


def _seconds(clock: str) -> float:
    """Of `1:02:03`, and of `1 day, 1:02:03`."""
    days, _, rest = clock.rpartition(" day")
    parts = [int(part) for part in re.findall(r"\d+", rest)][-3:]
    return int(days or 0) * 86_400.0 + sum(
        part * 60.0**power for power, part in enumerate(reversed(parts))
    )


def _latest(text: str) -> str:
    """A line without the bar at its beginning, where words were printed behind that."""
    behind = _BEHIND_BAR.search(text)
    return behind[1] if behind is not None and re.search(r"\w{3}", behind[1]) else text


def _by_the_way(text: str) -> bool:
    """Whether a line tells nothing of where a job is."""
    return is_warning(text) or is_beside(text) or "NCCL INFO" in text or says_it_waits(text.strip())


def _busy(rows: Sequence[Row]) -> bool:
    """Whether `nvidia-smi` behind the log shows a GPU in full use: NCCL's kernels poll."""
    return any(_BUSY.search(row.text) for row in rows[-SIGN_ROWS:])


def _signs(rows: Sequence[Row]) -> set[str]:
    text = "\n".join(row.text[:TEXT] for row in rows)
    found = signs_in(text)
    nccl = [row for row in rows if "NCCL INFO" in row.text]
    nodes = max(
        [
            *(int(one[1] or one[2]) for one in _NODES.finditer(text)),
            *(one[1].count("[") for one in _HOSTS.finditer(text)),
        ],
        default=0,
    )
    hosts = {row.host for row in nccl if row.host}
    several = len({row.text for row in nccl}) < len(nccl)  # ranks, who print the same
    at_home = (len(hosts) == 1 and several) or _ON_ONE_HOST.search(text)
    if nodes == 1 or (not nodes and len(hosts) < 2 and at_home and "via NET/" not in text):
        found.add("one-host")
    if nodes > 1:
        found.add("several-nodes")
    members = list(_MEMBER.finditer(text))
    if members and len({one[1] for one in members}) < max(int(one[2]) for one in members):
        found.add("members-missing")
    if _slow_peer_access(rows):
        found.add("slow-peer-access")
    if len(_spoke(rows)) > 1:
        found.add("several-processes")
    return found


def _speakers(rows: Sequence[Row], told: LogPhase) -> frozenset[str]:
    """`several-ranks` where more than one of them spoke in this phase."""
    spoke = _spoke([row for row in rows if told.first_place <= row.place])
    return frozenset({"several-ranks"} if len(spoke) > 1 else ())


def _spoke(rows: Sequence[Row]) -> set[object]:
    """The ranks and devices that the lines name as their speakers."""
    return {
        row.rank if row.rank is not None else match and next(filter(None, match.groups()), None)
        for row in rows
        for match in [_SPEAKER.search(row.text[:TEXT])]
    } - {None}


def _slow_peer_access(rows: Sequence[Row]) -> bool:
    """Whether CUDA's p2pBandwidthLatencyTest copies slower with peer access than without it."""
    best: dict[str, float] = {}
    under = ""
    for row in rows:
        head = _PEER_ACCESS.search(row.text)
        if head is not None:
            under = head[1]
            number = 0
        cells = _MATRIX.match(row.text) if under else None
        if cells is not None:
            apart = [float(cell) for place, cell in enumerate(cells[1].split()) if place != number]
            best[under] = max([best.get(under, 0.0), *apart])
            number += 1
    return "Disabled" in best and best.get("Enabled", 1e9) * MUCH_SLOWER < best["Disabled"]
