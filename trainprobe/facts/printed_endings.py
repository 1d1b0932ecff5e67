"""How a rank of a live job that has no process any more ended, by what its launcher printed, or
who ended it.
"""

from __future__ import annotations

import re
from dataclasses import replace

from trainprobe.facts.endings import RankEnding, signal_name
from trainprobe.facts.jobs import Job, JobRank, Process
from trainprobe.facts.log_endings import endings_told
from trainprobe.facts.log_events import whole_text
from trainprobe.facts.processes import ProcessState
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

PRINTED = "output"
# A rank may say of itself that it terminates; nobody says so that it kills or was killed.
_ENDS_PID = re.compile(
    r"(?i)\b(?:kill(?:s|ed|ing)?|evict(?:s|ed|ing)?|reap(?:s|ed|ing)?|SIGKILL|SIGTERM|ending it"
    r"|(?:was|been|got) (?:terminated|stopped|shot)"
    r"|(?:ending|terminat(?:es|ed|ing)) .{0,40}\bpid)\b"
)
_ENDS_RANK = re.compile(
    r"(?i)\b(?:kill|evict|reap)(?:ed|ing) (?:global )?(?:rank|worker|task|trainer)\b"
    r"|\b(?:was|been|got) (?:killed|evicted)\b"
)
_SIGNAL = re.compile(r"(SIGTERM|signal 15)|SIGKILL|signal 9|kill -9")
_OF_A_LOADER = re.compile(r"DataLoader worker")
_PID = re.compile(r"(?i)\bpid[ :=#]{0,3}(\d{1,9})\b|\bprocess[ :=#]{1,3}(\d{2,9})\b")
_RANK = re.compile(
    r"(?i)\b(?:global[_ ])?(?:rank|worker|task|trainer|replica)[ :=#]{0,3}(\d{1,7})\b"
)


def parse_printed_endings(record: Evidence) -> list[Fact]:
    """The ends that lines of nobody's own in the output of a live job tell of, the last first."""
    if not fields.text(record.data, "path") or record.subject.rank is not None:
        return []
    found: list[Fact] = []
    for line in reversed(whole_text(record).splitlines()):
        told = endings_told(record, line) or _killed(record, line)
        found += [replace(one, seen_by=PRINTED) for one in told]
    return found


def _killed(record: Evidence, line: str) -> list[RankEnding]:
    """Whom a watch or an agent says that it ends; with which signal it seldom says."""
    pid, rank = _PID.search(line), _RANK.search(line)
    says = _ENDS_PID if pid is not None else _ENDS_RANK
    if (pid is None and rank is None) or not says.search(line) or _OF_A_LOADER.search(line):
        return []
    said = _SIGNAL.search(line)
    number = 15 if said is not None and said.group(1) else 9 if said is not None else None
    return [
        RankEnding(
            evidence=(record.id,),
            cell=record.cell,
            rank=int(rank.group(1)) if rank else None,
            pid=int(pid.group(1) or pid.group(2)) if pid else None,
            how="signalled",
            signal=number,
            signal_name=signal_name(number),
            reason=line.strip()[:200],
        )
    ]


def join_printed_endings(facts: list[Fact]) -> list[Fact]:
    """Keep what is told of a rank that has no process, or of a process that nobody has seen where
    one rank alone is gone; the last word on each counts.
    """
    told = [one for one in facts if isinstance(one, RankEnding) and one.seen_by == PRINTED]
    if not told:
        return facts
    jobs = {job.cell: job for job in facts if isinstance(job, Job)}
    alive = {
        (one.cell, one.pid) for one in facts if isinstance(one, (JobRank, ProcessState)) and one.pid
    }
    known = {
        (one.cell, one.rank)
        for one in facts
        if isinstance(one, RankEnding) and one.seen_by != PRINTED
    }
    kept: dict[tuple[str, int | None], RankEnding] = {}
    for one in told:
        job = jobs.get(one.cell)
        absent = job.absent if job is not None and not job.elsewhere else ()
        rank = one.rank if one.rank is not None else absent[0] if len(absent) == 1 else None
        others: tuple[Process, ...] = job.others if job is not None else ()
        lives = (one.cell, one.pid) in alive or any(one.pid == other.pid for other in others)
        unnamed = one.rank is None and one.pid is None
        if rank in absent and not lives and not unnamed and one.role == "rank":
            kept.setdefault((one.cell, rank), replace(one, rank=rank))
    kept = {key: one for key, one in kept.items() if key not in known}
    return [one for one in facts if one not in told] + list(kept.values())
