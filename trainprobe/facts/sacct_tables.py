"""`sacct` and `scontrol show job` text: how a SLURM job and its steps ended."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trainprobe.facts.endings import RankEnding, signal_name
from trainprobe.facts.log_rows import Row
from trainprobe.model.evidence import Evidence

# JOB STATE CODES of sacct(1), SLURM 17.11 to 24.05.
STATES = {
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "REQUEUED",
    "REVOKED",
    "RUNNING",
    "PENDING",
    "SUSPENDED",
    "TIMEOUT",
}
_EXIT = re.compile(r"(\d{1,3}):(\d{1,3})$")
_SCONTROL = re.compile(r"\bJobState=(?P<state>[A-Z_]{4,16})\b")
_SCONTROL_EXIT = re.compile(r"\bExitCode=(?P<code>\d{1,3}):(?P<signal>\d{1,3})\b")
ROWS_CAP = 2000


def sacct_endings(record: Evidence, rows: Sequence[Row]) -> list[RankEnding]:
    """The job's own row, and its steps' where they tell more; `phase` is SLURM's state in its
    own word. No rank: SLURM counts steps.
    """
    found: list[RankEnding] = []
    header: list[str] = []
    apart = ""
    for row in rows:
        text = row.text.strip()
        if "JobID" in text and "State" in text:
            apart = "|" if "|" in text else ""
            header = _cells(text, apart)
            continue
        if header and text and not set(text) <= set("- "):
            ending = _row(record, row, dict(zip(header, _cells(text, apart), strict=False)), text)
            if ending is not None:
                found.append(ending)
        state = _SCONTROL.search(text)
        if state is not None:
            near = next(
                (match for other in rows if (match := _SCONTROL_EXIT.search(other.text))), None
            )
            found.append(
                _ended(record, row, state.group("state"), near.group(0) if near else "", text)
            )
    return found[:ROWS_CAP]


def _cells(text: str, apart: str) -> list[str]:
    return [cell.strip() for cell in text.split(apart)] if apart else text.split()


def _row(record: Evidence, row: Row, cells: dict[str, str], text: str) -> RankEnding | None:
    state = next(
        (word for word in re.findall(r"[A-Z_]{4,16}", cells.get("State", "")) if word in STATES), ""
    ) or next((word for word in re.split(r"[\s|+]+", text) if word in STATES), "")
    if not state:
        return None
    code = next((part for part in re.split(r"[\s|]+", text) if _EXIT.match(part)), "")
    return _ended(record, row, state, code, text)


def _ended(record: Evidence, row: Row, state: str, code: str, text: str) -> RankEnding:
    match = _EXIT.search(code)
    status, number = (int(match.group(1)), int(match.group(2))) if match else (None, None)
    how = "oom_killed" if state == "OUT_OF_MEMORY" else "signalled" if number else "exited"
    return RankEnding(
        evidence=(record.id,),
        cell=record.cell,
        role="scheduler",
        how=how,
        code=status if not number else None,
        signal=number or (9 if how == "oom_killed" else None),
        signal_name=signal_name(number or (9 if how == "oom_killed" else None)),
        at=row.at,
        failed_at=row.at,
        seen_by="launcher",
        phase=state,
        reason=" ".join(text.split())[:200],
        place=row.place,
        seen_at=row.seen_at,
    )
