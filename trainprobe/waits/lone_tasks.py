"""What one rank does alone time after time while the others wait for it: each validation, save or
report of one rank, by samples of some seconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from trainprobe.facts import Block, Facts, Samples, SourceSite
from trainprobe.facts.samples import Spell, arrivals_in, by_host
from trainprobe.stacks.places import is_user
from trainprobe.stacks.rank_conditions import asks_for_rank

AGAIN = 2
OFTEN = 3  # where no condition on the rank is known, and no other rank was seen there
RARER = 2  # passes of its loop for one such task
COSTS = 0.4
"""Of the sampled time. Of some fifty healthy jobs of strangers none lost more than 0.3 to one
rank.
"""
ITS_OWN = 0.75  # of the time for which ranks were waited for alone
MOST = 0.5


@dataclass(frozen=True)
class LoneTask:
    """`rank` was alone `times` times, with work of other ranks in between, for `share` of `span_s`
    seconds. `place` and `text` are the user's line that leads there, which stands under `block`, a
    condition on the rank; None where none is known, and no other rank was met in that function.
    """

    rank: int
    others: tuple[int, ...]
    times: int
    share: float
    span_s: float
    place: str
    text: str
    block: Block | None


def lone_task(facts: Facts, cell: str) -> LoneTask | None:
    """The rank that holds up the others of its host by a task that is its own, by the source or by
    what no other rank does; None where none does: two long steps may be one rank's by chance.
    """
    key = lone_task, cell
    if key not in facts.derived:
        facts.derived[key] = _found(facts.of(Samples, cell=cell), facts.of(SourceSite, cell=cell))
    found: LoneTask | None = facts.derived[key]
    return found


def _found(samples: Sequence[Samples], sites: Sequence[SourceSite]) -> LoneTask | None:
    by_line = {(site.file, site.line): site for site in sites}
    for here in by_host(samples):
        seen = arrivals_in(here)
        rank = seen.latest
        if rank is None or seen.stays.get(rank, 0) < AGAIN or seen.share < COSTS:
            continue
        if seen.held_s[rank] < ITS_OWN * sum(seen.held_s.values()):
            continue
        own = [one for each in here if each.rank == rank for one in each.spells if not one.inside]
        found: tuple[str, str, Block | None] | None = _condition(own, by_line)
        seldom = seen.turns.get(rank, 0) >= RARER * seen.stays[rank]  # else it is a slow rank
        if found is None and seldom and seen.stays[rank] >= OFTEN and seen.share >= MOST:
            found = _not_of_others(own, rank, here, by_line)
        if found is not None:
            others = tuple(one for one in seen.ranks if one != rank)
            return LoneTask(rank, others, seen.stays[rank], seen.share, seen.span_s, *found)
    return None


def _not_of_others(
    own: Sequence[Spell],
    rank: int,
    samples: Sequence[Samples],
    sites: dict[tuple[str, int], SourceSite],
) -> tuple[str, str, None] | None:
    """The line of the outermost function in which only this rank was met, where these spells were
    for most of their time.
    """
    theirs = {
        (frame.file, frame.name)
        for each in samples
        if each.rank != rank
        for spell in each.spells
        for frame in spell.frames
    }
    took: dict[tuple[str, str], float] = defaultdict(float)
    for spell in own:
        frames = (
            one for one in spell.frames if is_user(one) and (one.file, one.name) not in theirs
        )
        if (frame := next(frames, None)) is not None:
            site = sites.get((frame.file, frame.line))
            took[frame.where, site.text if site is not None else frame.text] += spell.took_s
    if not took or sum(took.values()) < MOST * sum(spell.took_s for spell in own):
        return None
    return *max(took, key=lambda one: took[one]), None


def _condition(
    own: Sequence[Spell], sites: dict[tuple[str, int], SourceSite]
) -> tuple[str, str, Block] | None:
    """The condition on the rank below which these spells were for most of their time, with the
    line that leads there for longest.
    """
    took: dict[tuple[str, int], float] = defaultdict(float)
    places: dict[tuple[str, int], dict[tuple[str, str], float]] = defaultdict(
        lambda: defaultdict(float)
    )
    blocks: dict[tuple[str, int], Block] = {}
    for spell in own:
        for frame in filter(is_user, spell.frames):
            site = sites.get((frame.file, frame.line))
            if site is None:
                continue
            for block in site.blocks:
                if block.kind == "if" and asks_for_rank(block):
                    key = (frame.file, block.line)
                    blocks[key] = block
                    took[key] += spell.took_s
                    places[key][frame.where, site.text] += spell.took_s
    if not took:
        return None
    key = max(took, key=lambda one: took[one])
    if took[key] < MOST * sum(spell.took_s for spell in own):
        return None
    lines = places[key]
    return *max(lines, key=lambda one: lines[one]), blocks[key]
