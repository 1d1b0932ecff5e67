"""Known lines in the kept lines of logs: one LogEvent per rank and wording, with how often it
came and where it first stood.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from trainprobe.facts.log_events import LINE_CHARACTERS, LogEvent, Output
from trainprobe.facts.log_failures import LogFailure
from trainprobe.facts.log_rows import Row, rows_of, streams
from trainprobe.logtext.levels import denied, only_informs
from trainprobe.logtext.retries import copes, tries_again
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.signatures import Signature, all_signatures

SOME_CAP = 8  # different lines of one wording that one rank of one file tells
EACH_CAP = 64  # the same of a wording of which every line counts
TAIL_LINES = 120
TAIL_CHARACTERS = 6000
BEHIND_LINES = 80  # a traceback and what C++ adds to it
BEHIND_S = 2.0
LOG = "log"
_DIGITS = re.compile(r"\d{1,20}|0x[0-9a-fA-F]{1,16}")
_FORM = str.maketrans("123456789", "0" * 9)
# Tables, progress and other ranks' affairs do not belong to what a rank said last.
MARKED = re.compile(r"^(?:\s*[=*-]{5,}|\s*$)")


def parse_log_events(record: Evidence) -> list[Fact]:
    """Every wording of signatures/ that a rank used, alike lines as one with their number. Where
    another process tells of a rank, the wording captures `whose` line it is.
    """
    rows = rows_of(record)
    found: dict[tuple[str, int | None, str], LogEvent] = {}
    told: dict[tuple[str, int | None], int] = {}
    for row, signature, match in hits(rows):
        before = row.text[: match.start()]
        if denied(before) or (signature.means == "fatal" and only_informs(before)):
            continue
        kind = (signature.id, row.rank)
        key = (*kind, _DIGITS.sub("0", match.group(0)) if not signature.each else row.text)
        known = found.get(key)
        if known is not None:
            found[key] = replace(known, count=known.count + 1)
            continue
        told[kind] = told.get(kind, 0) + 1
        if told[kind] > (EACH_CAP if signature.each else SOME_CAP):
            continue
        coped = copes(row.text)
        again = coped or tries_again(row.text)
        captured = {name: value for name, value in match.groupdict().items() if value is not None}
        found[key] = LogEvent(
            evidence=(record.id,),
            cell=record.cell,
            rank=int(captured["whose"]) if "whose" in captured else row.rank,
            signature=signature.id,
            event=signature.shows,
            line=_around(row.text, match),
            stream=LOG,
            at=row.at,
            captured=captured,
            echo=signature.echo and not again,
            fatal=signature.means == "fatal" and not again,
            lived_through=coped,
            place=row.place,
            host=row.host,
            seen_at=row.seen_at,
        )
    return list(found.values())


def _around(text: str, match: re.Match[str]) -> str:
    """A long line around what matched in it."""
    if len(text) <= LINE_CHARACTERS:
        return text.strip()
    begin = max(0, min(match.start() - 80, len(text) - LINE_CHARACTERS))
    return text[begin : begin + LINE_CHARACTERS].strip()


def hits(rows: Sequence[Row]) -> Iterator[tuple[Row, Signature, re.Match[str]]]:
    """Yield each row with each signature that it matches, in the order of the lines.

    A literal is sought in all rows at once, which costs a hundredth of asking each row for each
    literal; of rows that differ in digits alone, in one of them.
    """
    alike: dict[str, list[int]] = {}
    for number, form in enumerate("\n".join(map(_text, rows)).translate(_FORM).split("\n")):
        alike.setdefault(form, []).append(number)
    text = "\n".join(alike)
    members = list(alike.values())
    starts = [0, *itertools.accumulate(len(form) + 1 for form in alike)]
    found: dict[tuple[int, int], tuple[Row, Signature, re.Match[str]]] = {}
    for order, signature, literal, form in _sought():
        place = text.find(form)
        while place >= 0:
            which = bisect.bisect_right(starts, place) - 1
            for number in members[which]:
                row = rows[number]
                if (number, order) not in found and (form is literal or literal in row.text):
                    match = signature.regex.search(row.text)
                    if match is not None:
                        found[number, order] = (row, signature, match)
            place = text.find(form, starts[which + 1] - 1)
    for key in sorted(found):
        yield found[key]


def _text(row: Row) -> str:
    """Its text in one line."""
    return row.text.replace("\n", " ")


@functools.cache
def _sought() -> tuple[tuple[int, Signature, str, str], ...]:
    """Each literal with its signature's place, and with its form: its digits as zeros."""
    return tuple(
        (order, signature, literal, literal.translate(_FORM))
        for order, signature in enumerate(all_signatures())
        for literal in signature.has
    )


def parse_log_output(record: Evidence) -> list[Fact]:
    """What each rank of the file printed; `join_log_outputs` makes tails of it."""
    found: list[Fact] = []
    for rank, rows in streams(rows_of(record)).items():
        times = [row.at for row in rows if row.at is not None]
        found.append(
            Output(
                evidence=(record.id,),
                cell=record.cell,
                rank=rank,
                stream=LOG,
                bytes=sum(len(row.text) + 1 for row in rows),
                first_at=min(times, default=None),
                last_at=max(times, default=None),
                role="rank" if rank is not None else "log",
                file=rows[0].path if rows else "",
                rows=tuple((row.line, row.at, row.text) for row in rows),
            )
        )
    return found


def join_log_outputs(facts: list[Fact]) -> list[Fact]:
    """Cut each rank's output behind the first failure: what was printed later is not why it
    came.
    """
    outputs = [fact for fact in facts if isinstance(fact, Output) and fact.stream == LOG]
    if not outputs:
        return facts
    firsts: dict[str, LogFailure] = {}
    for fact in facts:
        if isinstance(fact, LogFailure) and not fact.echo:
            known = firsts.get(fact.cell)
            firsts[fact.cell] = fact if known is None or fact.order < known.order else known
    budget = max(300, min(TAIL_CHARACTERS, 200_000 // len(outputs)))
    return [
        (
            _with_tail(fact, firsts.get(fact.cell), budget)
            if isinstance(fact, Output) and fact.stream == LOG
            else fact
        )
        for fact in facts
    ]


def _with_tail(output: Output, first: LogFailure | None, budget: int) -> Output:
    rows = output.rows
    base, _, line = first.seen_at.rpartition(":") if first is not None else ("", "", "")
    if (
        first is not None
        and base
        and output.file.replace("\\", "/").rsplit("/", 1)[-1] == base
        and line.isdecimal()
    ):
        rows = tuple(row for row in rows if row[0] <= int(line) + BEHIND_LINES)
    elif first is not None and first.at is not None:
        rows = tuple(row for row in rows if row[1] is None or row[1] <= first.at + BEHIND_S)
    kept = [text for _, _, text in rows[-TAIL_LINES:] if not MARKED.match(text)]
    return replace(output, tail="\n".join(kept)[-budget:], rows=())
