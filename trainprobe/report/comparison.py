"""What changed between two reports of one job, in words and side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trainprobe.model.diagnosis import PlacedCause, RankRow, Report
from trainprobe.model.node_names import folded
from trainprobe.model.ranks import name_ranks
from trainprobe.report.cause_section import heading, how_sure
from trainprobe.report.text import first_causes

PLACES_CAP, RUNGS_CAP = 8, 12


@dataclass(frozen=True)
class Compared:
    """One row: what it was and what it is."""

    name: str
    before: str
    after: str

    @property
    def is_changed(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True)
class Comparison:
    """`sentences` are what changed, the most important first; `rows` stand side by side."""

    sentences: tuple[str, ...]
    rows: tuple[Compared, ...]


def compared(before: Report, after: Report) -> Comparison:
    """Compare two reports, the earlier one first."""
    return Comparison(
        sentences=(
            _verdicts(before, after),
            *_causes(before, after),
            *_worlds(before, after),
            *_places(before, after),
            *_rungs(before, after),
        ),
        rows=tuple(
            Compared(name, old, new)
            for name, old, new in (
                ("Verdict", before.verdict, after.verdict),
                ("Headline", before.says, after.says),
                *_of_cause(before, after),
                ("Ranks in all", _size(before), _size(after)),
                ("Command", before.command, after.command),
                ("Case", before.case, after.case),
            )
            if old or new
        ),
    )


def _verdicts(before: Report, after: Report) -> str:
    if before.verdict == after.verdict:
        return f"It was {before.verdict} and still is."
    return f"It was {before.verdict} and is {after.verdict} now."


def _first(report: Report) -> PlacedCause | None:
    found = first_causes(report)
    return found[0] if found else None


def _causes(before: Report, after: Report) -> list[str]:
    old = {heading(cause): cause for cause in first_causes(before)}
    new = {heading(cause): cause for cause in first_causes(after)}
    says = [
        f"{name} ({how_sure(cause)}) is not found any more."
        for name, cause in old.items()
        if name not in new
    ]
    says += [
        f"{name} ({how_sure(cause)}) is new." for name, cause in new.items() if name not in old
    ]
    for name in old.keys() & new.keys():
        was, now = old[name], new[name]
        if was.ranks != now.ranks:
            says.append(
                f"{name} was about {name_ranks(was.ranks, 'no rank')} and is about"
                f" {name_ranks(now.ranks, 'no rank')} now."
            )
        else:
            says.append(f"{name} is the cause in both.")
    return says


def _of_cause(before: Report, after: Report) -> list[tuple[str, str, str]]:
    old, new = _first(before), _first(after)

    def shown(cause: PlacedCause | None) -> tuple[str, str, str, str]:
        if cause is None:
            return "", "", "", ""
        hosts = folded(cause.hosts)
        return heading(cause), how_sure(cause), name_ranks(cause.ranks), hosts

    names = ("Cause", "Confidence", "Ranks", "Hosts")
    return list(zip(names, shown(old), shown(new), strict=True))


def _size(report: Report) -> str:
    return str(report.world.size or len(report.world.ranks) or "")


def _worlds(before: Report, after: Report) -> list[str]:
    old, new = before.world.size, after.world.size
    return [f"The job had {old} ranks and has {new} now."] if old and new and old != new else []


def _places(before: Report, after: Report) -> list[str]:
    """Ranks that stand elsewhere, by where they stood and stand."""
    old = {row.rank: row for row in before.world.ranks if row.rank is not None}
    new = {row.rank: row for row in after.world.ranks if row.rank is not None}
    moved: dict[tuple[str, str], list[int]] = {}
    still: list[int] = []
    for rank in sorted(old.keys() & new.keys()):
        was, now = _place(old[rank]), _place(new[rank])
        if was == now:
            still.append(rank)
        else:
            moved.setdefault((was, now), []).append(rank)
    ordered = sorted(moved.items(), key=lambda item: -len(item[1]))
    says = []
    for (was, now), ranks in ordered[:PLACES_CAP]:
        who = name_ranks(ranks)
        verb = "was" if len(ranks) == 1 else "were"
        present = "is" if len(ranks) == 1 else "are"
        says.append(f"{who[:1].upper()}{who[1:]} {verb} {was} and {present} {now} now.")
    if len(ordered) > PLACES_CAP:
        says.append(f"Ranks moved in {len(ordered) - PLACES_CAP} more ways.")
    if still and old:
        who = name_ranks(still)
        verb = "stands" if len(still) == 1 else "stand"
        says.append(
            f"{who[:1].upper()}{who[1:]} {verb} where {'it' if len(still) == 1 else 'they'} stood."
        )
    return says


def _place(row: RankRow) -> str:
    return f"{row.state} at {row.where.strip()}" if row.where.strip() else row.state


def _rungs(before: Report, after: Report) -> list[str]:
    old: Mapping[str, str] = {row.cell or row.probe: row.outcome for row in before.ladder}
    says = [
        f"{row.cell or row.probe}: {row.outcome.replace('_', ' ')}, was"
        f" {old[row.cell or row.probe].replace('_', ' ')}."
        for row in after.ladder
        if old.get(row.cell or row.probe, row.outcome) != row.outcome
    ]
    more = len(says) - RUNGS_CAP
    return says[:RUNGS_CAP] + ([f"{more} more rungs ended otherwise."] if more > 0 else [])
