"""What changed since an earlier run, as lines: in words, then side by side what differs in what the
two ran with. The data is what `comparison.with_comparison` put into the report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainprobe.model.diagnosis import Report
from trainprobe.report.extra import rows_of, text_of, texts_of
from trainprobe.report.lines import Block, Line, Span, padded, plain, span, wrapped
from trainprobe.report.phrases import columns

ROWS_CAP = 12
_NAME_COLUMNS = 24


@dataclass(frozen=True)
class Compared:
    """One row: what it was and what it is; `part` is answer, or a part of the run's values."""

    part: str
    name: str
    before: str
    after: str
    is_changed: bool


@dataclass(frozen=True)
class Against:
    """The comparison as a report holds it; `since` names the earlier run."""

    since: str
    sentences: tuple[str, ...]
    rows: tuple[Compared, ...]

    @property
    def changed_values(self) -> tuple[Compared, ...]:
        """The rows that differ beyond the answer, which the sentences hold."""
        return tuple(row for row in self.rows if row.is_changed and row.part != "answer")


def against_of(report: Report) -> Against | None:
    """The comparison that the report holds, or None."""
    data = report.extra.get("against")
    if not isinstance(data, Mapping):
        return None
    return Against(
        since=f"{text_of(data, 'since') or 'an earlier run'} ({text_of(data, 'verdict')})",
        sentences=tuple(texts_of(data, "sentences")),
        rows=tuple(_row(row) for row in rows_of(data, "rows")),
    )


def _row(row: Mapping[str, Any]) -> Compared:
    part, name, before, after = (
        text_of(row, field) for field in ("part", "name", "before", "after")
    )
    return Compared(part, name, before, after, row.get("changed") is True)


def comparison_lines(report: Report, width: int, *, verbose: bool = False) -> list[Line]:
    """Return the block; empty where nothing was compared. `verbose` adds what is the same."""
    found = against_of(report)
    if found is None:
        return []
    lines = wrapped([span(f"since {found.since}", "strong")], width)
    for sentence in found.sentences:
        lines += wrapped([span(sentence)], width, first="  - ")
    rows = (
        tuple(row for row in found.rows if row.part != "answer")
        if verbose
        else (found.changed_values[:ROWS_CAP])
    )
    if rows:
        lines += _side_by_side(rows, width)
    more = Block("    ", width)
    more.add_rest(len(found.changed_values) - len(rows), "that differ (--verbose)")
    return lines + more.lines


def _side_by_side(rows: tuple[Compared, ...], width: int) -> Iterator[Line]:
    wide = min(_NAME_COLUMNS, max(columns(row.name) for row in rows))
    each = (width - 4 - wide - 4) // 2
    yield (Span("    " + " " * wide), Span("  " + padded("then", each) + "  now", "faint"))
    for row in rows:
        cells = [
            [plain(line) for line in wrapped([span(text)], most)]
            for text, most in ((row.name, wide), (row.before, each), (row.after, each))
        ]
        for place in range(max(map(len, cells))):
            name, was, now = (cell[place] if place < len(cell) else "" for cell in cells)
            sign = ("  ≠ " if row.is_changed else "    ") if place == 0 else "    "
            yield (
                Span(sign, "warn"),
                Span(padded(name, wide)),
                Span("  " + padded(was, each), "faint"),
                Span(f"  {now}", "strong" if row.is_changed else "plain"),
            )
