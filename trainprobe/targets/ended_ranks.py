"""Zombies of ranks, which have no environment or arguments, only a name and siblings."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace

from trainprobe.targets.numbers import Number
from trainprobe.targets.process_table import ProcessRow, Table, in_order, once

SIBLING_TICKS = 200  # of 10 ms: a program starts its ranks one right after the other
NAMES = ("python", "pt_main", "pt_elastic")


def ended_siblings(table: Table, ranks: Sequence[ProcessRow]) -> list[ProcessRow]:
    """Return zombies with a rank's name, which parents of `ranks` started with them."""
    found = {}
    started: dict[int, list[ProcessRow]] = {}
    for rank in ranks:
        above = table.parent(rank)
        if above is not None and above.pid != 1:
            started.setdefault(above.pid, []).append(rank)
    for above_pid, siblings in started.items():
        first, last = (
            min(each.started_ticks for each in siblings),
            max(each.started_ticks for each in siblings),
        )
        names, uids = {each.name for each in siblings}, {each.uid for each in siblings}
        for kid in _ended_children(table, table.by_pid[above_pid]):
            called = kid.name in names or kid.name.startswith(NAMES)
            if (
                called
                and kid.uid in uids
                and first - SIBLING_TICKS <= kid.started_ticks <= last + SIBLING_TICKS
            ):
                found[kid.pid] = kid
    mine = {rank.pid for rank in ranks}
    return sorted((process for process in found.values() if process.pid not in mine), key=in_order)


@once
def _ended_children(table: Table, above: ProcessRow) -> list[ProcessRow]:
    return [kid for kid in table.children(above) if kid.ended]


def numbered_between(
    ranks: Sequence[ProcessRow], numbers: Sequence[Number], world: int | None
) -> list[Number]:
    """Give each zombie the number that is left for it between the siblings that started before and
    after it.

    That needs siblings whose numbers rise with their start, and as many numbers left in the gap as
    there are zombies in it.
    """
    found = list(numbers)
    if world is None or not any(
        rank.ended and number.rank is None for rank, number in zip(ranks, numbers)
    ):
        return found
    taken = {number.rank for number in numbers}
    free = [rank for rank in range(world) if rank not in taken]
    for parent in {rank.ppid for rank in ranks}:
        order = sorted(
            (place for place, rank in enumerate(ranks) if rank.ppid == parent),
            key=lambda place: in_order(ranks[place]),
        )
        known = [rank for place in order if (rank := found[place].rank) is not None]
        if not known or known != sorted(known):
            continue
        gap: list[int] = []
        low = -1
        for place in [*order, None]:
            rank = found[place].rank if place is not None else world
            if place is not None and rank is None:
                gap.append(place)
                continue
            high = world if rank is None else rank
            left = free[bisect_right(free, low) : bisect_left(free, high)]
            if len(left) == len(gap) and all(ranks[each].ended for each in gap):
                for each, number in zip(gap, left):
                    found[each] = replace(found[each], rank=number, source="start-order")
            gap, low = [], high
    return found
