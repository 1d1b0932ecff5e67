"""The user's own source around the places that a cause is about, as a compiler shows it: enclosing
headers and calls, with the guilty line marked. Only lines that gathering read are shown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from trainprobe.facts import SourceSite
from trainprobe.model.diagnosis import PlacedCause, RankRow, Report
from trainprobe.model.ranks import name_ranks, unfold_ranks
from trainprobe.report.phrases import duration

PLACES_CAP, EXCERPTS_CAP = 6, 3
_VERBS = {
    "waiting": ("waits", "wait"),
    "computing": ("computes", "compute"),
    "spinning": ("spins", "spin"),
    "blocked": ("hangs", "hang"),
    "stopped": ("is stopped", "are stopped"),
    "crashed": ("failed", "failed"),
    "exited": ("ended", "ended"),
}
_OUTERMOST = ("", "<module>")
_PLACE = re.compile(r"(?P<file>[\w.+-]{1,200}\.pyw?):(?P<line>\d{1,7})\b")
_INDENT = 4


@dataclass
class SourceLine:
    """`mark` is guilty, waits, called or empty; `note` says who stands there. `named` is true for a
    condition that the report cites.
    """

    number: int
    text: str
    indent: int
    mark: str = ""
    note: str = ""
    named: bool = False


@dataclass
class Excerpt:
    """Lines of one function, in order; numbers that are missing were not read."""

    file: str
    function: str
    path: str = ""
    lines: list[SourceLine] = field(default_factory=list)

    @property
    def is_guilty(self) -> bool:
        return any(line.mark == "guilty" for line in self.lines)

    @property
    def is_named(self) -> bool:
        return any(line.mark == "waits" or line.named for line in self.lines)


def excerpts_of(
    report: Report, cause: PlacedCause, sites: Sequence[SourceSite]
) -> tuple[Excerpt, ...]:
    """Return the excerpts for `cause`: the guilty place with the calls that led there first, then
    where its victims wait.
    """
    suspects = frozenset(cause.ranks)
    rows = [row for row in report.world.ranks if row.rank is not None and row.rank in suspects]
    stand = list(dict.fromkeys(place for row in rows[:64] if (place := _place(row.where))))
    told = " ".join([cause.summary, *(one.says for one in cause.because), report.says])
    cited = [(match["file"], int(match["line"])) for match in _PLACE.finditer(told)]
    read = {(_base(site.file), site.line) for site in sites}
    # A summary starts with the culprit; a rank may only wait for a thread or child that it names.
    first = _PLACE.search(cause.summary)
    told_first = [(first["file"], int(first["line"]))] if first else []
    guilty = told_first if told_first and told_first[0] in read else stand or cited[:1]
    calls = [place for row in rows[:1] for place in _calls_to(report, row)]
    others = _waiting(report, suspects)
    wanted: dict[tuple[str, int], str] = {}
    for place in guilty[:PLACES_CAP]:
        wanted[place] = "guilty"
    for place in stand[:PLACES_CAP]:
        wanted.setdefault(place, "waits")
    for place in calls:
        wanted.setdefault(place, "called")
    for place in [*(place for place, _ in others), *cited]:
        wanted.setdefault(place, "waits" if any(place == each for each, _ in others) else "called")
    notes = {place: _standing(found) for place, found in others}
    for place in (*guilty, *stand):
        standing = [row for row in rows if _place(row.where) == place]
        if standing:
            notes[place] = _standing(standing)
    lines_cited = {int(line) for line in re.findall(r"\(line (\d{1,7})\)", told)}
    return _put_together(report, wanted, notes, sites, lines_cited)


def _put_together(
    report: Report,
    wanted: dict[tuple[str, int], str],
    notes: dict[tuple[str, int], str],
    sites: Sequence[SourceSite],
    lines_cited: set[int],
) -> tuple[Excerpt, ...]:
    found: dict[tuple[str, int], SourceSite] = {}
    for site in sites:
        key = (_base(site.file), site.line)
        if key in wanted:
            found.setdefault(key, site)
    excerpts: dict[tuple[str, int], Excerpt] = {}
    for key, mark in wanted.items():
        if key not in found:
            text = _known_text(report, key)
            if text and mark != "called":
                lone = excerpts.setdefault((key[0], -key[1]), Excerpt(key[0], ""))
                lone.lines.append(SourceLine(key[1], text, 0, mark, notes.get(key, "")))
            continue
        site = found[key]
        start = max((block.line for block in site.blocks if block.kind == "def"), default=0)
        inner = [block for block in site.blocks if block.line >= start]
        excerpt = excerpts.setdefault(
            (key[0], start), Excerpt(key[0], site.function, path=site.file)
        )
        known = {line.number: line for line in excerpt.lines}
        for depth, block in enumerate(inner):
            text = block.text if block.branch in ("body", "") else f"{block.text}  … {block.branch}"
            named = block.line in lines_cited
            known.setdefault(block.line, SourceLine(block.line, text, depth * _INDENT, named=named))
        own = SourceLine(key[1], site.text, len(inner) * _INDENT, mark, notes.get(key, ""))
        if key[1] not in known or not known[key[1]].mark:
            known[key[1]] = own
        excerpt.lines = [known[number] for number in sorted(known)]
    ordered = sorted(excerpts.values(), key=lambda one: (not one.is_guilty, not one.is_named))
    telling = [one for one in ordered if one.is_guilty or one.is_named]
    # The calls that led there, but for the last lines of every script.
    telling += [one for one in ordered if one not in telling and one.function not in _OUTERMOST]
    return tuple(telling[:EXCERPTS_CAP])


def _known_text(report: Report, place: tuple[str, int]) -> str:
    """The line as the rank's row has it."""
    return next(
        (row.source for row in report.world.ranks if row.source and _place(row.where) == place), ""
    )


def _waiting(
    report: Report, suspects: frozenset[int]
) -> list[tuple[tuple[str, int], list[RankRow]]]:
    """Where the other ranks stand, most of them first."""
    by_place: dict[tuple[str, int], list[RankRow]] = {}
    for row in report.world.ranks:
        place = _place(row.where)
        if place and row.rank is not None and row.rank not in suspects:
            by_place.setdefault(place, []).append(row)
    return sorted(by_place.items(), key=lambda item: -len(item[1]))[:2]


def _standing(rows: Sequence[RankRow]) -> str:
    who = name_ranks([row.rank for row in rows if row.rank is not None], "a process")
    alone, together = _VERBS.get(rows[0].state, ("stands", "stand"))
    verb = together if who.startswith("ranks") else alone
    since = max((row.since_s for row in rows if row.since_s is not None), default=None)
    span = f", for {duration(since)}" if since is not None and since >= 1 else ""
    return f"{who[:60]} {verb} here{span}"


def _calls_to(report: Report, row: RankRow) -> list[tuple[str, int]]:
    """The frames of the rank's stack, outermost first."""
    for one in report.stacks.classes:
        try:
            ranks = unfold_ranks(one.ranks)
        except ValueError:
            continue
        if row.rank in ranks:
            return [place for frame in one.frames if (place := _place(frame))]
    return []


def _place(where: str) -> tuple[str, int] | None:
    match = _PLACE.search(where)
    return (match["file"], int(match["line"])) if match else None


def _base(file: str) -> str:
    return file.replace("\\", "/").rsplit("/", 1)[-1]
