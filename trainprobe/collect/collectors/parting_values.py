"""The values by which ranks that wait for each other have parted: loop counters, bounds and flags
in functions in which several of them stand.

One look of py-spy at the locals of some ranks' main threads, without a pause where they sleep. Kept
are numbers, booleans, None and short texts of names that stand in a loop's or condition's header,
unless the name is a secret's; the redactor sees them too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Dict, List, Mapping, Sequence

from trainprobe.collect.collector import Collector, record_look
from trainprobe.collect.collectors.awaited import locals_of, read_locals, scalars, short
from trainprobe.collect.look_results import LookResult, refused, side_by_side
from trainprobe.collect.members import Member
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.secret_names import looks_secret
from trainprobe.stacks.parting_names import Function

if TYPE_CHECKING:
    from trainprobe.case import Case

TEXT_CAP = 80
OBJECT = "an object"


@dataclass(frozen=True)
class FrameValue(Fact):
    """A local of the innermost frame of a function on a rank's main thread, as Python writes it, or
    OBJECT.
    """

    pid: int = 0
    file: str = ""
    function: str = ""
    name: str = ""
    value: str = ""


def look_at_parting_values(
    case: Case,
    cell: str,
    members: Sequence[Member],
    names: Mapping[Function, Sequence[str]],
    *,
    deadline_s: float = 2.0,
    at_once: int = 2,
) -> List[Evidence]:
    """Record one `parting_values` for each of these ranks; none where there is nothing to ask."""
    asked = {
        function: [name for name in wanted if not looks_secret(name)]
        for function, wanted in names.items()
    }
    if not any(asked.values()):
        return []
    looks = [partial(_read, member, asked, deadline_s) for member in members]

    def look() -> List[LookResult]:
        found = side_by_side(looks, deadline_s, at_once)
        return [replace(one, subject=member.subject) for member, one in zip(members, found)]

    return record_look(case, COLLECTOR, look, cell=cell, deadline_s=deadline_s + 0.5)


def _read(member: Member, names: Mapping[Function, Sequence[str]], deadline_s: float) -> LookResult:
    content, reason = read_locals(member, deadline_s)
    if content is None:
        return refused("unavailable", reason, pid=member.pid)
    frames = locals_of(content, member.pid)
    rows: List[Dict[str, str]] = []
    for (file, function), wanted in names.items():
        known = next((found for where, found in frames if where == (file, function)), {})
        values = {name: short(value) for name, value in scalars(known, wanted).items()}
        # of anything else that py-spy has no value of, only that it is not None
        objects = [name for name in wanted if known.get(name, "").startswith("<")]
        for name, shown in (*values.items(), *((name, OBJECT) for name in objects)):
            if shown is not None and len(shown) <= TEXT_CAP:
                rows.append({"file": file, "function": function, "name": name, "value": shown})
    return LookResult({"pid": member.pid, "values": rows})


def parse_values(record: Evidence) -> List[Fact]:
    rank, pid = record.subject.rank, fields.whole(record.data, "pid") or 0
    rows = fields.items(record.data, "values")
    return list(
        fields.each(rows, lambda row: fields.fact(FrameValue, record, row, rank=rank, pid=pid))
    )


COLLECTOR = Collector(
    "parting_values",
    None,
    deadline_s=2.0,
    source="py-spy --locals",
    rounds=(),
    parse=parse_values,
    facts=(FrameValue,),
)
