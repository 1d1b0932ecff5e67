"""Ranks that make process groups of all ranks under different numbers, and so wait for each other
for ever.
"""

from __future__ import annotations

import re
from collections import defaultdict

from trainprobe.causes.phrases import ranks_say, verb
from trainprobe.causes.scene import Scene
from trainprobe.facts import AwaitedValue
from trainprobe.stacks.group_making import NUMBER, SIZE

_COUNTED = re.compile("'[0-9]{1,9}'")


def numbers_of(scene: Scene) -> dict[int, tuple[int, ...]]:
    """The ranks at each number, the highest number first; {} unless there are several."""
    found: dict[int, list[int]] = defaultdict(list)
    for fact in _facts(scene):
        found[int(fact.value.strip("'"))].append(fact.rank or 0)
    if len(found) < 2:
        return {}
    return {number: tuple(sorted(found[number])) for number in sorted(found, reverse=True)}


def number_facts(scene: Scene) -> tuple[AwaitedValue, ...]:
    """What says so, one a rank; () where the numbers are the same."""
    return _facts(scene) if numbers_of(scene) else ()


def odd_ranks(scene: Scene) -> tuple[int, ...]:
    """Who has made a group that the others have not, or has left one out: the smaller camp, of
    equal ones that with more groups. Where some ranks are elsewhere, the camps are not known whole,
    and who has come further counts.
    """
    found = list(numbers_of(scene).values())
    whole = sum(map(len, found)) == len(scene.world)
    return min(found, key=len, default=()) if whole else next(iter(found), ())


def numbers_say(scene: Scene) -> str:
    """`Ranks 0 and 1 make their process group 6, rank 2 makes its process group 5`."""
    return ", ".join(
        f"{ranks_say(ranks, capital=not place)}"
        f" {verb(ranks, 'makes its', 'make their')} process group {number}"
        for place, (number, ranks) in enumerate(numbers_of(scene).items())
    )


def _facts(scene: Scene) -> tuple[AwaitedValue, ...]:
    values = scene.of(AwaitedValue)
    whole = {
        fact.rank for fact in values if fact.name == SIZE and fact.value == str(len(scene.world))
    }
    return tuple(
        fact
        for fact in values
        if fact.name == NUMBER
        and fact.rank is not None
        and fact.rank in whole
        and _COUNTED.fullmatch(fact.value)
    )
