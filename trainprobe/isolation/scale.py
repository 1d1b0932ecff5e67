"""Faults that show only at scale: groups of 2, 4 … N, the smallest that fails, and who in it must
be there for it to fail.

Splitting a group makes such a fault vanish, so no group gets smaller here: members are changed for
others, at the same size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from trainprobe.isolation.trials import Round, SizeFault, Try

PHASE = "scale"


class _Asked(Exception):  # noqa: N818 - no error: the next group to try
    def __init__(self, group: tuple[str, ...], why: str) -> None:
        self.group, self.why = group, why


def next_size(history: Iterable[Try], nodes: Sequence[str], arm: str) -> Round | None:
    """Return the next group of the ladder over `nodes`, which are good in pairs; None when it is
    over.
    """
    try:
        _climbed(_seen(history, arm), tuple(nodes))
    except _Asked as asked:
        return Round((asked.group,), arm, asked.why, PHASE)
    return None


def found(history: Iterable[Try], arm: str) -> Iterator[SizeFault]:
    """What the groups that were tried show; the order of the nodes is that of the largest of
    them.
    """
    tries = [one for one in history if one.phase == PHASE and one.arm == arm]
    if not any(one.bad for one in tries):
        return
    order = tuple(dict.fromkeys(name for one in tries for name in one.members))
    ids = tuple(one.id for one in tries if one.bad and one.id)
    try:
        size, members, says = _climbed(_seen(tries, arm), order)
    except _Asked:  # stopped on the way
        size, members = min(len(one.members) for one in tries if one.bad), ()
        says = f"a group of {size} nodes fails; who in it was not found in the time"
    if size:
        yield SizeFault(size, members, says, ids, arm)


Seen = Mapping[frozenset[str], list[bool]]


def _seen(history: Iterable[Try], arm: str) -> Seen:
    seen: dict[frozenset[str], list[bool]] = {}
    for one in history:
        if one.phase == PHASE and one.arm == arm and (one.bad or one.outcome == "passed"):
            seen.setdefault(frozenset(one.members), []).append(one.bad)
    return seen


def _fails(seen: Seen, group: Sequence[str], why: str) -> bool:
    """Does this group fail? A failure counts when it was repeated; asks for what is not known."""
    tries = seen.get(frozenset(group), [])
    if not tries:
        raise _Asked(tuple(group), why)
    if tries[0] and len(tries) == 1:
        raise _Asked(tuple(group), f"{why}, once more")
    return sum(tries) >= 2


def _climbed(seen: Seen, nodes: Sequence[str]) -> tuple[int, tuple[str, ...], str]:
    """Return the smallest failing size (0: none), the members at fault, and a sentence. Raises
    _Asked where a try is wanting.
    """
    passing, failing, size = 1, 0, 2
    while not failing:
        size = min(size, len(nodes))
        if _fails(seen, nodes[:size], f"{size} of {len(nodes)} nodes together"):
            failing = size
        elif size == len(nodes):
            return 0, (), ""
        else:
            passing, size = size, size * 2
    while failing - passing > 1:
        middle = (passing + failing) // 2
        if _fails(
            seen, nodes[:middle], f"between {passing} nodes that pass and {failing} that fail"
        ):
            failing = middle
        else:
            passing = middle
    return _within(seen, nodes, failing)


def _within(seen: Seen, nodes: Sequence[str], size: int) -> tuple[int, tuple[str, ...], str]:
    """Change members for nodes from outside, half of those in question at a time."""
    whole, spare = list(nodes[:size]), list(nodes[size:])
    if not spare:
        return (
            size,
            (),
            f"groups fail from {size} nodes on, and no node is left over to change for one of them",
        )
    suspects = list(whole)
    why = f"{size} nodes, some changed for others"
    without: list[str] = []
    while len(suspects) > 1:
        fillers = [name for name in nodes if name not in suspects]
        # The last one first: with it the group began to fail.
        out = (
            suspects[-1:]
            if len(suspects) == size
            else suspects[: max(1, min(len(suspects) // 2, len(fillers)))]
        )
        group = _changed(whole, out, fillers, size)
        if len(group) < size:
            return (
                size,
                (),
                f"groups fail from {size} nodes on; too few others are left over to tell who",
            )
        if _fails(seen, group, why):
            suspects = [name for name in suspects if name not in out]
        else:
            suspects, without = out, group
    last = suspects[0]
    fillers = [name for name in nodes if name not in whole]
    without = without if without and last not in without else _changed(whole, [last], fillers, size)
    if _fails(seen, without, why):
        return size, (), f"any group of {size} nodes fails, whoever is in it"
    return size, (last,), f"groups of {size} nodes fail with {last} and pass without it"


def _changed(
    whole: Sequence[str], out: Sequence[str], fillers: Sequence[str], size: int
) -> list[str]:
    kept = [name for name in whole if name not in out]
    return [
        *kept,
        *[name for name in fillers if name not in kept and name not in out][: size - len(kept)],
    ]
