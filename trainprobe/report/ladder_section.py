"""The ladder in a few lines: one line a rung, its cells folded, with the reason where a rung did
not pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from trainprobe.model.diagnosis import LadderRow
from trainprobe.model.node_names import folded
from trainprobe.model.ranks import name_ranks
from trainprobe.report.lines import Line, Span, Style, span, wrapped
from trainprobe.report.phrases import clean, columns, duration
from trainprobe.report.suite_section import suites_say

OUTCOME_STYLE: dict[str, Style] = {
    "passed": "good",
    "failed": "bad",
    "timed_out": "bad",
    "crashed": "bad",
    "skipped": "faint",
    "not_measured": "warn",
}
_ROWS = re.compile(r"\d+x\d")
MANY = 3
"""So many rungs skipped for one reason share a line."""
_WORST_FIRST = ("crashed", "timed_out", "failed", "not_measured", "passed", "skipped")


def ladder_lines(rows: Sequence[LadderRow], width: int, *, brief: bool = False) -> list[Line]:
    """Return the rungs, lowest first: name, outcome, seconds, and the question that it answers or
    what it says.

    `brief` folds those that passed into one entry, and those that were skipped into one for each
    reason: what failed is to be seen.
    """
    rungs: dict[tuple[int, str], list[LadderRow]] = {}
    for row in rows:
        rungs.setdefault((row.rung, row.probe), []).append(row)
    passed = [cells for cells in rungs.values() if brief and _worst(cells) == "passed"]
    skipped = _skipped_alike(rungs.values(), least=1 if brief else MANY)
    folded = [*passed, *(cells for group in skipped.values() for cells in group)]
    shown = [cells for cells in rungs.values() if cells not in folded]
    lines: list[Line] = []
    if passed:
        told = ", ".join(f"{cells[0].probe} {_time(cells)}".rstrip() for cells in passed)
        lines += wrapped([span(told, "faint")], width, first=" passed   ")
    names = min(24, max([columns(clean(cells[0].probe)) for cells in shown], default=0))
    outcomes = max([len(_worst(cells)) for cells in shown], default=0)
    times = max([len(_time(cells)) for cells in shown], default=0) + 2
    for cells in shown:
        lines += _rung(cells, names, outcomes, times, width)
    for reason, group in skipped.items():
        lines += wrapped(
            [span(f"{', '.join(cells[0].probe for cells in group)}: {reason}", "faint")],
            width,
            first=" skipped  ",
        )
    return lines


def _skipped_alike(
    rungs: Iterable[list[LadderRow]], least: int
) -> dict[str, list[list[LadderRow]]]:
    """Return the rungs that were skipped, by the reason that they share, where at least `least`
    do.
    """
    by_reason: dict[str, list[list[LadderRow]]] = {}
    for cells in rungs:
        if _worst(cells) == "skipped":
            by_reason.setdefault(cells[0].says or "no reason was given", []).append(cells)
    return {reason: group for reason, group in by_reason.items() if len(group) >= least}


def _worst(cells: list[LadderRow]) -> str:
    outcomes = {cell.outcome for cell in cells}
    return next(outcome for outcome in _WORST_FIRST if outcome in outcomes)


def _time(cells: list[LadderRow]) -> str:
    alone = [cell.took_s for cell in cells if node_of(cell)]  # nodes side by side
    took_s = sum(cell.took_s for cell in cells if not node_of(cell)) + max(alone, default=0.0)
    return duration(took_s) if took_s > 0 else ""


def _rung(cells: list[LadderRow], names: int, outcomes: int, times: int, width: int) -> list[Line]:
    worst = _worst(cells)
    name = clean(cells[0].probe)[:names]
    time = _time(cells)
    start = (
        Span(f" {name}{' ' * (names - columns(name))}  "),
        Span(f"{worst:<{outcomes}}", OUTCOME_STYLE[worst]),
        Span(f"{time:>{times}}  "),
    )
    indent = " " * sum(columns(piece.text) for piece in start)
    says = (
        [span(cells[0].question, "faint")] if worst != "skipped" or not _told(cells, worst) else []
    )
    first, *rest = wrapped([*says, *_told(cells, worst)], width, first=indent)
    return [(*start, *first[1:]), *rest]


def _told(cells: list[LadderRow], worst: str) -> list[Span]:
    """What the cells say, those of the worst outcome first in words, the others as a list of
    sizes.
    """
    told: list[Span] = []
    if worst == "passed":
        sizes = [cell for cell in cells if cell.outcome == "passed" and cell.nproc]
        if len(sizes) > 1:
            told.append(span(f"({_sizes(sizes)})"))
        return told
    for outcome in _WORST_FIRST:
        some = [cell for cell in cells if cell.outcome == outcome]
        if not some:
            continue
        climbs = len(cells) > 1
        if outcome == "passed":
            told.append(span(f"Passed on {_sizes(some)}.", "faint"))
            continue
        for says in dict.fromkeys(cell.says for cell in some):
            these = [cell for cell in some if cell.says == says]
            lead = f"On {_sizes(these)}: " if climbs else ""
            ranks = sorted({rank for cell in these for rank in cell.ranks})
            words = next(
                (counted for cell in these if (counted := suites_say(cell).partition(";")[0])), says
            ) or (
                f"{outcome.replace('_', ' ')}, {name_ranks(ranks)}"
                if ranks
                else outcome.replace("_", " ")
            )
            words = (
                words[:1].upper() + words[1:]
                if not lead and words.partition(" ")[0].isalpha()
                else words
            )
            told.append(span(f"{lead}{words}{'' if words.endswith(('.', '!', '?')) else '.'}"))
    return told


def node_of(cell: LadderRow) -> str:
    """The node of a cell that ran on each of several for that one alone, `host@node3`; empty for
    any other.
    """
    hosts = cell.extra.get("hosts")
    name = cell.cell.partition("@")[2]
    return name if isinstance(hosts, (list, tuple)) and len(hosts) == 1 and hosts[0] == name else ""


def _sizes(cells: Sequence[LadderRow]) -> str:
    """Name cells by their number of ranks, with the rows where they have a size of data, and by
    their label where one size has several.
    """
    names = []
    if cells and all(node_of(cell) for cell in cells):
        return folded(node_of(cell) for cell in cells)
    by_rows = [cell for cell in cells if _ROWS.match(cell.cell.partition("@")[2])]
    if by_rows:
        return ", ".join(
            dict.fromkeys(cell.cell.partition("@")[2].replace("x", " x ") for cell in by_rows)
        )
    for cell in cells:
        label = cell.cell.partition("#")[2]
        names.append(f"{cell.nproc} ({label})" if label else str(cell.nproc))
    words = ", ".join(dict.fromkeys(names))
    return f"{words} {'rank' if words == '1' else 'ranks'}"
