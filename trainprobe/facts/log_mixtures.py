"""What whoever pasted a log says of its data: rows of several kinds (text, images, video, audio) in
one set, of which each takes another way through a model.
"""

from __future__ import annotations

import re

from trainprobe.facts.log_events import LINE_CHARACTERS, LogEvent
from trainprobe.facts.log_rows import rows_of
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

MIXED_ROWS = "mixed-rows"
LAST_LINES = 60
SEEN = 300
_KIND = re.compile(
    r"(?i)\b(?:(?P<text>(?:pure[- ])?text(?:[- ]only)?)|(?P<image>images?|pictures?|vision)"
    r"|(?P<video>videos?)|(?P<audio>audio|speech)|(?P<any>multi-?modal))\b"
)
_OF_DATA = re.compile(
    r"(?i)\b(?:data(?:sets?)?|sets?|rows?|samples?|sources?|batch(?:es)?|examples?|mix\w*)\b"
)
_JOINS = re.compile(r"(?i)\b(?:and|with|mix\w*|plus|together|both)\b")
# A sentence of a person: no path, no setting, no number with a name.
_OF_A_PROGRAM = re.compile(r"[/\\=|{}\[\]<>]|\w: ?\d|\d+%|::")


def parse_log_mixtures(record: Evidence) -> list[Fact]:
    """The first such sentence of a file."""
    rows = rows_of(record)
    near = rows if len(rows) <= 2 * LAST_LINES else [*rows[:LAST_LINES], *rows[-LAST_LINES:]]
    told = next((row for row in near if _mixes(row.text[:SEEN])), None)
    if told is None:
        return []
    return [
        LogEvent(
            evidence=(record.id,),
            cell=record.cell,
            rank=told.rank,
            event=MIXED_ROWS,
            line=told.text.strip()[:LINE_CHARACTERS],
            stream="log",
            at=told.at,
            place=told.place,
            host=told.host,
            seen_at=told.seen_at,
        )
    ]


def _mixes(text: str) -> bool:
    if _OF_A_PROGRAM.search(text) or not (_OF_DATA.search(text) and _JOINS.search(text)):
        return False
    return len({kind.lastgroup for kind in _KIND.finditer(text)}) > 1
