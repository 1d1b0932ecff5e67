"""By which values ranks that wait for each other have parted: in which pass of a shared loop each
is, with which item of it, and which answer each gave to a shared condition.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from trainprobe.causes.diverging_calls import ASKS_FOR_RANK, camps, places
from trainprobe.causes.phrases import ranks_say, short
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.facts import Block, FrameValue, Skip
from trainprobe.stacks.parting_names import ROOT, counts, names_of_header, targets_of

Kind = Literal["pass", "item", "answer"]
Header = tuple[int, str]  # line and text
ALIKE_CAP = 4


@dataclass(frozen=True)
class PartedValue:
    """A name that has another value on some ranks. `kind`: the number of a loop's pass, the item
    that a loop is at, or what a condition asks. `header` is the loop or condition.
    """

    name: str
    kind: Kind
    header: Header
    by_rank: Mapping[int, str]
    facts: tuple[FrameValue, ...]

    @property
    def camps(self) -> tuple[tuple[int, ...], ...]:
        """Ranks by value, the smallest camp first."""
        found: dict[str, list[int]] = defaultdict(list)
        for rank, value in self.by_rank.items():
            found[value].append(rank)
        sides = (tuple(sorted(ranks)) for ranks in found.values())
        return tuple(sorted(sides, key=lambda side: (len(side), side)))

    def __str__(self) -> str:
        """Where it differs: ``in `for i, x in rows:` (line 8) `i` is 2 on rank 1, 3 on rank 0``."""
        line, text = self.header
        values = ", ".join(
            f"{short(self.by_rank[side[0]], 40)} on {ranks_say(side, capital=False)}"
            for side in self.camps[:ALIKE_CAP]
        )
        return f"in `{short(text, 70)}` (line {line}) `{self.name}` is {values}"


def parted_values(scene: Scene) -> tuple[PartedValue, ...]:
    """What differs between ranks that are inside collectives, loops before conditions, the outer
    before the inner; found once for a scene.
    """
    if parted_values not in scene.found:
        scene.found[parted_values] = tuple(
            sorted(
                _parted_values(scene), key=lambda one: (one.kind == "answer", one.header, one.name)
            )
        )
    known: tuple[PartedValue, ...] = scene.found[parted_values]
    return known


def _parted_values(scene: Scene) -> Iterator[PartedValue]:
    found: dict[tuple[str, str, str], dict[int, FrameValue]] = defaultdict(dict)
    for fact in scene.of(FrameValue):
        if fact.rank in places(scene):
            found[fact.file, fact.function, fact.name][fact.rank] = fact
    headers = _headers(scene) if found else {}
    for (file, function, name), facts in found.items():
        by_rank = {rank: fact.value for rank, fact in sorted(facts.items())}
        header = headers.get((file, function), {}).get(name)
        if (
            header is None
            or len(set(by_rank.values())) < 2
            or ASKS_FOR_RANK.search(name)
            or all(value == str(rank) for rank, value in by_rank.items())
        ):
            continue
        kind: Kind = "answer"
        if name in targets_of(header[1]):
            kind = "pass" if name in counts(header[1]) else "item"
        yield PartedValue(name, kind, header, by_rank, tuple(facts.values()))


def _headers(scene: Scene) -> dict[tuple[str, str], dict[str, Header]]:
    """The header to which each name of a function belongs: the innermost loop that sets it, else
    the first condition that asks for it.
    """
    found: dict[tuple[str, str], dict[str, Header]] = defaultdict(dict)
    frames = dict.fromkeys(frame for place in places(scene).values() for frame in place.frames)
    for frame in frames:
        for site in scene.sites([frame]):
            own = found[frame.file, frame.name]
            parts: tuple[Block | Skip, ...] = (*site.blocks, *site.skips)
            for part in parts:
                for name in names_of_header(part.text):
                    if name in targets_of(part.text) or name not in own:
                        own[name] = (part.line, part.text)
    return found


def passes_made(scene: Scene, loop: Block) -> PartedValue | None:
    """The pass of this loop that each rank is or was last in, as far as that differs."""
    return next(
        (
            one
            for one in parted_values(scene)
            if one.kind == "pass" and one.header == (loop.line, loop.text)
        ),
        None,
    )


def same_passes(scene: Scene, loop: Block) -> FrameValue | None:
    """A value that says that all ranks have come to the same pass of this loop."""
    names = counts(loop.text)
    found = [fact for fact in scene.of(FrameValue) if fact.name in names]
    ranks = {fact.rank for fact in found}
    alike = len({(fact.file, fact.function, fact.name, fact.value) for fact in found}) == 1
    return found[0] if alike and ranks >= set(places(scene)) else None


def passes_apart(scene: Scene) -> PartedValue | None:
    """The outermost loop of which the ranks are in different passes."""
    return next((one for one in parted_values(scene) if one.kind == "pass"), None)


def items_apart(scene: Scene) -> PartedValue | None:
    """A loop over things of which the ranks are at different ones in the same pass."""
    apart = parted_values(scene)
    if any(one.kind == "pass" for one in apart):
        return None
    return next((one for one in apart if one.kind == "item"), None)


def roots_apart(scene: Scene) -> dict[int, FrameValue]:
    """Ranks in one call of torch that is sent from, or comes together at, another rank on some of
    them; {} where none differ.
    """
    found = {
        fact.rank: fact
        for fact in scene.of(FrameValue)
        if fact.rank in places(scene) and ROOT.get(fact.function) == fact.name
    }
    calls = {(fact.function, fact.name) for fact in found.values()}
    several = len({fact.value for fact in found.values()}) > 1
    return found if len(calls) == 1 and several and len(found) == len(places(scene)) else {}


def answers_apart(scene: Scene) -> tuple[PartedValue, ...]:
    """What conditions ask that is not the same on all ranks, flags before numbers."""
    found = [one for one in parted_values(scene) if one.kind == "answer"]
    return tuple(sorted(found, key=lambda one: not _is_flag(one.by_rank.values())))


def odd_by_value(scene: Scene) -> tuple[int, ...]:
    """The smallest camp by what differs, where all ranks are in one call: () where that is not
    known, or no camp is smaller.
    """
    if len(camps(places(scene))) != 1:
        return ()
    for one in (passes_apart(scene), *answers_apart(scene)):
        if one is not None and len(one.by_rank) == len(scene.world):
            sides = one.camps
            if len(sides) == 2 and len(sides[0]) < len(sides[1]):
                return sides[0]
    return ()


def weigh_values(scene: Scene) -> Weighings:
    """For a call that only some ranks make: ranks in one call in different passes of a loop have
    not made equally many calls, and a flag that differs may be what parted them.
    """
    apart = passes_apart(scene)
    if apart is not None and len(camps(places(scene))) == 1:
        says = (
            f"All are in one call, but not in the same pass: {apart}. Some have made a call more,"
            " or left one out"
        )
        yield weighing(10, "suspects-stack", says, *apart.facts)
        return
    flags = [one for one in answers_apart(scene) if _is_flag(one.by_rank.values())]
    if flags:
        says = f"The ranks answer a condition differently: {flags[0]}"
        yield weighing(6, "suspects-stack", says, *flags[0].facts)


def further(apart: PartedValue, ranks: Iterable[int]) -> int | None:
    """By how many passes these ranks are further than the others at least; negative where they
    are behind, None where that is not one number.
    """
    inside = frozenset(ranks)
    mine = {
        number
        for rank, value in apart.by_rank.items()
        if rank in inside
        for number in _whole(value)
    }
    rest = {
        number
        for rank, value in apart.by_rank.items()
        if rank not in inside
        for number in _whole(value)
    }
    if not mine or not rest:
        return None
    if min(mine) > max(rest):
        return min(mine) - max(rest)
    return max(mine) - min(rest) if max(mine) < min(rest) else None


def _whole(value: str) -> Iterator[int]:
    try:
        number = ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return
    if isinstance(number, int):
        yield number


def _is_flag(values: Iterable[str]) -> bool:
    return all(value in ("True", "False", "None") for value in values)
