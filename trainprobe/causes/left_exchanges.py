"""Who has gone past a send or receive in which its partner still waits, by the pass of a loop that
each rank is in.
"""

from __future__ import annotations

from dataclasses import dataclass

from trainprobe.causes.diverging_calls import exchange, places
from trainprobe.causes.parting_values import PartedValue, parted_values
from trainprobe.causes.phrases import short
from trainprobe.causes.scene import Scene, first_found
from trainprobe.facts import FrameValue, Skip
from trainprobe.stacks.parting_names import OTHER_END


@dataclass(frozen=True)
class LeftExchange:
    """`rank` is `passes` ahead of `waits`, whose call names it. `skip` is the `continue` by which a
    pass can do without the call, None where none is seen.
    """

    rank: int
    waits: int
    passes: int
    apart: PartedValue
    skip: Skip | None

    @property
    def says(self) -> str:
        line, text = self.apart.header
        numbers = self.apart.numbers
        by = f", by `{short(self.skip.text, 60)}` (line {self.skip.line})" if self.skip else ""
        return (
            f"Rank {self.waits} waits for rank {self.rank} in pass {numbers[self.waits]} of"
            f" `{short(text, 70)}` (line {line}), and that one is in pass {numbers[self.rank]}: it"
            f" has left out an exchange{by}"
        )


def left_exchange(scene: Scene) -> LeftExchange | None:
    """Of the rank that is the furthest behind: whether the one that it waits for is further on."""
    if not exchange(scene):
        return None
    found = places(scene)
    for apart in parted_values(scene):
        numbers = apart.numbers
        if apart.kind != "pass" or not set(found) <= set(numbers):
            continue
        least = min(numbers.values())
        last = [rank for rank, number in numbers.items() if number == least]
        peer = _peer(scene, last[0]) if len(last) == 1 else None
        if peer in numbers and numbers[peer] > least:
            skip = first_found(
                one
                for site in scene.sites(found[last[0]].frames)
                for one in site.skips
                if one.how == "continue" and one.loop == apart.header[0]
            )
            return LeftExchange(peer, last[0], numbers[peer] - least, apart, skip)
    return None


def _peer(scene: Scene, rank: int) -> int | None:
    """The rank that the arguments of its send or receive name."""
    return first_found(
        int(fact.value)
        for fact in scene.of(FrameValue, rank=rank)
        if OTHER_END.get(fact.function) == fact.name and fact.value.isdecimal()
    )
