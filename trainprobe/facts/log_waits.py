"""Lines at the end of a log in which a program says that it waits, again and again or last of all,
in words that signatures/ does not know, and the last words of whoever watched it wait.
"""

from __future__ import annotations

import re

from trainprobe.facts.log_events import LINE_CHARACTERS, LogEvent
from trainprobe.facts.log_rows import Row, rows_of
from trainprobe.logtext.phases import is_beside, is_of_others, is_warning, says_it_waits
from trainprobe.logtext.steps import read_step
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

WAIT_TOLD = "wait-told"
LAST_LINES = 40
SEEN = 400
REMARK = 80
AGAIN = 2  # alike lines, of which the last is at the end
APART_S = 1.0
OTHERS = 2  # lines of something else behind it, such as another process's
# What is awaited now, in any program's words. «waited for» tells of a wait that is over.
_WAITS = re.compile(
    r"(?i)\bwait(?:ing|s)? (?:for|on|until|to)\b|\b(?:currently|still) (?:wait|pend|block|stuck)"
    r"|\bpending\b.{0,60}\b(?:schedul|resource|nodes?\b|gpus?\b|workers?\b)"
    r"|\bcan(?:not|'t) (?:currently |yet )?be scheduled\b|\btaken (?:more|longer) than \d"
    r"|\b(?:not|n't) (?:yet )?(?:ready|respond\w{0,3}|joined|registered)\b"
    r"|\bno (?:response|heartbeat|progress)\b.{0,60}\b(?:for|in|since|after) \d"
    r"|\b(?P<came>\d{1,5})(?:/| of )(?!(?P=came)\b)\d{1,5} (?:nodes|workers|ranks|clients|hosts)\b"
)
_PAST = re.compile(r"(?i)\b(?:done|finished|stopped|completed|no longer|without) wait|\bwaited\b")
LONG_S = 60
_LASTED = re.compile(r"\b(?:for|after|since|than) (\d{1,7}) ?s(?:ec(?:ond)?s?)?\b")
_COUNTS = re.compile(r"0x[0-9a-f]+|\d+(?:[.,:]\d+)*", re.IGNORECASE)


def parse_log_waits(record: Evidence) -> list[Fact]:
    """The last such line of a file, with how many alike ones there are; none where the log goes on
    behind it. Whoever watched it may say so anywhere: above what is pasted, or before the command.
    """
    rows = [row for row in rows_of(record)[-LAST_LINES:] if re.search(r"\w", row.text)]
    own = _before_others(rows)
    told = [row for row in own if _waits(row.text[:SEEN])]
    watched = [row for row in rows if _somebody_saw(row.text.strip())]
    if watched:
        last, alike = watched[-1], 1
    elif told:
        last = told[-1]
        behind = [row for row in own if row.place > last.place]
        if len(behind) > OTHERS or any(
            not is_warning(row.text) and not is_beside(row.text) for row in behind
        ):
            return []
        same = [row for row in told if _form(row) == _form(last)]
        alike = len(same)
        if not _lasts(last.text) and (alike < AGAIN or _at_once(same[0], last)):
            return []
    else:
        return []
    return [
        LogEvent(
            evidence=(record.id,),
            cell=record.cell,
            rank=last.rank,
            event=WAIT_TOLD,
            line=_told(last, watched=bool(watched)),
            stream="log",
            at=last.at,
            captured={"alike": str(alike), **({"watched": "yes"} if watched else {})},
            place=last.place,
            host=last.host,
            seen_at=last.seen_at,
        )
    ]


def _told(row: Row, *, watched: bool) -> str:
    """The line, or the end of a long one behind which somebody has set a remark."""
    text = row.text.strip()
    if watched and len(text) > REMARK:
        return f"… {text[-REMARK:]}"
    return text[:LINE_CHARACTERS]


def _before_others(rows: list[Row]) -> list[Row]:
    """The rows before another program's output that is pasted behind them, or its comment."""
    begin = next((place for place, row in enumerate(rows) if is_of_others(row.text)), len(rows))
    if 0 < begin < len(rows) and rows[begin - 1].text.startswith("# "):
        begin -= 1
    return rows[:begin]


def _somebody_saw(text: str) -> bool:
    return says_it_waits(text) and not text.startswith("^C")


def _waits(text: str) -> bool:
    return (
        _WAITS.search(text) is not None and _PAST.search(text) is None and read_step(text) is None
    )


def _at_once(first: Row, last: Row) -> bool:
    """Whether alike lines came at one moment, as when each rank prints them once."""
    return first.at is not None and last.at is not None and last.at - first.at < APART_S


def _lasts(text: str) -> bool:
    """Whether the line itself says that it has waited for long."""
    return any(int(one[1]) >= LONG_S for one in _LASTED.finditer(text[:SEEN]))


def _form(row: Row) -> str:
    """A line without its numbers."""
    return _COUNTS.sub("#", row.text[:SEEN]).strip()
