"""By which values ranks that wait for each other have parted: in which pass of a shared loop each
is, with which item of it, and which answer each gave to a shared condition.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from trainprobe.causes.diverging_calls import (
    Place,
    camps,
    own_blocks,
    places,
)
from trainprobe.causes.phrases import ranks_say, short
from trainprobe.causes.scene import Scene, Weighings, first_found, weighing
from trainprobe.collect.collectors.parting_values import OBJECT
from trainprobe.facts import Block, FrameValue, Skip
from trainprobe.stacks.parting_names import ROOT, counts, first_of, names_of_header, targets_of
from trainprobe.stacks.rank_conditions import ASKS_FOR_RANK

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

    @property
    def numbers(self) -> dict[int, int]:
        """The values that are whole numbers, by rank."""
        found = {}
        for rank, value in self.by_rank.items():
            if value.lstrip("-").isdecimal():
                found[rank] = int(value)
        return found

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
            or (OBJECT in by_rank.values() and set(by_rank.values()) != {OBJECT, "None"})
        ):
            continue
        kind: Kind = "answer"
        if name in counts(header[1]):
            kind = "pass"
        elif name in targets_of(header[1]):
            kind = "item"
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
                targets = targets_of(part.text)
                for name in names_of_header(part.text):
                    if name in targets or name not in own:
                        own[name] = (part.line, part.text)
    return found


def begun_apart(scene: Scene) -> PartedValue | None:
    """The number at which a loop of steps began, where that differs between ranks. The loop must be
    the outermost of its function: each pass of another one may begin it elsewhere. Where the code
    calculates it from the rank, as the stages of a pipeline do, it is meant to differ.
    """
    loops = [
        [block for block in site.blocks if block.kind in ("for", "while")]
        for place in places(scene).values()
        for site in scene.sites(place.frames)
    ]
    outermost = {
        (found[0].line, found[0].text)
        for found in loops
        if found and not ASKS_FOR_RANK.search(found[0].made)
    }
    return next(
        (
            one
            for one in parted_values(scene)
            if one.name in first_of(one.header[1]) and one.header in outermost
        ),
        None,
    )


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
    wanted = {
        (frame.file, frame.name)
        for place in places(scene).values()
        for frame in place.frames
        if any(
            (one.line, one.text) == (loop.line, loop.text)
            for site in scene.sites([frame])
            for one in site.blocks
        )
    }
    names = counts(loop.text)
    found = [
        fact
        for fact in scene.of(FrameValue)
        if fact.name in names and (fact.file, fact.function) in wanted
    ]
    alike = len({(fact.file, fact.function, fact.name, fact.value) for fact in found}) == 1
    asked = {fact.rank for fact in found}
    of_all = all(asked & set(side) for side in camps(places(scene)))
    return found[0] if alike and of_all else None


def passes_apart(scene: Scene) -> PartedValue | None:
    """The outermost loop of which the ranks are in different passes."""
    return next((one for one in parted_values(scene) if one.kind == "pass"), None)


def items_apart(scene: Scene) -> PartedValue | None:
    """A loop over things of which the ranks are at different ones in the same pass."""
    apart = parted_values(scene)
    if any(one.kind == "pass" for one in apart):
        return None
    return next((one for one in apart if one.kind == "item"), None)


def order_of_items(scene: Scene) -> PartedValue | None:
    """The loop around the calls of all ranks, which differ, where no pass of it can be left out: it
    goes through its things in another order on each. None where the ranks are at one thing, or
    some have come to one call with different ones.
    """
    apart, found = items_apart(scene), places(scene)
    sides = camps(found)
    if apart is None or len(sides) < 2:
        return None
    if any(len({apart.by_rank.get(rank) for rank in side} - {None}) > 1 for side in sides):
        return None
    sites = {rank: scene.sites(place.frames) for rank, place in found.items()}
    around = all(
        any((block.line, block.text) == apart.header for site in own for block in site.blocks)
        for own in sites.values()
    )
    skips = (skip for own in sites.values() for site in own for skip in site.skips)
    left_out = any((skip.loop, skip.how) == (apart.header[0], "continue") for skip in skips)
    return apart if around and not left_out else None


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


def parted_block(scene: Scene, found: dict[int, Place], camp: Sequence[int]) -> Block | None:
    """The condition that only this camp's calls stand under, and that a name decides whose value
    differs between the ranks.
    """
    apart = {one.header for one in answers_apart(scene)}
    blocks = own_blocks(scene, found, camp) if apart else ()
    return first_found(block for block in blocks if (block.line, block.text) in apart)


def says_of(scene: Scene, block: Block) -> PartedValue:
    """What differs in a condition that `parted_block` has found."""
    return next(one for one in answers_apart(scene) if one.header == (block.line, block.text))


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
    if (items := order_of_items(scene)) is not None:
        says = f"All are in one loop, which they go through in another order: {items}"
        yield weighing(-10, "suspects-stack", says, *items.facts)
    found = places(scene)
    flags = [one for one in answers_apart(scene) if _is_flag(one.by_rank.values())]
    if flags and not any(parted_block(scene, found, side) for side in camps(found)):
        says = f"The ranks answer a condition differently: {flags[0]}"
        yield weighing(6, "suspects-stack", says, *flags[0].facts)


def _is_flag(values: Iterable[str]) -> bool:
    return all(value in ("True", "False", "None", OBJECT) for value in values)


@dataclass(frozen=True)
class Behind:
    """Ranks that are in an earlier pass of a loop than all others, or have left it after fewer
    passes; `inside` where all are still in it.
    """

    ranks: tuple[int, ...]
    apart: PartedValue
    inside: bool

    def __str__(self) -> str:
        """What that means, as a sentence."""
        who = ranks_say(self.ranks)
        if not self.inside:
            return f"{who} went round fewer times: {self.apart}"
        one = "waits" if len(self.ranks) == 1 else "wait"
        return f"{who} {one} in a call that the others have left behind: {self.apart}"


def behind(scene: Scene) -> Behind | None:
    """Who is in an earlier pass of the outermost loop whose passes differ. None where a loop
    further out has no count, and so may have begun anew on some.
    """
    if behind not in scene.found:
        scene.found[behind] = _behind(scene)
    known: Behind | None = scene.found[behind]
    return known


def _behind(scene: Scene) -> Behind | None:
    found = places(scene)
    if len(camps(found)) < 2:
        return None
    for loop, everybody in _loops_of_all(scene):
        apart, same = passes_made(scene, loop), same_passes(scene, loop)
        if apart is None and same is not None and everybody:
            continue
        if apart is None:
            return None
        passes = dict(apart.numbers)
        for side in camps(found):  # of many ranks in one place only some were asked
            told = {passes[rank] for rank in side if rank in passes}
            if len(told) == 1:
                passes.update(dict.fromkeys(side, next(iter(told))))
        if set(passes) != set(found):
            return None
        first = min(passes.values())
        if loop.kind == "while" and max(passes.values()) == first + 1:
            return None  # one may have counted this pass already, and the other not yet
        ranks = tuple(rank for rank in found if passes[rank] == first)
        return Behind(ranks, apart, everybody)
    return None


def _loops_of_all(scene: Scene) -> list[tuple[Block, bool]]:
    """The loops around the line of any rank in the functions in which all stand, from the outside
    inwards, and whether all ranks are inside.
    """
    stacks = list(dict.fromkeys(place.frames for place in places(scene).values()))
    loops: dict[Header, tuple[Block, bool]] = {}
    for level in zip(*stacks, strict=False):
        if len({(frame.file, frame.name) for frame in level}) > 1:
            break
        each = [
            {
                (block.line, block.text): block
                for site in scene.sites([frame])
                for block in site.blocks
                if block.kind in ("for", "while") and block.branch == "body"
            }
            for frame in level
        ]
        for header in sorted(set().union(*each)):
            inside = [blocks[header] for blocks in each if header in blocks]
            loops.setdefault(header, (inside[0], len(inside) == len(each)))
        if len({frame.line for frame in level}) > 1:
            break
    return list(loops.values())
