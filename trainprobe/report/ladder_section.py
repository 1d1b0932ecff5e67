"""The ladder in a few lines: one line for each rung, its cells folded, with the reason where it did
not pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from trainprobe.model.diagnosis import LadderRow
from trainprobe.model.node_names import folded
from trainprobe.model.ranks import name_ranks
from trainprobe.report.lines import Line, Span, Style, padded, span, wrapped, wrapped_behind
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
"""This many rungs that are skipped for one reason share a line."""
_WORST_FIRST = ("crashed", "timed_out", "failed", "not_measured", "passed", "skipped")


def ladder_lines(rows: Sequence[LadderRow], width: int, *, brief: bool = False) -> list[Line]:
    """Return the rungs, lowest first: name, outcome, seconds, and the rung's question or result.

    `brief` folds passed rungs into one entry, and skipped rungs into one entry for each reason, so
    that failures stand out.
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
        says = ", ".join(f"{cells[0].probe} {_time(cells)}".rstrip() for cells in passed)
        lines += wrapped([span(says, "faint")], width, first=" passed   ")
    names = min(24, max([columns(clean(cells[0].probe)) for cells in shown], default=0))
    outcomes = max([len(_worst(cells)) for cells in shown], default=0)
    times = max([len(_time(cells)) for cells in shown], default=0) + 2
    for cells in shown:
        lines += _rung(cells, names, outcomes, times, width)
    for reason, group in skipped.items():
        says = f"{', '.join(cells[0].probe for cells in group)}: {reason}"
        lines += wrapped([span(says, "faint")], width, first=" skipped  ")
    return lines


def _skipped_alike(
    rungs: Iterable[list[LadderRow]], least: int
) -> dict[str, list[list[LadderRow]]]:
    """Return the skipped rungs by reason, where at least `least` rungs share it."""
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
        Span(f" {padded(name, names)}  "),
        Span(f"{worst:<{outcomes}}", OUTCOME_STYLE[worst]),
        Span(f"{time:>{times}}  "),
    )
    results = _results(cells, worst)
    question = [span(cells[0].question, "faint")] if worst != "skipped" or not results else []
    return wrapped_behind(start, [*question, *results], width)


def _results(cells: list[LadderRow], worst: str) -> list[Span]:
    """The results of the cells: a sentence for each bad one, worst first, and the sizes that
    passed.
    """
    results: list[Span] = []
    if worst == "passed":
        sizes = [cell for cell in cells if cell.outcome == "passed" and cell.nproc]
        return [span(f"({_sizes(sizes)})")] if len(sizes) > 1 else []
    for outcome in _WORST_FIRST:
        some = [cell for cell in cells if cell.outcome == outcome]
        if some and outcome == "passed":
            results.append(span(f"Passed on {_sizes(some)}.", "faint"))
            continue
        for says in dict.fromkeys(cell.says for cell in some):
            alike = [cell for cell in some if cell.says == says]
            lead = f"On {_sizes(alike)}: " if len(cells) > 1 else ""
            sentence = _sentence(alike, says)
            if not lead and sentence.partition(" ")[0].isalpha():
                sentence = sentence[:1].upper() + sentence[1:]
            end = "" if sentence.endswith((".", "!", "?")) else "."
            results.append(span(f"{lead}{sentence}{end}"))
    return results


def _sentence(cells: Sequence[LadderRow], says: str) -> str:
    suites = (suites_say(cell).partition(";")[0] for cell in cells)
    sentence = next((counts for counts in suites if counts), says)
    if sentence:
        return sentence
    ranks = {rank for cell in cells for rank in cell.ranks}
    outcome = cells[0].outcome.replace("_", " ")
    return f"{outcome}, {name_ranks(ranks)}" if ranks else outcome


def node_of(cell: LadderRow) -> str:
    """The node of a cell that ran on one node alone, `host@node3`; empty for any other cell."""
    hosts = cell.extra.get("hosts")
    name = cell.cell.partition("@")[2]
    return name if isinstance(hosts, (list, tuple)) and len(hosts) == 1 and hosts[0] == name else ""


def _sizes(cells: Sequence[LadderRow]) -> str:
    """Name cells by their number of ranks, with the rows where they have a size of data, and by
    their label where one size has several.
    """
    if cells and all(node_of(cell) for cell in cells):
        return folded(node_of(cell) for cell in cells)
    sizes = [cell.cell.partition("@")[2] for cell in cells]
    by_rows = [size.replace("x", " x ") for size in sizes if _ROWS.match(size)]
    if by_rows:
        return ", ".join(dict.fromkeys(by_rows))
    names = []
    for cell in cells:
        label = cell.cell.partition("#")[2]
        names.append(f"{cell.nproc} ({label})" if label else str(cell.nproc))
    listed = ", ".join(dict.fromkeys(names))
    return f"{listed} {'rank' if listed == '1' else 'ranks'}"
