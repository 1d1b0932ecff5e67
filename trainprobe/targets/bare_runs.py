"""Ranks that no launcher answers for, parted into the runs that they belong to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from trainprobe.targets.numbers import own_number
from trainprobe.targets.process_table import ProcessRow, in_order


def runs_of(found: Sequence[ProcessRow]) -> list[list[ProcessRow]]:
    """Part bare ranks of one address into runs, in each of which a number stands once."""
    found = sorted(found, key=in_order)
    ranks = [own_number(process).rank for process in found]
    if len(set(ranks)) == len(ranks):
        return [found]
    runs: list[list[ProcessRow]] = []
    numbers: list[set[int | None]] = []
    marks: list[set[tuple[int, int, int, int]]] = []
    holding: Counter[tuple[bool, int | None]] = Counter()  # runs, orphaned or not, with that number
    total: Counter[bool] = Counter()
    for process in found:
        orphaned, rank, mine = process.ppid == 1, own_number(process).rank, _marks(process)
        place = len(runs)
        if holding[orphaned, rank] < total[orphaned]:
            free = (
                at
                for at, run in enumerate(runs)
                if (run[0].ppid == 1) == orphaned and rank not in numbers[at]
            )
            place = max(
                free, key=lambda at: (next((mark[0] for mark in mine if mark in marks[at]), 0), at)
            )
        else:
            runs.append([])
            numbers.append(set())
            marks.append(set())
            total[orphaned] += 1
        runs[place].append(process)
        numbers[place].add(rank)
        marks[place].update(mine)
        holding[orphaned, rank] += 1
    return runs


def _marks(process: ProcessRow) -> list[tuple[int, int, int, int]]:
    """What it may share with others of its run, the strongest sign first.

    That is group, parent and session, then any two of them, then one.
    """
    group, parent, session = process.group, process.ppid, process.session
    return [
        (
            weight,
            group if weight & 4 else 0,
            parent if weight & 2 else 0,
            session if weight & 1 else 0,
        )
        for weight in range(7, 0, -1)
    ]
