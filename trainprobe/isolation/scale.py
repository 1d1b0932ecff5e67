"""Faults that show only at scale: groups of 2, 4 … N, the smallest that fails, and the members that
make it fail.

Splitting a group makes such a fault vanish, so the search keeps the size and exchanges members.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from trainprobe.isolation.trials import Round, SizeFault, Try

PHASE = "scale"


class _Wanted(Exception):  # noqa: N818 - not an error: the next group to try
    def __init__(self, group: tuple[str, ...], why: str) -> None:
        self.group, self.why = group, why


def next_size(history: Iterable[Try], nodes: Sequence[str], arm: str) -> Round | None:
    """Return the next group of the ladder over `nodes`, which are good in pairs; None when it is
    over.
    """
    try:
        _climbed(_results(history, arm), tuple(nodes))
    except _Wanted as wanted:
        return Round((wanted.group,), arm, wanted.why, PHASE)
    return None


def found(history: Iterable[Try], arm: str) -> Iterator[SizeFault]:
    """What the tried groups show, with the nodes in the order of the tries."""
    tries = [trial for trial in history if trial.phase == PHASE and trial.arm == arm]
    bad = [trial for trial in tries if trial.bad]
    if not bad:
        return
    order = tuple(dict.fromkeys(name for trial in tries for name in trial.members))
    ids = tuple(trial.id for trial in bad if trial.id)
    try:
        size, members, says = _climbed(_results(tries, arm), order)
    except _Wanted:  # the search stopped early
        size, members = min(len(trial.members) for trial in bad), ()
        says = (
            f"a group of {size} nodes fails; the time did not suffice to find the member at fault"
        )
    if size:
        yield SizeFault(size, members, says, ids, arm)


Results = Mapping[frozenset[str], list[bool]]
"""For each group, whether its tries failed."""


def _results(history: Iterable[Try], arm: str) -> Results:
    results: dict[frozenset[str], list[bool]] = {}
    for trial in history:
        measured = trial.bad or trial.outcome == "passed"
        if trial.phase == PHASE and trial.arm == arm and measured:
            results.setdefault(frozenset(trial.members), []).append(trial.bad)
    return results


def _fails(results: Results, group: Sequence[str], why: str) -> bool:
    """Whether this group fails; a failure counts when it was repeated. Raises _Wanted where a try
    is missing.
    """
    tries = results.get(frozenset(group), [])
    if not tries:
        raise _Wanted(tuple(group), why)
    if tries[0] and len(tries) == 1:
        raise _Wanted(tuple(group), f"{why}, once more")
    return sum(tries) >= 2


def _climbed(results: Results, nodes: Sequence[str]) -> tuple[int, tuple[str, ...], str]:
    """Return the smallest failing size (0: none), the members at fault, and a sentence. Raises
    _Wanted where a try is missing.
    """
    passing, failing, size = 1, 0, 2
    while not failing:
        size = min(size, len(nodes))
        if _fails(results, nodes[:size], f"{size} of {len(nodes)} nodes together"):
            failing = size
        elif size == len(nodes):
            return 0, (), ""
        else:
            passing, size = size, size * 2
    while failing - passing > 1:
        middle = (passing + failing) // 2
        why = f"between {passing} nodes that pass and {failing} that fail"
        if _fails(results, nodes[:middle], why):
            failing = middle
        else:
            passing = middle
    return _within(results, nodes, failing)


def _within(results: Results, nodes: Sequence[str], size: int) -> tuple[int, tuple[str, ...], str]:
    """Exchange members for nodes from outside, half of the suspects at a time."""
    whole, spare = list(nodes[:size]), list(nodes[size:])
    if not spare:
        return size, (), f"groups fail from {size} nodes on, and no spare node is left to exchange"
    suspects = list(whole)
    why = f"{size} nodes, some exchanged for others"
    without: list[str] = []
    while len(suspects) > 1:
        fillers = [name for name in nodes if name not in suspects]
        out = suspects[: max(1, min(len(suspects) // 2, len(fillers)))]
        if len(suspects) == size:
            out = suspects[-1:]  # the group began to fail with the last one
        group = _changed(whole, out, fillers, size)
        if len(group) < size:
            return (
                size,
                (),
                f"groups fail from {size} nodes on; too few spare nodes show which fails",
            )
        if _fails(results, group, why):
            suspects = [name for name in suspects if name not in out]
        else:
            suspects, without = out, group
    last = suspects[0]
    fillers = [name for name in nodes if name not in whole]
    without = without if without and last not in without else _changed(whole, [last], fillers, size)
    if _fails(results, without, why):
        return size, (), f"any group of {size} nodes fails, whoever is in it"
    return size, (last,), f"groups of {size} nodes fail with {last} and pass without it"


def _changed(
    whole: Sequence[str], out: Sequence[str], fillers: Sequence[str], size: int
) -> list[str]:
    kept = [name for name in whole if name not in out]
    spare = [name for name in fillers if name not in kept and name not in out]
    return [*kept, *spare[: size - len(kept)]]
