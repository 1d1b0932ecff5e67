"""What the page shows beside the report, taken from the evidence: source around the places that
the report names, calls of collectives, imports, deadlines, and raw records within a budget.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainprobe.facts import Facts, ImportTried, RankException, Rung, SourceSite, read
from trainprobe.facts.collectives import CollectiveCall
from trainprobe.model.codec import to_json
from trainprobe.model.diagnosis import PlacedCause, Report
from trainprobe.model.evidence import Evidence
from trainprobe.model.record_classes import LazyData
from trainprobe.report.page.markup import cleaned_lines
from trainprobe.stacks.places import is_user

RAW_BYTES = 360_000
"""Of all raw records together: the page may have 1.5 MB at 1,024 ranks."""
RECORD_BYTES = 24_000
CITED_MOST = 200
_LONGEST_NAME = 200
_LONGEST_TEXT, _MOST_ITEMS, _DEEPEST = 2000, 60, 12
_MOST_OF_A_FILE, _MOST_CALL_RECORDS = 24, 8192
_FEW_RANKS = 64  # in smaller jobs each source record is read
_PRINTED = ("error_file", "log.extract", "log.file", "log.request", "output")
_MOST_PRINTED, _MOST_EXCEPTIONS = 240, 64


@dataclass(frozen=True)
class RawRecord:
    """A record as it is shown. `about` names its subject; `cut` says that parts were left out."""

    id: str
    kind: str
    about: str
    cell: str
    outcome: str
    reason: str
    source: str
    began: float
    took_s: float
    cited: bool
    data: Any
    cut: bool = False


@dataclass(frozen=True)
class Exhibits:
    """`kinds` counts all records by kind and outcome, also those that are not among `raw`."""

    sites: tuple[SourceSite, ...] = ()
    calls: tuple[CollectiveCall, ...] = ()
    imports: tuple[ImportTried, ...] = ()
    deadlines: Mapping[str, float] = field(default_factory=dict)
    raw: tuple[RawRecord, ...] = ()
    kinds: Mapping[tuple[str, str], int] = field(default_factory=dict)


NOTHING = Exhibits()


def exhibits_of(report: Report, evidence: Iterable[Evidence]) -> Exhibits:
    """Return what the page of `report` shows of its evidence. It never raises for what a record
    holds.
    """
    records = list(evidence)
    facts = read(_told(report, records))
    return Exhibits(
        sites=(*facts.of(SourceSite), *_printed(facts)),
        calls=_calls(facts),
        imports=tuple(one for one in facts.of(ImportTried) if one.rank is None or one.rank == 0),
        deadlines={one.cell: one.deadline_s for one in facts.of(Rung) if one.deadline_s > 0},
        raw=tuple(_raw(report, records)),
        kinds=Counter((record.kind[:_LONGEST_NAME], record.outcome) for record in records),
    )


def _told(report: Report, records: Sequence[Evidence]) -> Iterator[Evidence]:
    """The records that are read into facts: of thousands of ranks the sources of a few."""
    suspects = {rank for cause in report.causes[:4] for rank in cause.ranks[:4]}
    few = len(report.world.ranks) <= _FEW_RANKS
    calls = 0
    of_file: Counter[str] = Counter()
    with_calls = any(record.kind in ("collectives", "flight_recorder") for record in records)
    printed = sum(record.kind in _PRINTED for record in records) <= _MOST_PRINTED
    for record in records:
        if record.kind in _PRINTED:
            if printed or record.subject.rank in suspects:
                yield record
        elif record.kind == "source":
            if few or record.subject.rank in suspects:
                yield record
            elif len(of_file) < _MOST_OF_A_FILE:
                name = str(record.data.get("file"))
                of_file[name] += 1
                if of_file[name] <= 2:
                    yield record
        elif record.kind in ("collectives", "flight_recorder"):
            calls += 1
            if calls <= _MOST_CALL_RECORDS:
                yield record
        elif (
            record.kind == "rung"
            or (record.kind == "probe.events" and record.cell.startswith("imports"))
            or (with_calls and record.kind in ("job", "reach"))
        ):
            yield record


def _printed(facts: Facts) -> Iterator[SourceSite]:
    """The lines of the program that tracebacks show."""
    for exception in facts.of(RankException)[:_MOST_EXCEPTIONS]:
        for frame in exception.frames:
            if frame.text and is_user(frame):
                yield SourceSite(
                    exception.evidence,
                    exception.cell,
                    exception.rank,
                    file=frame.file,
                    line=frame.line,
                    function=frame.name,
                    text=frame.text,
                )


def _calls(facts: Facts) -> tuple[CollectiveCall, ...]:
    return tuple(
        call for call in facts.of(CollectiveCall) if call.number >= 0 and call.rank is not None
    )


# ------------------------------------------------------------------------------------- raw records


def _raw(report: Report, records: Sequence[Evidence]) -> Iterator[RawRecord]:
    """What the report cites, looks that failed, two of each kind, then the others, within the
    budget and in the order of the case.
    """
    cited = _cited(report.causes)
    of_kind: Counter[str] = Counter()
    ranked: list[tuple[int, int]] = []
    for place, record in enumerate(records):
        of_kind[record.kind] += 1
        if record.id in cited:
            urgency = 0
        elif of_kind[record.kind] <= 2:
            urgency = 1
        else:
            urgency = 2 if record.outcome != "ok" else 3
        ranked.append((urgency, place))
    left = RAW_BYTES
    chosen: dict[int, RawRecord] = {}
    for _, place in sorted(ranked):
        record = records[place]
        shown, size = _shown(record, cited=record.id in cited)
        left -= size + 120
        if left < 0:
            break
        chosen[place] = shown
    return (chosen[place] for place in sorted(chosen))


def _cited(causes: Sequence[PlacedCause]) -> set[str]:
    found: dict[str, None] = {}
    for cause in causes:
        for ids in (
            *(one.evidence for one in cause.because),
            *(link.evidence for link in cause.chain),
        ):
            found.update(dict.fromkeys(ids[:8]))
    return set(list(found)[:CITED_MOST])


def _shown(record: Evidence, *, cited: bool) -> tuple[RawRecord, int]:
    data = record.data.whole() if isinstance(record.data, LazyData) else record.data
    for items in (_MOST_ITEMS, 12, 3):
        shortened = _Shortened(items)
        plain = shortened.of(to_json(data))
        size = len(json.dumps(plain))
        if size <= RECORD_BYTES:
            break
    else:
        plain, size, shortened.cut = "too large for the page", 24, True
    return (
        RawRecord(
            id=record.id[:_LONGEST_NAME],
            kind=record.kind[:_LONGEST_NAME],
            about=_about(record)[:_LONGEST_NAME],
            cell=record.cell[:_LONGEST_NAME],
            outcome=record.outcome,
            reason=record.reason[:_LONGEST_TEXT],
            source=record.source[:_LONGEST_TEXT],
            began=record.began if 0 < record.began < 1e11 else 0.0,
            took_s=record.took_s if 0 <= record.took_s < 1e11 else 0.0,
            cited=cited,
            data=plain,
            cut=shortened.cut,
        ),
        size,
    )


def _about(record: Evidence) -> str:
    subject = record.subject
    parts = []
    if subject.rank is not None:
        parts.append(f"rank {subject.rank}")
    elif subject.pid is not None:
        parts.append(f"{subject.role or 'process'} {subject.pid}")
    elif subject.gpu is not None:
        parts.append(f"GPU {subject.gpu}")
    if subject.host:
        parts.append(f"on {subject.host}" if parts else subject.host)
    return " ".join(parts) or "the job"


class _Shortened:
    """Plain data without its bulk: long texts and lists are cut, and each cut is shown."""

    def __init__(self, items: int) -> None:
        self.items, self.cut = items, False

    def of(self, value: Any, depth: int = 0) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, float):
            return value if abs(value) < 1e300 else str(value)
        if value is None or isinstance(value, (bool, int)):
            return value
        if depth >= _DEEPEST:
            self.cut = True
            return "…"
        if isinstance(value, Mapping):
            kept = list(value.items())[: self.items]
            found = {self._text(str(key)): self.of(item, depth + 1) for key, item in kept}
            if len(value) > len(kept):
                self.cut = True
                found["…"] = f"{len(value) - len(kept)} more"
            return found
        if isinstance(value, (list, tuple)):
            shown = [self.of(item, depth + 1) for item in value[: self.items]]
            if len(value) > len(shown):
                self.cut = True
                shown.append(f"… {len(value) - len(shown)} more")
            return shown
        return self._text(str(value))

    def _text(self, text: str) -> str:
        if len(text) <= _LONGEST_TEXT:
            return text if text.isprintable() else cleaned_lines(text)
        self.cut = True
        return f"{cleaned_lines(text[:_LONGEST_TEXT])} … ({len(text):,} characters)"
