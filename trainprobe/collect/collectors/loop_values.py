"""Whether a rank that works alone gets anywhere: which of its values move on, and which come back.

Some looks of py-spy at the locals of one process within two or three seconds. No value is kept: of
each local only the order in which its values first came (`0 1 2 0 1 2` goes round, `0 1 2 3 4 5`
gets on), and whether it is an object of which py-spy shows nothing but an address.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Sequence, Set, Tuple

from trainprobe.collect.collector import Collector, record_look
from trainprobe.collect.collectors.awaited import locals_of, read_locals
from trainprobe.collect.look_results import LookResult, refused
from trainprobe.collect.members import Member
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.places import is_user

if TYPE_CHECKING:
    from trainprobe.case import Case

READS_CAP = 24
FRAMES_CAP = 12  # the innermost of the user
NAMES_CAP = 60  # of one frame
PAUSE_S = 0.05
Place = Tuple[int, str, str]  # depth from the outermost frame, file, function


@dataclass(frozen=True)
class LoopValue(Fact):
    """A local of one frame of a process over several reads. `seen`: its values, each by its number
    in the order in which they first came. `opaque`: an object of which only the address is known,
    or a list that is shown in part.
    `depth` counts from the outermost frame; `reads` is how often the process was asked, more than
    `seen` has where the frame was not always there.
    """

    pid: int = 0
    depth: int = 0
    file: str = ""
    function: str = ""
    name: str = ""
    seen: Tuple[int, ...] = ()
    opaque: bool = False
    reads: int = 0

    @property
    def changes(self) -> bool:
        return len(set(self.seen)) > 1

    @property
    def returns(self) -> int:
        """How often it took a value again that it had had, and another one since."""
        pairs = zip(self.seen, self.seen[1:])
        known: Set[int] = set()
        found = 0
        for before, now in pairs:
            known.add(before)
            found += now != before and now in known
        return found


def look_at_loop_values(
    case: Case, cell: str, member: Member, *, span_s: float, deadline_s: float
) -> List[Evidence]:
    """Record one `loop_values` of this process, from reads over `span_s` seconds."""
    look = partial(_read, member, span_s, deadline_s)
    return record_look(
        case, COLLECTOR, look, cell=cell, subject=member.subject, deadline_s=deadline_s
    )


def _read(member: Member, span_s: float, deadline_s: float) -> LookResult:
    began = time.monotonic()
    reads: List[Dict[Place, Dict[str, str]]] = []
    while len(reads) < READS_CAP:
        left_s = began + deadline_s - time.monotonic()
        content, reason = read_locals(member, min(1.0, left_s))
        if content is None:
            if not reads:
                return refused("unavailable", reason, pid=member.pid)
            break
        reads.append(_by_place(content, member.pid))
        if time.monotonic() - began >= span_s:
            break
        time.sleep(PAUSE_S)
    rows = values_seen(reads)
    return LookResult({"pid": member.pid, "reads": len(reads), "values": rows})


def _by_place(content: bytes, pid: int) -> Dict[Place, Dict[str, str]]:
    """The locals of the user's innermost frames."""
    frames = list(enumerate(reversed(locals_of(content, pid))))
    mine = [
        ((depth, file, function), known)
        for depth, ((file, function), known) in frames
        if is_user(Frame(function, file))
    ]
    return dict(mine[-FRAMES_CAP:])


def values_seen(reads: Sequence[Mapping[Place, Mapping[str, str]]]) -> List[Dict[str, Any]]:
    """One row for each local that was there in two reads at least."""
    rows: List[Dict[str, Any]] = []
    for place in dict.fromkeys(place for read in reads for place in read):
        there = [read[place] for read in reads if place in read]
        names = list(dict.fromkeys(name for known in there for name in known))[:NAMES_CAP]
        for name in names:
            shown = [known[name] for known in there if name in known]
            if len(shown) < 2:
                continue
            numbers = {value: number for number, value in enumerate(dict.fromkeys(shown))}
            rows.append(
                {
                    **dict(zip(("depth", "file", "function"), place)),
                    "name": name,
                    "seen": [numbers[value] for value in shown],
                    "opaque": any(value.startswith("<") or "..." in value for value in shown),
                }
            )
    return rows


def parse_values(record: Evidence) -> List[Fact]:
    rank, pid = record.subject.rank, fields.whole(record.data, "pid") or 0
    reads = fields.whole(record.data, "reads") or 0
    rows = fields.items(record.data, "values")
    return list(
        fields.each(
            rows,
            lambda row: fields.fact(LoopValue, record, row, rank=rank, pid=pid, reads=reads),
        )
    )


COLLECTOR = Collector(
    "loop_values",
    None,
    deadline_s=4.0,
    source="py-spy --locals",
    rounds=(),
    parse=parse_values,
    facts=(LoopValue,),
)
